"""Convert a syntax Transformer into an equivalent plain Transformer, if possible.

Everything that depends on the kinds of heads and on their parameters' names is here. Whether source
labels and positions can be exported depends on the format.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq.models.transformer import TransformerModel, TransformerModelBase
from torch import Tensor

from ..base.errors import DataError
from ..data.fingerprint import (
    Fingerprint,
    check_text_steps,
    describe_meaning,
    describe_preparations,
    describe_subwords,
)
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
from ..models.ends import ZeroStart, add_output_bias
from ..modules.folded_linear import FoldedLinear
from ..modules.heads import (
    DependencyHeads,
    GatedHeads,
    Heads,
    ParentScaledHeads,
    TreeWindowHeads,
    WindowHeads,
)
from ..modules.positions import POSITIONS

#: Options kept so that an export can be read as a syntax Transformer again: which of its heads are
#: a parser's, and which layer aligns. fairseq's own Transformer ignores them.
_SYNTAX_OPTIONS = (
    "encoder_dependency_layer",
    "decoder_dependency_layer",
    "dependency_heads",
    "tgt_dependency_rows",
)

#: Why these kinds of heads do not fold.
_REASONS: dict[type[Heads], str] = {
    DependencyHeads: (
        "its parser (LISA) applies a leaky ReLU to queries and keys, which ordinary heads do not "
        "have"
    ),
    GatedHeads: (
        "its heads have gates computed from syntactic distances (LPSI), which ordinary heads do "
        "not have"
    ),
    ParentScaledHeads: (
        "its heads are scaled by the source's parse (PASCAL), which ordinary heads do not read"
    ),
    TreeWindowHeads: (
        "its cross-attention reads the source's tree (SDAtt), which ordinary heads do not read"
    ),
    WindowHeads: (
        "its heads attend within a window (local attention), and ordinary heads attend to all words"
    ),
}


def refuse(model: Any, name: str) -> None:
    """Raise `DataError` if no plain Transformer can compute the model's attention.

    Source labels and positions are left to the export format.
    """
    if not isinstance(model, TransformerModelBase):
        kind = type(model).__name__
        raise DataError(
            f"{name}: cannot be exported: {kind} is a recurrent network, not a Transformer"
        )
    for module in model.modules():
        if reason := _reason(module):
            raise DataError(f"{name}: cannot be exported: {reason}")


def _reason(module: Any) -> str | None:
    if not isinstance(module, Heads) or module.folds:
        return None
    # A subclass attends in another way, so that its parent's reason may be false.
    default = f"its {module.title} heads attend differently from ordinary heads"
    return _REASONS.get(type(module), default)


@torch.no_grad()
def fold(model: Any, options: Any, task: Any) -> TransformerModel:
    """Convert a model to a plain fairseq Transformer that computes the same in evaluation.

    A bi-affine head is an ordinary one with another query: U and a key bias are multiplied into the
    query projection. A label embedding is left out, and so are positions in the attention. `refuse`
    has accepted the model. The result is on the CPU.
    """
    model.eval()
    state = {key: value.float().cpu() for key, value in model.state_dict().items()}
    for name, module in model.named_modules():
        if isinstance(module, FoldedLinear):
            state[f"{name}.weight"] = module.weight.float().cpu()
            state[f"{name}.bias"] = module.bias.float().cpu()
    folded: TransformerModel = TransformerModel.build_model(
        list_transformer_options(model, options), task
    )
    _give_ends(folded, model)
    # The other parameters of syntactic parts are folded in, or left out.
    folded.load_state_dict({key: state[key] for key in folded.state_dict()})
    return folded.eval()


def _give_ends(folded: Any, model: Any) -> None:
    """Give a plain Transformer the features of Marian's models unknown to fairseq's options."""
    if getattr(model.cfg, "output_bias", False):
        add_output_bias(folded.decoder.output_projection)
    if getattr(model.cfg, "zero_start", False):
        start = model.decoder.embed_tokens.start
        folded.decoder.embed_tokens = ZeroStart(folded.decoder.embed_tokens, start)
    for side in (folded.encoder, folded.decoder):
        kind = POSITIONS[getattr(model.cfg, "positions", "absolute")]
        embedding = kind.embed(side.embed_tokens.embedding_dim, side.padding_idx)
        if embedding is not None:
            side.embed_positions = embedding


def list_transformer_options(model: Any, options: Any) -> Namespace:
    """Convert a model's options to those of fairseq's own Transformer (``--arch transformer``)."""
    parser = ArgumentParser()
    TransformerModel.add_args(parser)
    names = {action.dest for action in parser._actions} - {"help"}
    names |= {"max_source_positions", "max_target_positions", *_SYNTAX_OPTIONS}
    originals = vars(options) if isinstance(options, Namespace) else dict(options)
    values = {name: value for name, value in originals.items() if name in names}
    # The model knows which --positions replace position embeddings.
    values["no_token_positional_embeddings"] = model.cfg.no_token_positional_embeddings
    # Other programs copy the layers, and these options matter only in training.
    values |= {"encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0}
    values |= {"encoder_layers_to_keep": None, "decoder_layers_to_keep": None}
    values |= {"checkpoint_activations": False, "offload_activations": False}
    values |= {"arch": "transformer", "_name": "transformer"}
    return Namespace(**values, alignment_layer=find_alignment_layer(model))


def find_alignment_layer(model: Any) -> int:
    """Return the number, from 1, of the decoder layer whose cross-attention aligns words."""
    return getattr(model.decoder, "alignment_layer", model.decoder.num_layers)


@dataclass(frozen=True)
class FoldedModel:
    """A plain Transformer converted from a checkpoint, with all data for its export.

    Attributes:
        name: the path of its checkpoint.
        original: the model that was folded.
        model: fairseq's own Transformer, which computes the same, but for labels and for positions
            in the attention.
        options: the options of the plain Transformer.
        task: the fairseq task, with the dictionaries.
        source: the source language.
        target: the target language.
        labels: embedding of the source's dependency labels, ``(L, d)``, which takes the last d
            dimensions of the source embedding; None if the model reads no labels.
        alignment_layer: decoder layer, from 1, whose cross-attention aligns.
        subwords: the subword models of source and target; None if there are none.
        segmenters: the same models, opened to split text.
        preparations: how sentences became the words of each language; empty: not said.
        history: the training's history, as fairseq keeps it.
        fingerprint: the fingerprint of the training data.
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
    fingerprint: Fingerprint

    @property
    def positions(self) -> str:
        """The kind of position encoding, by its name in ``--positions``."""
        return getattr(self.original.cfg, "positions", "absolute")

    @property
    def source_words(self) -> Sequence[str]:
        """The symbols of the source dictionary, in fairseq's order."""
        return self.task.source_dictionary.symbols

    @property
    def target_words(self) -> Sequence[str]:
        """The symbols of the target dictionary, in fairseq's order."""
        return self.task.target_dictionary.symbols

    @property
    def label_names(self) -> Sequence[str]:
        """The symbols of the dictionary of source labels, including fairseq's special symbols."""
        return self.task.source_label_dictionary.symbols

    @property
    def sides(self) -> tuple[Preparation | None, Preparation | None]:
        """The preparation (how sentences became words) of source and target, None if unknown."""
        return self.preparations.get(self.source), self.preparations.get(self.target)

    def reject(self, reason: str) -> None:
        """Raise a `DataError` with the reason why the model cannot be exported.

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
    """Load a checkpoint, and convert its model to a plain Transformer.

    Args:
        path: the checkpoint.
        data: the folder of the binarised corpus, for the dictionaries.
        subwords: the files of the subword models; None for none.
        user_dir: the folder of the user's plugin; None for none.

    Raises:
        DataError: the file is not a checkpoint, no plain Transformer computes what its model does,
            or a subword model is damaged or marks subwords in another way.
    """
    ensemble = Ensemble(str(path), data, user_dir=user_dir)
    if len(ensemble.models) > 1:
        raise DataError(
            f"{path}: is an ensemble; export its models one by one, or export their average"
        )
    [model] = ensemble.models
    refuse(model, str(path))
    embedding = getattr(model.encoder, "label_embedding", None)
    folders, languages = [ensemble.paths[0].parent, ensemble.data], ensemble.languages
    check_text_steps(ensemble.fingerprints, subwords, folders, languages)
    paths = pair_subwords(subwords) or find_subwords(folders, *languages)
    preparations = next(filter(None, map(stored_preparations, folders)), {})
    [trained] = ensemble.fingerprints.values()
    meaning = describe_meaning([ensemble.data], languages)
    for language, each in zip(languages, paths or (), strict=False):
        meaning |= describe_subwords(language, each)
    meaning |= describe_preparations(preparations, languages)
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
        segmenters=paths
        and open_segmenters(paths, (), languages, ensemble.vocabularies, ensemble.task.schemes),
        preparations=preparations,
        history=ensemble.history,
        fingerprint=Fingerprint(meaning, trained.provenance if trained else ()).of_reader(
            embedding is not None
        ),
    )
