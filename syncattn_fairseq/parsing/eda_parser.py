"""EDA (Flannery et al., 2012), for Japanese, on KyTea's words and tags."""

from __future__ import annotations

import shlex
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from .external import Command

KYTEA = "KyTea, http://www.phontron.com/kytea/"
EDA = "EDA, http://plata.ar.media.kyoto-u.ac.jp/tool/EDA/"


@dataclass(frozen=True)
class Eda(Command):
    """The command that runs EDA."""

    about: ClassVar = "EDA, on KyTea's tags for the words of the text"
    specs: ClassVar[tuple[str, ...]] = ("MODEL",)
    needs: ClassVar[tuple[str, ...]] = ("model",)

    @staticmethod
    def add_options(group: Any) -> None:
        """Add ``--model``."""
        group.add_argument("--model", type=Path, metavar="FILE", help="EDA's model")

    @classmethod
    def from_options(cls, options: Namespace) -> Eda:
        """Make the command for ``--model``."""
        return cls.from_model(str(options.model.resolve()))

    @classmethod
    def from_spec(cls, spec: str) -> Eda | None:
        """Make the command for the model after ``eda:``."""
        return cls.from_model(spec) if spec else None

    @classmethod
    def from_model(cls, model: str) -> Eda:
        """Make the command for an EDA model."""
        command = f"kytea -in tok | eda -i kytea -o conll -m {shlex.quote(model)}"
        programs = (("kytea", f"install {KYTEA}"), ("eda", f"install {EDA}"))
        return cls(command, "eda-conll", programs, (model,))
