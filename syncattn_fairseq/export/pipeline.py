"""One export, from a checkpoint to a checked folder."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..base.errors import DataError
from ..base.folders import making
from ..data.schemes import store_schemes
from ..inference.exported import About
from ..inference.segmenters import languages_file
from .card import Facts, make_card
from .check import compare, load_sample, scores
from .check_subwords import check_subwords
from .ctranslate2_format import CTranslate2Format
from .fairseq_format import FairseqFormat
from .format import Format
from .plain import Plain, load_plain
from .shortlist import write_shortlist
from .transformers_format import TransformersFormat

FORMATS: dict[str, type[Format]] = {
    "fairseq": FairseqFormat,
    "ctranslate2": CTranslate2Format,
    "transformers": TransformersFormat,
}


def export(
    path: str | Path,
    data: str | Path,
    format: str,
    output: str | Path,
    quantization: str | None = None,
    subwords: Sequence[str | Path] | None = None,
    user_dir: str | Path | None = None,
    shortlist: int = 0,
    scores_of: Mapping[str, Any] | None = None,
) -> str:
    """Write a model for another program, and check that it gives sentences the same scores.

    Args:
        path: the checkpoint.
        data: folder of the binarised corpus, for the dictionaries and for sentences.
        format: ``fairseq``, ``ctranslate2`` or ``transformers``.
        output: folder to make; it appears when everything is done and checked.
        quantization: type of the stored weights; None: float32.
        subwords: the subword model, which is copied too; two if source and target have their own.
        user_dir: the folder of your own plugin, if the model was trained with one.
        shortlist: how many target subwords to allow for each source subword; 0: all of them.
        scores_of: what `.card.read_scores` has read of the model, for its README.md.

    Returns:
        The result of the check, in words.

    Raises:
        DataError: no plain Transformer computes what the model does, the format cannot represent
            something, or scores differ.
    """
    output = Path(output)
    if output.exists():
        raise DataError(f"{output}: already exists; remove it or name another folder")
    kind = FORMATS[format]()
    if quantization is not None and quantization not in kind.quantizations:
        known = ", ".join(kind.quantizations) or "none"
        raise DataError(f"--quantization {quantization}: --format {format} has {known}")
    if shortlist and not kind.has_shortlists:
        raise DataError(f"--shortlist {shortlist}: only --format ctranslate2 has it")
    plain = load_plain(path, data, subwords, user_dir)
    kind.refuse(plain)
    if shortlist and plain.labels is not None:
        plain.reject("--shortlist does not go with dependency labels in the source")
    sample = load_sample(plain.task, plain.model.max_positions())
    check_subwords(plain, sample)
    with making(output) as folder:
        kind.write(plain, folder, quantization)
        expected = scores(plain.original, sample.net_input, sample.target)
        found = kind.scores(folder, plain, sample)
        said = compare(expected, found, sample.tokens, quantization is None, plain.name)
        if shortlist:
            write_shortlist(plain, folder, shortlist)
        if kind.loads_here:
            _add_subwords(plain, folder)
            _describe(plain, format, shortlist).write(folder)
        languages, usage = (plain.source, plain.target), kind.usage(plain, output)
        facts = Facts(languages, format, plain.name, said, usage, quantization, scores_of)
        (folder / "README.md").write_text(make_card(facts), encoding="utf-8")
    return said


def _add_subwords(plain: Plain, folder: Path) -> None:
    """Copy the subword models, and how the binarised corpus says that they mark subwords."""
    languages = (plain.source, plain.target)
    schemes = zip(languages, plain.task.schemes, strict=True)
    if known := {language: scheme for language, scheme in schemes if scheme}:
        store_schemes(folder, known)
    for path, language in zip(plain.subwords or (), languages, strict=plain.subwords is not None):
        shutil.copyfile(path, folder / languages_file(language))


def _describe(plain: Plain, format: str, shortlist: int) -> About:
    return About(
        format=format,
        source=plain.source,
        target=plain.target,
        labels=plain.labels is not None,
        alignment_layer=plain.alignment_layer,
        longest_source=plain.model.max_positions()[0] - 1,
        positions=plain.positions,
        shortlist=shortlist,
    )
