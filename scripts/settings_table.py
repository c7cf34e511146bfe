"""Print docs/all_settings.md: every setting of every config in configs/.

Usage: ``python scripts/settings_table.py > docs/all_settings.md``
"""

import textwrap
from collections.abc import Iterator
from typing import Any

from syncattn_fairseq.lab.recipes.corpus_facts import Subwords, load_corpus
from syncattn_fairseq.lab.recipes.systems import SHARED

#: The sections, in the order of the page.
SECTIONS = (
    *("common", "task", "model", "criterion", "optimizer", "lr_scheduler"),
    *("optimization", "dataset", "checkpoint", "generation"),
)
#: Settings without influence on results.
LEFT_OUT = {("common", name) for name in ("user_dir", "log_format", "log_interval")} | {
    ("task", "data"),
    ("checkpoint", "save_dir"),
}
HEAD = (
    "# Every setting of every published run",
    "",
    "Made from `configs/` by `python scripts/settings_table.py > docs/all_settings.md`; a test",
    "compares them. Settings that a config does not have are fairseq's defaults. See",
    "[settings.md](settings.md) for the papers' scores, and our choices where papers do not say.",
)


def settings(config: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """Return what a config sets, by section and name."""
    return {
        (section, name): value
        for section in SECTIONS
        for name, value in config.get(section, {}).items()
        if (section, name) not in LEFT_OUT
    }


def shown(values: dict[str, Any]) -> str:
    """Return settings as a list on one line."""

    def one(name: str, value: Any) -> str:
        if isinstance(value, bool):
            return f"`{name}`" if value else f"no `{name}`"
        return f"`{name}` {','.join(map(str, value)) if isinstance(value, list) else value}"

    return ", ".join(one(*item) for item in values.items() if item[1] is not None) or "none"


def named(values: dict[tuple[str, str], Any]) -> dict[str, Any]:
    """Name settings like fairseq's options."""
    return {section if name == "_name" else name: v for (section, name), v in values.items()}


def subwords(values: Subwords) -> str:
    """Return how words are split."""
    published = f"{values.size:,}" if values.size else "as published"
    if values.unit == "word":
        published = f"words, the {values.size:,} most frequent" if values.size else "all words"
    return f"{published}, {'joint' if values.joint else 'separate'}" + (
        ", one dictionary" if values.joined else ", two dictionaries"
    )


def lines() -> Iterator[str]:
    """Yield the page."""
    yield from HEAD
    for folder in sorted(path.parent for path in SHARED.glob("*/_data.yaml")):
        corpus = load_corpus(folder)
        shared = settings(corpus.settings.load())
        steps = shared.get(("optimization", "update_freq"), [1])[0]
        words = [f"{language} `{tokeniser}`" for language, tokeniser in corpus.words.items()]
        yield from ("", f"## {corpus.name}", "")
        yield f"- all systems: {shown(named(shared))}"
        yield f"- tokens per update: {shared['dataset', 'max_tokens'] * steps:,}"
        yield f"- words: {', '.join(words) or 'generated, ' + shown(corpus.generated)}"
        whole = corpus.clean is None or corpus.generated
        clean = "all" if whole else shown(corpus.clean) if corpus.clean else "no empty sides"
        yield f"- training pairs: {clean}; subwords: {subwords(corpus.subwords)}"
        mean = isinstance(corpus.checkpoint, int)
        which = f"mean of {corpus.checkpoint} epochs" if mean else f"{corpus.checkpoint} checkpoint"
        yield f"- decoded with the {which}; score: {shown(corpus.score)}"
        yield from ("", "| system | its own settings |", "|---|---|")
        for name in sorted(corpus.systems):
            own = settings(corpus.system(name).load()).items()
            yield f"| `{name}` | {shown(named({k: v for k, v in own if k not in shared}))} |"


def wrap(line: str) -> str:
    """Break lines that are not in a table at spaces, to at most 120 characters."""
    if line.startswith("|"):
        return line
    return textwrap.fill(
        line, 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def make_page() -> str:
    """Return the page."""
    return "".join(f"{wrap(line)}\n" for line in lines())


if __name__ == "__main__":
    print(make_page(), end="")
