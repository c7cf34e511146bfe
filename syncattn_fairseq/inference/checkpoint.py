"""fairseq checkpoints: every system of this package, and fairseq's own Transformer."""

from __future__ import annotations

import logging
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from fairseq import checkpoint_utils, utils
from fairseq.data import LanguagePairDataset, data_utils
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models import FairseqEncoderDecoderModel
from omegaconf import OmegaConf
from torch import Tensor

from ..base.errors import DataError
from ..base.user_dir import import_user_dir
from ..checkpoints.building import build, naming_checkpoint
from ..checkpoints.options import list_options
from ..data.dataset import SyntaxPairDataset
from ..tasks.forced import Forced
from ..tasks.translation_with_syntax import (
    TranslationWithSyntaxConfig,
    TranslationWithSyntaxTask,
)
from .analysis import Alignment, Distances, Pair, Parse, Sentence, Translation
from .model import Model
from .subwords import Cutter, is_plain_name
from .trial import try_model

T = TypeVar("T")


class CheckpointModel(Model):
    """An ensemble of checkpoints, usually just one.

    Args:
        ensemble: the checkpoints.
        cutters: for source and target.
        device: where to run.
    """

    def __init__(
        self, ensemble: Ensemble, cutters: tuple[Cutter, Cutter], device: torch.device
    ) -> None:
        super().__init__(cutters)
        self.ensemble = ensemble
        self.task = ensemble.task
        self.models = ensemble.models
        self.device = device
        for model in self.models:
            model.to(device).eval()
            # As in fairseq-generate: what no longer changes is computed once.
            model.prepare_for_inference_(
                OmegaConf.create({"generation": {"print_alignment": None}})
            )

    @property
    def name(self) -> str:
        """The paths of the checkpoints."""
        return self.ensemble.name

    @property
    def languages(self) -> tuple[str, str]:
        """See `Model`."""
        return self.ensemble.source, self.ensemble.target

    def parse(
        self, sentences: Sequence[str], translations: Sequence[str] | None = None
    ) -> list[Pair[Parse]]:
        """See `Model`."""
        layers = self._layers_that_show("dependency")
        if not any(layers):
            raise DataError(f"{self.name}: the model has no dependency heads")
        pairs = self._pairs(sentences, translations)
        found = [
            _unread(pair, layers, lambda sentence, _: Parse(sentence, _nothing(sentence, sentence)))
            for pair in pairs
        ]
        for indices, forced in self._forced(pairs):
            sides = [forced.dependencies(key) for key in ("src_dependency", "tgt_dependency")]
            matrices = [
                attention if attention is None else forced.between_tokens(attention, tokens, tokens)
                for attention, tokens in zip(sides, (forced.source, forced.target), strict=True)
            ]
            for row, index in enumerate(indices):
                source, target = pairs[index]
                parses = [
                    None if matrix is None else Parse(sentence, matrix[row].float().cpu().numpy())
                    for matrix, sentence in zip(matrices, (source, target.sentence), strict=True)
                ]
                found[index] = Pair(target, *parses)
        return found

    def align(
        self,
        sentences: Sequence[str],
        translations: Sequence[str] | None = None,
        layer: int | None = None,
        head: int | None = None,
    ) -> list[Alignment]:
        """See `Model`."""
        layers = min(model.decoder.num_layers for model in self.models)
        if layer is not None and not 1 <= layer <= layers:
            raise DataError(f"{self.name}: no layer {layer}; the decoder has layers 1 to {layers}")
        pairs = self._pairs(sentences, translations)
        found = [
            Alignment(source, target.sentence, _nothing(target.sentence, source))
            for source, target in pairs
        ]
        with self._showing(head):
            for indices, forced in self._forced(pairs):
                if layer is None:
                    attention = forced.mean([extra["attn"][0] for extra in forced.extras])
                else:
                    attention = forced.cross_attention()[layer - 1]
                assert attention is not None
                matrices = forced.between_tokens(attention, forced.target, forced.source)
                for index, matrix in zip(indices, matrices, strict=True):
                    source, target = pairs[index]
                    found[index] = Alignment(source, target.sentence, matrix.float().cpu().numpy())
        return found

    @contextmanager
    def _showing(self, head: int | None) -> Iterator[None]:
        """Let the decoders show one head of each layer, as ``--alignment-head`` does."""
        if head is None:
            yield
            return
        decoders = [model.decoder for model in self.models]
        if not all(hasattr(decoder, "show_head") for decoder in decoders):
            raise DataError(f"{self.name}: the model can show only the mean of its heads")
        try:
            for decoder in decoders:
                decoder.show_head(head)
            yield
        except ValueError as error:
            raise DataError(f"{self.name}: {error}") from None
        finally:
            for decoder in decoders:
                decoder.show_head(None)

    def distances(
        self, sentences: Sequence[str], translations: Sequence[str] | None = None
    ) -> list[Pair[Distances]]:
        """See `Model`."""
        layers = self._layers_that_show("distances")
        if not all(layers):
            raise DataError(f"{self.name}: the model measures no syntactic distances")
        pairs = self._pairs(sentences, translations)
        found = [
            _unread(pair, layers, lambda sentence, side: Distances(sentence, {n: [] for n in side}))
            for pair in pairs
        ]
        for indices, forced in self._forced(pairs):
            source, target = forced.distances("src_distances"), forced.distances("tgt_distances")
            for row, index in enumerate(indices):
                of_source, translation = pairs[index]
                found[index] = Pair(
                    translation,
                    Distances(of_source, {layer: rows[row] for layer, rows in source.items()}),
                    Distances(
                        translation.sentence, {layer: rows[row] for layer, rows in target.items()}
                    ),
                )
        return found

    def _layers_that_show(self, name: str) -> list[list[int]]:
        """Return the layers of encoder and decoder whose heads show something."""
        sides = []
        for side in ("encoder", "decoder"):
            showing = (getattr(getattr(model, side), "showing", {}) for model in self.models)
            sides.append(sorted({n for layers in showing for n in layers.get(name, ())}))
        return sides

    def _translate(self, sources: Sequence[Sentence]) -> list[Translation]:
        settings = GenerationConfig(beam=self.beam, lenpen=self.length_penalty)
        generator = self.task.build_generator(self.models, settings)
        batch = self._batch(sources)
        hypotheses = self.task.inference_step(generator, self.models, batch)
        found = [Translation(Sentence([], self.target_cutter.scheme)) for _ in sources]
        for index, candidates in zip(batch["id"].tolist(), hypotheses, strict=True):
            best = candidates[0]
            pieces = self.task.target_dictionary.string(best["tokens"]).split()
            sentence = Sentence(pieces, self.target_cutter.scheme)
            found[index] = Translation(sentence, float(best["score"]))
        return found

    def _batch(self, sources: Sequence[Sentence]) -> dict[str, Any]:
        """Make a batch of sentences; fairseq reorders them, ``id`` gives their numbers."""
        dictionary, fields = self.task.source_dictionary, self.task.fields
        if self.ensemble.reads_parses and self.task.cfg.source_parser is None:
            raise DataError(
                f"{self.name}: the model reads the parse of its source; name a parser, as in "
                "source_parser='stanza:en' (--source-parser stanza:en)"
            )
        texts = [" ".join(source.pieces) for source in sources]
        longest = min(model.max_positions()[0] for model in self.models)
        for source in sources:
            if len(source.pieces) >= longest:
                raise DataError(
                    f"{self.name}: a sentence has {len(source.pieces)} subwords, but the model "
                    f"reads at most {longest - 1}; split it: {str(source)[:60]!r}..."
                )
        tokens = [dictionary.encode_line(text, add_if_not_exist=False).long() for text in texts]
        heads, labels = self.task.input_parses(texts)
        pairs = LanguagePairDataset(
            tokens,
            [len(sentence) for sentence in tokens],
            dictionary,
            tgt_dict=self.task.target_dictionary,
        )
        dataset = SyntaxPairDataset(pairs, heads, None, labels, fields)
        batch: dict[str, Any] = dataset.collater([dataset[i] for i in range(len(dataset))])
        return utils.apply_to_sample(lambda tensor: tensor.to(self.device), batch)

    def _forced(
        self, pairs: Sequence[tuple[Sentence, Translation]]
    ) -> Iterator[tuple[list[int], Forced]]:
        """Force translations through the models; yield batches and their sentences' indices."""
        dictionary = self.task.target_dictionary
        for indices in self._batches([source for source, _ in pairs]):
            batch = self._batch([pairs[i][0] for i in indices])
            in_order = [indices[i] for i in batch["id"].tolist()]
            targets: list[Tensor] = [
                dictionary.encode_line(
                    " ".join(pairs[i][1].sentence.pieces), add_if_not_exist=False
                )
                .long()
                .to(self.device)
                for i in in_order
            ]
            yield in_order, Forced(self.models, batch["net_input"], targets, dictionary)


