"""fairseq checkpoints: every system of this package, and fairseq's own Transformer."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch
from fairseq import utils
from fairseq.data import LanguagePairDataset
from fairseq.dataclass.configs import GenerationConfig
from omegaconf import OmegaConf
from torch import Tensor

from ..base.errors import DataError, naming
from ..data.dataset import SyntaxPairDataset
from ..data.segmenters import Segmenter
from ..tasks.forced_decoding import ForcedDecoding, average
from .answers import Alignment, Distances, Pair, Parse, Sentence, Translation
from .ensemble import Ensemble
from .model import Heads, Model, unaligned

T = TypeVar("T")


class CheckpointModel(Model):
    """An ensemble of checkpoints, usually just one."""

    def __init__(
        self, ensemble: Ensemble, segmenters: tuple[Segmenter, Segmenter], device: torch.device
    ) -> None:
        super().__init__(segmenters)
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
        """As the task of the checkpoints has them."""
        return self.ensemble.languages

    @property
    def longest(self) -> tuple[int, int]:
        """As the positions of all models allow, with the end of sentence."""
        source, target = (min(m.max_positions()[n] for m in self.models) - 1 for n in (0, 1))
        return int(source), int(target)

    @property
    def reads(self) -> frozenset[str]:
        """As the options of the models say."""
        fields = self.task.fields
        return frozenset(kind for kind in ("heads", "labels") if fields.reads(kind))

    @property
    def parser(self) -> Any:
        """That of the task."""
        return self.task.input_parses.parser if self.reads else None

    def parse(
        self,
        sentences: Sequence[str],
        translations: Sequence[str] | None = None,
        heads: Heads = None,
    ) -> list[Pair[Parse]]:
        """Read the dependency heads, averaged over the models."""
        layers = self._list_layers_exposing("dependency")
        if not any(layers):
            raise DataError(f"{self.name}: the model has no dependency heads")

        def make(sentence: Sentence, matrix: Any) -> Parse:
            return Parse(sentence, np.asarray(matrix))

        def read(forced: ForcedDecoding) -> Iterator[Sequence[Any] | None]:
            for side, tokens in ("src", forced.source), ("tgt", forced.target):
                found = forced.dependencies(f"{side}_dependency")
                yield None if found is None else forced.between_tokens(found, tokens, tokens)

        pairs = self._pairs(sentences, translations, heads)
        return self._answer(pairs, layers, make, lambda _: np.zeros((0, 0)), read)

    def align(
        self,
        sentences: Sequence[str],
        translations: Sequence[str] | None = None,
        layer: int | None = None,
        head: int | None = None,
        heads: Heads = None,
    ) -> list[Alignment]:
        """Read the cross-attention, averaged over the models."""
        layers = min(model.decoder.num_layers for model in self.models)
        if layer is not None and not 1 <= layer <= layers:
            raise DataError(f"{self.name}: no layer {layer}; the decoder has layers 1 to {layers}")
        pairs = self._pairs(sentences, translations, heads)
        alignments = [unaligned(*pair) for pair in pairs]
        with self.lock, self._exposing_head(head):
            for indices, forced in self._force(pairs):
                if layer is None:
                    attention = average([extra["attn"][0] for extra in forced.extras])
                else:
                    [attention] = forced.cross_attention([layer])
                assert attention is not None
                matrices = forced.between_tokens(attention, forced.target, forced.source)
                for index, matrix in zip(indices, matrices, strict=True):
                    source, target = pairs[index]
                    alignments[index] = Alignment(source, target.sentence, matrix.numpy())
        return alignments

    @contextmanager
    def _exposing_head(self, head: int | None) -> Iterator[None]:
        """Let the decoders show one head of each layer, as ``--alignment-head`` does."""
        if head is None:
            yield
            return
        decoders = [model.decoder for model in self.models]
        if not all(hasattr(decoder, "choose_head") for decoder in decoders):
            raise DataError(f"{self.name}: the model can show only the mean of its heads")
        try:
            with naming(self.name):
                for decoder in decoders:
                    decoder.choose_head(head)
            yield
        finally:
            for decoder in decoders:
                decoder.choose_head(None)

    def distances(
        self,
        sentences: Sequence[str],
        translations: Sequence[str] | None = None,
        heads: Heads = None,
    ) -> list[Pair[Distances]]:
        """Read the distances of gated heads, averaged over the models."""
        layers = self._list_layers_exposing("distances")
        if not all(layers):
            raise DataError(f"{self.name}: the model measures no syntactic distances")
        temperature = float(getattr(self.ensemble.options, "gate_temperature", 1.0))

        def make(sentence: Sentence, gaps: dict[int, list[float]]) -> Distances:
            return Distances(sentence, gaps, temperature)

        def read(forced: ForcedDecoding) -> Iterator[Sequence[Any]]:
            for name in ("src_distances", "tgt_distances"):
                by_layer = forced.distances(name)
                rows = zip(*by_layer.values(), strict=True)
                yield [dict(zip(by_layer, row, strict=True)) for row in rows]

        pairs = self._pairs(sentences, translations, heads)
        return self._answer(pairs, layers, make, lambda side: {n: [] for n in side}, read)

    def _answer(
        self,
        pairs: Sequence[tuple[Sentence, Translation]],
        layers: Sequence[list[int]],
        make: Callable[[Sentence, Any], T],
        nothing: Callable[[list[int]], Any],
        read: Callable[[ForcedDecoding], Iterator[Sequence[Any] | None]],
    ) -> list[Pair[T]]:
        """Answer for both sides of each pair.

        Args:
            pairs: sources and translations.
            layers: those of each side that show something.
            make: makes the answer from a sentence and what is read of it.
            nothing: what is read of a sentence without words, given its side's layers.
            read: yields what is read of each side of a batch, by sentence; None: nothing.
        """
        answers = []
        for source, target in pairs:
            sides = zip((source, target.sentence), layers, strict=True)
            empty = (make(x, nothing(n)) if n and not x.pieces else None for x, n in sides)
            answers.append(Pair(target, *empty))
        for indices, forced in self._force(pairs):
            sides_read = [*read(forced)]
            for row, index in enumerate(indices):
                source, target = pairs[index]
                sentences = zip((source, target.sentence), sides_read, strict=True)
                values = [None if rows is None else make(x, rows[row]) for x, rows in sentences]
                answers[index] = Pair(target, *values)
        return answers

    def _list_layers_exposing(self, name: str) -> list[list[int]]:
        """Return the layers of encoder and decoder whose heads show something."""
        sides = []
        for side in ("encoder", "decoder"):
            showing = (
                getattr(getattr(model, side), "exposing_layers", {}) for model in self.models
            )
            sides.append(sorted({n for layers in showing for n in layers.get(name, ())}))
        return sides

    def _translate(self, sources: Sequence[Sentence]) -> list[Translation]:
        most = self._most(sources[0])
        settings = GenerationConfig(beam=self.beam, lenpen=self.length_penalty, max_len_b=most)
        generator = self.task.build_generator(self.models, settings)
        batch = self._batch(sources)
        hypotheses = self.task.inference_step(generator, self.models, batch)
        translations = [Translation(Sentence([], self.target_segmenter.scheme)) for _ in sources]
        for index, candidates in zip(batch["id"].tolist(), hypotheses, strict=True):
            best = candidates[0]
            pieces = self.task.target_dictionary.string(best["tokens"]).split()
            sentence = Sentence(pieces, self.target_segmenter.scheme)
            cut = any(len(candidate["tokens"]) > most for candidate in candidates)
            unparsed = index in batch["unparsed"]
            translations[index] = Translation(sentence, float(best["score"]), cut, unparsed)
        return translations

    def _batch(self, sources: Sequence[Sentence]) -> dict[str, Any]:
        """Make a batch; ``id`` has the sentences' numbers, ``unparsed`` those that lack a parse."""
        dictionary, fields = self.task.source_dictionary, self.task.fields
        texts = [" ".join(source.pieces) for source in sources]
        tokens = [dictionary.encode_line(text, add_if_not_exist=False).long() for text in texts]
        heads, labels = self.task.input_parses(texts, self._list_trees(sources))
        pairs = LanguagePairDataset(
            tokens,
            [len(sentence) for sentence in tokens],
            dictionary,
            tgt_dict=self.task.target_dictionary,
        )
        dataset = SyntaxPairDataset(pairs, heads, None, labels, fields)
        batch: dict[str, Any] = dataset.collater([dataset[i] for i in range(len(dataset))])
        batch["unparsed"] = dataset.list_unparsed()
        return utils.apply_to_sample(lambda tensor: tensor.to(self.device), batch)

    def _force(
        self, pairs: Sequence[tuple[Sentence, Translation]]
    ) -> Iterator[tuple[list[int], ForcedDecoding]]:
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
            with self.lock:
                yield in_order, ForcedDecoding(self.models, batch["net_input"], targets, dictionary)


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
