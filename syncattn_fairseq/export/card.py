"""The README.md of an exported model: a model card, as model hubs read it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..base.errors import DataError, printable
from ..base.files import read_json
from ..base.text_tables import escape_html
from ..data.preparation import Preparation

#: A bound that no score and no number of sentences reaches.
_LARGEST = 1e15
#: What hubs call the library of a format, if that is not the format's own name.
_LIBRARIES = {"marian": "transformers"}
#: How the card names a format, where its name alone says too little.
_TITLES = {
    "marian": "MarianMTModel of Hugging Face Transformers",
    "transformers": "FSMTForConditionalGeneration of Hugging Face Transformers",
}
#: A licence as model hubs name it.
_LICENCE = r"[A-Za-z0-9][A-Za-z0-9.+-]{0,63}"


def make_card(
    languages: tuple[str, str],
    format: str,
    made_from: str,
    checked: str,
    usage: Sequence[str],
    quantization: str | None = None,
    scores: Mapping[str, Any] | None = None,
    licence: str | None = None,
    trained_on: str | None = None,
) -> str:
    """Return the model card of an exported model, the Markdown of its README.md.

    Args:
        languages: the source and the target language.
        format: the export format.
        made_from: the path of the checkpoint; the card has only its name, as it is published.
        checked: the result of the comparison of scores, in words.
        usage: examples of Python code that translate with the model.
        quantization: the type of the weights; None: not said.
        scores: the scores that `read_scores` returned; None: not shown.
        licence: the model's licence, as hubs name it, such as ``cc-by-4.0``; None: not stated.
        trained_on: the name of the training data, a line; None: not stated.
    """
    source, target = languages
    stored = f", weights in {quantization}" if quantization else ""
    head = {
        "language": [*dict.fromkeys(languages)],
        "pipeline_tag": "translation",
        **({} if licence is None else {"license": licence}),
        "library_name": _LIBRARIES.get(format, format),
        "tags": ["translation", "syncattn-fairseq"],
    }
    # JSON is YAML, whatever the texts contain.
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in head.items()]
    parts = [
        "\n".join(["---", *lines, "---"]),
        f"# A translation model, {source} to {target}",
        f"For {_TITLES.get(format, format)}{stored}; made by syncattn-export from "
        f"`{Path(made_from).name}`.\n"
        f"{checked[0].upper()}{checked[1:]}, here and in that checkpoint.",
        f"Trained on: {escape_html(trained_on) if trained_on else 'not said'}.\n"
        f"Licence: {licence or 'not said'}.",
        "Python for the folder that has this one in it:",
        *(f"```python\n{code}\n```" for code in usage),
    ]
    if scores is not None:
        parts.append("\n\n".join(["## Scores", *_describe(scores)]))
    return "\n\n".join(parts) + "\n"


def check_words(licence: str | None, trained_on: str | None) -> None:
    """Raise `DataError` if a model card cannot show this licence or training-data name."""
    if licence is not None and not re.fullmatch(_LICENCE, licence):
        raise DataError(f"--licence {licence!r}: give its short name, such as cc-by-4.0 or mit")
    if trained_on is not None and not (trained_on.strip() and trained_on.isprintable()):
        raise DataError(f"--trained-on {trained_on!r}: name the training data in one line")


def sentence_code(preparation: Preparation | None) -> str:
    """Return Python code of an example sentence, tokenised unless the subword model reads raw text.

    Only models of raw sentences read them as people write them. What splits other sentences into
    words, and their first words into small letters, is in `syncattn_fairseq.load`: no library does
    exactly the same.
    """
    if preparation is not None and preparation.tokenizer == "raw":
        return '"A sentence."'
    return '"A sentence ."'


def describe_words(preparation: Preparation | None) -> str:
    """Return a Python comment about how the model's input is split into words.

    The comment is empty if that is unknown, or if the model reads raw sentences.
    """
    if preparation is None or preparation.tokenizer == "raw":
        return ""
    if preparation.tokenizer != "moses":
        return f"# In words, as they are split by {preparation.tokenizer}.\n"
    options = [f"--lang {preparation.language}"]
    options += ["--normalise"] * preparation.normalise + ["--aggressive"] * preparation.aggressive
    options += ["--lowercase"] * (preparation.case == "lower") + [f"--rules {preparation.rules}"]
    small = ", and with a small letter at the beginning, except of names"
    return (
        f"# In words, as syncattn-tokenise {' '.join(options)} splits them"
        f"{small * (preparation.case == 'true')}.\n"
    )


def read_scores(path: str | Path, system: str | None = None) -> dict[str, Any]:
    """Read the scores of one system from the JSON written by ``syncattn-score``.

    Args:
        path: the JSON file.
        system: the name of the system; None: the only one.

    Raises:
        DataError: the file is something else, or has no such system, or several without a name.
    """
    other = DataError(f"{path}: the file was not written by syncattn-score --json")
    try:
        systems = read_json(path)["systems"]
    except (ValueError, KeyError, TypeError):
        raise other from None
    if not isinstance(systems, dict) or not systems:
        raise other
    name, known = next(iter(systems)) if system is None else system, printable(", ".join(systems))
    if system is None and len(systems) > 1:
        raise DataError(f"{path}: the file has several systems; name one of {known}")
    if name not in systems:
        raise DataError(f"{path}: the file has no system {name}; choose from {known}")
    scores: dict[str, Any] = systems[name]
    try:
        [*_describe(scores)]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise other from None
    return scores


def _describe(scores: Mapping[str, Any]) -> Iterator[str]:
    numbers = {name: f"{_number(score):.2f}" for name, score in scores["scores"].items()}
    others: Mapping[str, Any] = scores.get("sentence_scores") or {}
    numbers |= {name: f"{_number(score['mean']):.4f}" for name, score in others.items()}
    names = [escape_html(_line(name)).replace("|", "/") for name in numbers]
    rows = ["| " + " | ".join(row) + " |" for row in (names, numbers.values())]
    yield "\n".join([rows[0], "|" + "---|" * len(names), rows[1]])
    test = scores.get("significance")
    if test and test["p"] is not None:
        difference, p = _number(test["difference"]), _number(test["corrected"])
        where = "ahead of" if difference > 0 else "behind"
        chance = "may be" if test["verdict"] == "not known" else "is more than"
        yield (
            f"{abs(difference):.2f} BLEU {where} {escape_html(_line(test['baseline']))}, which "
            f"{chance} chance (p = {p:.4f} by paired approximate randomisation over the sentences "
            "of one test set, corrected for all systems that were compared); that says nothing of "
            "other trainings of these systems."
        )
    signatures = (f"{_line(k)} `{_line(v)}`" for k, v in scores["signatures"].items())
    yield f"{_number(scores['sentences']):d} sentences. {', '.join(signatures)}."


def _number(value: Any) -> Any:
    if type(value) not in (int, float) or not abs(value) < _LARGEST:
        raise TypeError(value)
    return value


def _line(text: Any) -> str:
    if not isinstance(text, str) or not text.isprintable():
        raise TypeError(text)
    return text.replace("`", "'")