class Ensemble:
    """fairseq checkpoints and their task.

    Args:
        paths: the checkpoints, separated by ``:`` as in fairseq.
        data: folder with the dictionaries; None: the checkpoint's folder, or the one used in
            training.
        source_parser: the source's parser, see :func:`..parsing.registry.open_parser`.
        user_dir: folder of the plugin that they were trained with; nothing else is imported.

    Raises:
        DataError: a file is not a translation model's checkpoint, or the dictionaries are missing.
    """

    def __init__(
        self,
        paths: str,
        data: str | Path | None = None,
        source_parser: str | None = None,
        user_dir: str | Path | None = None,
    ) -> None:
        if user_dir is not None:
            import_user_dir(Path(user_dir))
        for room in ("tasks", "data"):  # they log the size of everything they load
            logging.getLogger(f"fairseq.{room}").setLevel(logging.WARNING)
        self.name = paths
        self.paths = [Path(path) for path in utils.split_paths(paths)]
        states = [_load(path) for path in self.paths]
        if user_dir is None:
            for path, state in zip(self.paths, states, strict=True):
                _require_plugin(path, _section(path, state, "common").get("user_dir"))
        trained = _task_options(self.paths[0], states[0])
        self.data = self._find_data(data, trained)
        self.task = self._make_task(trained)
        self.models = [
            self._make_model(path, state) for path, state in zip(self.paths, states, strict=True)
        ]
        fields = self.task.fields
        self.reads_parses = fields.reads("heads") or fields.reads("labels")
        if self.reads_parses and source_parser is not None:
            self.task.cfg.source_parser = source_parser
            self.task.input_parses  # noqa: B018  (opens the parser, or fails at once)
        #: The first model's training options.
        self.options = _model_options(self.paths[0], states[0])
        #: That training's history, as fairseq keeps it.
        self.history: list[dict[str, Any]] = states[0].get("optimizer_history") or []

    def _find_data(self, given: str | Path | None, trained: dict[str, Any]) -> Path:
        """Find the dictionaries, and from them the languages if training did not name them."""
        places = [self.paths[0].parent, *map(Path, utils.split_paths(trained.get("data") or ""))]
        if given is not None:
            places = [Path(path) for path in utils.split_paths(str(given))]
        for place in places:
            pair = trained.get("source_lang"), trained.get("target_lang")
            if None in pair and place.is_dir():
                pair = data_utils.infer_language_pair(str(place))
            if all((place / f"dict.{language}.txt").is_file() for language in pair):
                self.source, self.target = map(str, pair)
                return place
        raise DataError(
            f"{self.name}: no dictionaries, dict.LANGUAGE.txt, in {' or '.join(map(str, places))}; "
            "say where the binarised corpus is: data=FOLDER (--data-bin FOLDER)"
        )

    def _make_task(self, trained: dict[str, Any]) -> Any:
        cfg = OmegaConf.structured(TranslationWithSyntaxConfig)
        cfg.data, cfg.source_lang, cfg.target_lang = str(self.data), self.source, self.target
        for option in ("left_pad_source", "left_pad_target"):
            if trained.get(option) is not None:
                cfg[option] = trained[option]
        cfg.missing_parses = "ignore"  # the parser may fail on some sentences
        # fairseq would otherwise take these from the command's other options.
        cfg.train_subset, cfg.gen_subset, cfg.results_path = "train", "test", None
        cfg.dataset_impl, cfg.required_seq_len_multiple = None, 1
        return TranslationWithSyntaxTask.setup_task(cfg)

    def _make_model(self, path: Path, state: dict[str, Any]) -> Any:
        options = _with_parsers(_model_options(path, state))
        for side in ("encoder", "decoder"):  # the checkpoint has the embeddings
            setattr(options, f"{side}_embed_path", None)
        with naming_checkpoint(path):
            model = build(self.task, options, state["model"])
            if not isinstance(model, FairseqEncoderDecoderModel):
                raise DataError("is no translation model")
            try_model(self.task, model)
        return model


