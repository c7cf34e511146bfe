"""A model about to be exported."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq.models.transformer import TransformerModel
from torch import Tensor

from ..base.errors import DataError
from ..data.preparation import Preparation, stored_preparations
from ..data.segmenters import (
    Segmenter,
    SubwordFiles,
    SubwordModel,
    find_subwords,
    open_segmenters,
    pair_subwords,
)
from ..inference.ensemble import Ensemble
from .fold import find_alignment_layer, fold, list_transformer_options, refuse


@dataclass(frozen=True)
class FoldedModel:
    """A plain Transformer and everything that goes with it.

    Attributes:
        name: the path of its checkpoint.
        original: the model that was folded.
        model: fairseq's own Transformer, which computes the same, but for labels and for positions
            in the attention.
        options: the latter's options.
        task: has the dictionaries.
        source: source language.
        target: target language.
        labels: embedding of the source's dependency labels, ``(L, d)``, which takes the last d
            dimensions of the source embedding; None if the model reads no labels.
        alignment_layer: decoder layer, from 1, whose cross-attention aligns.
        subwords: the subword models of source and target; None if there are none.
        segmenters: these, opened.
        preparations: how sentences became the words of each language; empty: not said.
        history: the training's history, as fairseq keeps it.
    """

    name: str
    original: Any
    model: TransformerModel
    options: Namespace
    task: Any
    source: str
    target: str
    labels: Tensor | None
    alignment_layer: int
    subwords: tuple[SubwordModel, SubwordModel] | None
    segmenters: tuple[Segmenter, Segmenter] | None
    preparations: Mapping[str, Preparation]
    history: list[dict[str, Any]]

    @property
    def positions(self) -> str:
        """How it knows the order of its tokens, as ``--positions`` has it."""
        return getattr(self.original.cfg, "positions", "absolute")

    @property
    def source_words(self) -> Sequence[str]:
        """The source's vocabulary."""
        return self.task.source_dictionary.symbols

    @property
    def target_words(self) -> Sequence[str]:
        """The target's vocabulary."""
        return self.task.target_dictionary.symbols

    @property
    def label_names(self) -> Sequence[str]:
        """The source's labels, including fairseq's special symbols."""
        return self.task.source_label_dictionary.symbols

    @property
    def sides(self) -> tuple[Preparation | None, Preparation | None]:
        """How sentences of source and target became words."""
        return self.preparations.get(self.source), self.preparations.get(self.target)

    def reject(self, reason: str) -> None:
        """Raise `DataError`: the format cannot represent the model.

        Args:
            reason: what the model has and the format lacks.
        """
        raise DataError(f"{self.name}: cannot be exported: {reason}")


def fold_checkpoint(
    path: str | Path,
    data: str | Path,
    subwords: SubwordFiles,
    user_dir: str | Path | None = None,
) -> FoldedModel:
    """Load a checkpoint and fold it.

    Args:
        path: the checkpoint.
        data: folder of the binarised corpus, with its dictionaries.
        subwords: as for :func:`..inference.load`.
        user_dir: as for :func:`..inference.load`.

    Raises:
        DataError: the file is not a checkpoint, no plain Transformer computes what it does, or the
            subword model is none, or marks subwords in another way.
    """
    ensemble = Ensemble(str(path), data, user_dir=user_dir)
    if len(ensemble.models) > 1:
        raise DataError(
            f"{path}: this is an ensemble; export its models one by one, or their average"
        )
    [model] = ensemble.models
    refuse(model, str(path))
    embedding = getattr(model.encoder, "label_embedding", None)
    folders = [ensemble.paths[0].parent, ensemble.data]
    paths = pair_subwords(subwords) or find_subwords(folders, ensemble.source, ensemble.target)
    return FoldedModel(
        name=str(path),
        original=model.float().eval(),
        model=fold(model, ensemble.options, ensemble.task),
        options=list_transformer_options(model, ensemble.options),
        task=ensemble.task,
        source=ensemble.source,
        target=ensemble.target,
        labels=None if embedding is None else embedding.weight.detach().float(),
        alignment_layer=find_alignment_layer(model),
        subwords=paths,
        segmenters=None if paths is None else _open(ensemble, paths),
        preparations=next(filter(None, map(stored_preparations, folders)), {}),
        history=ensemble.history,
    )


def _open(ensemble: Ensemble, subwords: SubwordFiles) -> tuple[Segmenter, Segmenter]:
    task = ensemble.task
    vocabularies = task.source_dictionary.symbols, task.target_dictionary.symbols
    languages = ensemble.source, ensemble.target
    return open_segmenters(subwords, (), languages, vocabularies, task.schemes)
