"""Print docs/options.md: what our models, criterion and task add to fairseq's options.

Usage: ``python scripts/options_page.py > docs/options.md``; a test compares them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from fairseq.tasks.translation import TranslationConfig

import syncattn_fairseq.plugin  # noqa: F401  (registers everything)
from syncattn_fairseq.criterions.terms import TERMS
from syncattn_fairseq.models.config import AlignmentOptions
from syncattn_fairseq.models.rnn_config import SyntaxRNNConfig
from syncattn_fairseq.modules import PARTS
from syncattn_fairseq.tasks.translation_with_syntax import TranslationWithSyntaxConfig

HEAD = """# Options

Made from the code by `python scripts/options_page.py > docs/options.md`; a test compares them.
`fairseq-train --help` does not show a plugin's options: this page does. Architectures change
defaults: `transformer_dbsa` puts a dependency head into layer 1, `transformer_lpsi` gates layers
1 and 2, and so on. Layers and heads are counted from 1.
"""


def format_section(title: str, fields: Iterable[Any]) -> str:
    """Format a table of dataclasses' fields, each option once."""
    rows: dict[str, str] = {}
    for field in fields:
        if "help" in field.metadata and not field.name.startswith("_"):
            flag = "`--" + field.name.replace("_", "-") + "`"
            default = "off" if field.default is False else f"`{field.default}`"
            default = "" if field.default in ("", None) else default
            rows[flag] = f"| {flag} | {default} | {field.metadata['help']} |"
    return "\n".join([f"\n## {title}\n", "| option | default | |", "|---|---|---|", *rows.values()])


def list_fields(*options: type) -> list[Any]:
    """List the fields of dataclasses."""
    return [field for config in options for field in dataclasses.fields(config)]


def make_page() -> str:
    """Return the page."""
    parts = (part.Options for part in PARTS.values())
    terms = (term.Options for term in TERMS.values())
    inherited = {field.name for field in list_fields(TranslationConfig)}
    task = list_fields(TranslationWithSyntaxConfig)
    sections = {
        "Transformers (`syntax_transformer` and its architectures)": list_fields(
            *parts, AlignmentOptions
        ),
        "RNNs (`syntax_rnn` and its architectures)": list_fields(SyntaxRNNConfig),
        "Criterion `label_smoothed_cross_entropy_with_syntax`": list_fields(*terms),
        "Task `translation_with_syntax`": [f for f in task if f.name not in inherited],
    }
    return HEAD + "\n".join(format_section(*section) for section in sections.items()) + "\n"


if __name__ == "__main__":
    print(make_page(), end="")