def find_device(name: str | None) -> torch.device:
    """Return a device by its name; None: a GPU if there is one.

    Raises:
        DataError: PyTorch cannot use it here.
    """
    name = name or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError, ImportError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(
            f"device {name}: PyTorch cannot use it ({reason}); give cpu, or cuda for a GPU"
        ) from None
    return torch.device(name)


def _load(path: Path) -> dict[str, Any]:
    state: dict[str, Any] = checkpoint_utils.load_checkpoint_to_cpu(str(path))
    if not state.get("cfg"):
        raise DataError(f"{path}: contains no fairseq model")
    return state


def _section(path: Path, state: dict[str, Any], name: str) -> dict[str, Any]:
    """Return one group of a checkpoint's options."""
    with naming_checkpoint(path):
        return list_options(list_options(state["cfg"]).get(name))


def _task_options(path: Path, state: dict[str, Any]) -> dict[str, Any]:
    """Return what training said about its data."""
    found = _section(path, state, "task")
    sound: dict[str, Callable[[Any], bool]] = {
        "data": lambda value: isinstance(value, str),
        "source_lang": is_plain_name,
        "target_lang": is_plain_name,
        "left_pad_source": lambda value: isinstance(value, bool),
        "left_pad_target": lambda value: isinstance(value, bool),
    }
    for option, is_sound in sound.items():
        value = found.get(option)
        if value is not None and not is_sound(value):
            raise DataError(f"{path}: its option {option} is {str(value)[:60]!r}")
    return found


