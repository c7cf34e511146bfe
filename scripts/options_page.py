"""Print docs/options.md: the options that our models, criterion and task add to fairseq's.

Usage: ``python scripts/options_page.py > docs/options.md``; a test compares them.
"""

from syncattn_fairseq.base.option_fields import flag
from syncattn_fairseq.cli.plugin_options import MODELS, OptionGroup, list_groups
from syncattn_fairseq.registered_names import CRITERION, TASK

HEAD = """# Options

What the plugin adds to fairseq's options, made from the code (`scripts/options_page.py`).
`syncattn-options ARCH` shows them with the defaults of an architecture: `transformer_dbsa` puts a
dependency head into layer 1, `transformer_lpsi` gates layers 1 and 2, and so on. Layers and heads
are counted from 1. Options that end in `-layers` take a list such as `1,2`, `all`, or nothing; a
decoder's also `same`, the encoder's.
"""
#: Parts of help texts that are left out, since the head of the page says them for all options.
SAID = (", such as 1,2, or all (none)", "; same: those of the encoder")
FOOT = """

Next: [systems](systems.md), what these heads and losses do; [extending](extending.md) adds yours.
"""
TITLES = {
    MODELS[0]: f"Transformers (`{MODELS[0]}` and its architectures)",
    MODELS[1]: f"RNNs (`{MODELS[1]}` and its architectures)",
    CRITERION: f"Criterion `{CRITERION}`",
    TASK: f"Task `{TASK}`",
}


def format_group(group: OptionGroup) -> str:
    """Return a group of options as a Markdown table with a heading."""
    rows = []
    for field in group.fields:
        default = "off" if field.default is False else f"`{field.default}`"
        default = "" if field.default in ("", None) else default
        text = field.metadata["help"]
        for said in SAID:
            text = text.replace(said, "")
        rows.append(f"| `{flag(field.name)}` | {default} | {text} |")
    return "\n".join([f"\n### {group.title}\n", "| option | default | |", "|---|---|---|", *rows])


def make_page() -> str:
    """Return the text of docs/options.md."""
    groups = list_groups()
    sections = (
        "\n".join([f"\n## {title}", *(format_group(g) for g in groups if g.owner == owner)])
        for owner, title in TITLES.items()
    )
    return HEAD + "\n".join(sections) + FOOT


if __name__ == "__main__":
    print(make_page(), end="")
