"""Export a model, from a checkpoint to a checked folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..base.errors import DataError
from ..base.folders import making
from ..data.preparation import store_preparations, store_schemes
from ..data.segmenters import SubwordFiles, store_subwords
from ..inference.exported import About
from .card import check_words, make_card
from .check import check_text_steps, compare, load_sample, scores
from .ctranslate2_format import CTranslate2Format
from .fairseq_format import FairseqFormat
from .fold import FoldedModel, fold_checkpoint
from .format import Format
from .marian_format import MarianFormat
from .shortlist import write_shortlist
from .transformers_format import TransformersFormat

FORMATS: dict[str, type[Format]] = {
    "fairseq": FairseqFormat,
    "ctranslate2": CTranslate2Format,
    "transformers": TransformersFormat,
    "marian": MarianFormat,
}


def export(
    path: str | Path,
    data: str | Path,
    format: str,
    output: str | Path,
    quantization: str | None = None,
    subwords: SubwordFiles = None,
    user_dir: str | Path | None = None,
    shortlist: int = 0,
    scores_of: Mapping[str, Any] | None = None,
    licence: str | None = None,
    trained_on: str | None = None,
) -> str:
    """Write a model for another program, and check that the written model gives the same scores.

    Args:
        path: the checkpoint.
        data: folder of the binarised corpus, for the dictionaries and for sentences.
        format: ``fairseq``, ``ctranslate2``, ``transformers`` or ``marian``.
        output: folder to make; it appears when everything is done and checked.
        quantization: type of the stored weights; None: float32.
        subwords: the subword model, which is copied too; two if source and target have their own.
        user_dir: the folder of your own plugin, if the model was trained with one.
        shortlist: how many target subwords to allow for each source subword; 0: all of them.
        scores_of: what `.card.read_scores` has read of the model, for its README.md.
        licence: the model's, as hubs name it, such as ``cc-by-4.0``, for its README.md.
        trained_on: the name of its training data, a line, for its README.md.

    Returns:
        The result of the check, in words.

    Raises:
        DataError: no plain Transformer computes what the model does, the format cannot represent
            something, or scores differ.
    """
    output = Path(output)
    if output.exists():
        raise DataError(f"{output}: already exists; remove it or name another folder")
    check_words(licence, trained_on)
    kind = FORMATS[format]()
    if quantization is not None and quantization not in kind.quantizations:
        known = ", ".join(kind.quantizations) or "none"
        raise DataError(f"--quantization {quantization}: --format {format} supports {known}")
    if shortlist and not kind.has_shortlists:
        raise DataError(f"--shortlist {shortlist}: only --format ctranslate2 supports shortlists")
    folded = fold_checkpoint(path, data, subwords, user_dir)
    kind.refuse(folded)
    if shortlist and folded.labels is not None:
        folded.reject("--shortlist cannot be used with a model that reads dependency labels")
    sample = load_sample(folded.task, folded.model.max_positions())
    check_text_steps(folded, sample)
    with making(output) as folder:
        kind.write(folded, folder, quantization)
        expected = scores(folded.original, sample.net_input, sample.target)
        scored = kind.scores(folder, folded, sample)
        verdict = compare(expected, scored, sample.tokens, quantization is None, folded.name)
        if shortlist:
            write_shortlist(folded, folder, shortlist)
        if folded.preparations:
            store_preparations(folder, folded.preparations)
        folded.fingerprint.write(folder)
        if kind.loads_here:
            _add_subwords(folded, folder)
            longest_source, longest_target = (n - 1 for n in folded.model.max_positions())
            About(
                format=format,
                source=folded.source,
                target=folded.target,
                labels=folded.labels is not None,
                alignment_layer=folded.alignment_layer,
                longest_source=longest_source,
                longest_target=longest_target,
                positions=folded.positions,
                shortlist=shortlist,
            ).write(folder)
        languages = (folded.source, folded.target)
        usage = kind.usage(folded, Path(output.resolve().name))
        card = make_card(
            languages,
            format,
            folded.name,
            verdict,
            usage,
            quantization,
            scores_of,
            licence,
            trained_on,
        )
        (folder / "README.md").write_text(card, encoding="utf-8")
        readable = (folder / "README.md").stat().st_mode
        for path in folder.iterdir():  # safetensors makes files for the owner alone
            path.chmod(readable)
    return verdict


def _add_subwords(folded: FoldedModel, folder: Path) -> None:
    languages = (folded.source, folded.target)
    schemes = zip(languages, folded.task.schemes, strict=True)
    if known := {language: scheme for language, scheme in schemes if scheme}:
        store_schemes(folder, known)
    if folded.subwords is not None:
        store_subwords(folder, languages, folded.subwords)