def _model_options(path: Path, state: dict[str, Any]) -> Namespace:
    found = _section(path, state, "model")
    return Namespace(**{"_name": found.get("arch"), **found})


def _require_plugin(path: Path, user_dir: Any) -> None:
    """Check that the user's own plugin that a checkpoint was trained with is imported.

    It is not imported here: the file may come from anyone, and names what it likes. Without the
    plugin, its options would be ignored, and the model would lack its heads.
    """
    if user_dir and Path(str(user_dir)).name not in sys.modules:  # as this package itself
        raise DataError(
            f"{path}: was trained with the plugin {str(user_dir)[:200]!r}, which is imported only "
            "if you name it: --user-dir FOLDER (in Python: user_dir=FOLDER)"
        )


def _with_parsers(options: Namespace) -> Namespace:
    """Restore the parser heads of an exported model.

    Exports name these heads in their options, which fairseq's own Transformer ignores.

    Args:
        options: a checkpoint's options.

    Returns:
        For an export, the options of a syntax Transformer with ordinary heads; else the same.
    """
    found = dict(vars(options))
    if found.get("arch") == "transformer" and "alignment_layer" in found:
        found |= {"arch": "syntax_transformer", "_name": "syntax_transformer"}
        found |= {"encoder_parser": "dot", "decoder_parser": "dot"}
    return Namespace(**found)


def _unread(
    pair: tuple[Sentence, Translation],
    layers: Sequence[list[int]],
    make: Callable[[Sentence, list[int]], T],
) -> Pair[T]:
    """Return what is found in sentences without words, on the sides with layers that show it.

    Args:
        pair: source and translation.
        layers: those of each side.
        make: makes it from an empty sentence and its side's layers.
    """
    source, target = pair
    sides = zip((source, target.sentence), layers, strict=True)
    found = [
        make(sentence, side) if side and not sentence.pieces else None for sentence, side in sides
    ]
    return Pair(target, *found)


def _nothing(rows: Sentence, columns: Sentence) -> Any:
    return torch.zeros(len(rows.pieces), len(columns.pieces)).numpy()
