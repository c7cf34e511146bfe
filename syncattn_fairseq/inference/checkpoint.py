"""fairseq checkpoints: every system of this package, and fairseq's own Transformer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

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
from .analysis import Analysis, Question
from .answers import Alignment, Distances, Parse, Sentence, Translation
from .attention_heads import PARTS, AttentionHeads, make_unread
from .ensemble import Ensemble
from .forced import ForcedDecoding
from .model import FORKED, Model, make_batches, make_unaligned
from .shared_batches import Search


class CheckpointModel(Model):
    """A translation model from a fairseq checkpoint, or from several as an ensemble.

    Args:
        ensemble: the checkpoints and their task.
        segmenters: what splits source and target into subwords.
        device: where the models run.
        tokenised: as for :class:`.Model`.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        segmenters: tuple[Segmenter, Segmenter],
        device: torch.device,
        tokenised: bool = False,
    ) -> None:
        super().__init__(segmenters, tokenised)
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
        #: The layers of encoder and decoder that show dependencies and distances.
        self._layers = {
            name: [self._list_layers_exposing(side, name) for side in ("encoder", "decoder")]
            for name in ("dependency", "distances")
        }
        shown = {"links"}
        if any(self._layers["dependency"]):
            shown.add("parses")
        if all(self._layers["distances"]):
            shown.add("distances")
        self.shows = frozenset(shown)

    @property
    def name(self) -> str:
        """The paths of the checkpoints, separated by ``:``."""
        return self.ensemble.name

    @property
    def languages(self) -> tuple[str, str]:
        """The source and the target language, as the checkpoints' task names them."""
        return self.ensemble.languages

    @property
    def longest(self) -> tuple[int, int]:
        """The maximum numbers of subwords in source and translation, by the models' positions."""
        source, target = (min(m.max_positions()[n] for m in self.models) - 1 for n in (0, 1))
        return int(source), int(target)

    @property
    def reads(self) -> frozenset[str]:
        """The parts of a source's parse read by the models, among ``heads`` and ``labels``."""
        fields = self.task.fields
        return frozenset(kind for kind in ("heads", "labels") if fields.reads(kind))

    @property
    def parser(self) -> Any:
        """The parser of sources, or None if no model reads parses."""
        return self.task.input_parses.parser if self.reads else None

    def _reopen(self) -> None:
        """Use a single thread, since PyTorch's thread pool does not survive a fork."""
        if self.device.type != "cpu":
            raise DataError(f"{self.name}: {FORKED}")
        torch.set_num_threads(1)

    def _check_heads(self) -> None:
        """Raise `DataError` for an ensemble, whose models have different heads."""
        if len(self.models) > 1:
            raise DataError(
                f"{self.name}: heads can be shown for a single model, not for an ensemble; give "
                "one of the checkpoints"
            )

    def _list_layers_exposing(self, side: str, name: str) -> list[int]:
        """Return the layers of encoder or decoder whose heads expose ``name``, in any model."""
        found: set[int] = set()
        for model in self.models:
            found.update(getattr(getattr(model, side), "exposing_layers", {}).get(name, ()))
        return sorted(found)

    def _analyse(
        self, pairs: Sequence[tuple[Sentence, Translation]], question: Question, batch_size: int
    ) -> list[Analysis]:
        """Force the translations through the models, and read the answers from the heads."""
        layers = min(model.decoder.num_layers for model in self.models)
        if question.layer is not None and not 1 <= question.layer <= layers:
            raise DataError(
                f"{self.name}: there is no layer {question.layer}; the decoder has layers 1 to "
                f"{layers}"
            )
        analyses = [self._analyse_nothing(*pair, question) for pair in pairs]
        with self._batches.lock, self._exposing_head(question.head):
            for indices, forced in self._force(pairs, batch_size):
                batch = [analyses[index] for index in indices]
                for index, found in zip(indices, self._read(forced, batch, question), strict=True):
                    analyses[index] = found
        return analyses

    def _analyse_nothing(
        self, source: Sentence, translation: Translation, question: Question
    ) -> Analysis:
        """Return the analysis of a pair with an empty source, without running the model."""
        sides = source, translation.sentence
        parses: list[Parse | None] = [None, None]
        distances: list[Distances | None] = [None, None]
        for number, sentence in enumerate(sides):
            if question.parses and self._layers["dependency"][number] and not sentence.pieces:
                parses[number] = Parse(sentence, np.zeros((0, 0)))
            if question.distances and "distances" in self.shows and not sentence.pieces:
                gaps: dict[int, list[float]] = {n: [] for n in self._layers["distances"][number]}
                distances[number] = Distances(sentence, gaps, self._temperature)
        return Analysis(
            source,
            translation,
            score=translation.score,
            source_parse=parses[0],
            target_parse=parses[1],
            alignment=make_unaligned(source, translation) if question.links else None,
            heads=make_unread(*sides) if question.heads else None,
            head=question.head,
            source_distances=distances[0],
            target_distances=distances[1],
        )

    @property
    def _temperature(self) -> float:
        return float(getattr(self.ensemble.options, "gate_temperature", 1.0))

    def _read(
        self, forced: ForcedDecoding, batch: Sequence[Analysis], question: Question
    ) -> list[Analysis]:
        """Complete the analyses of a batch from a forced decoding."""
        found: list[dict[str, Any]] = [{} for _ in batch]
        pairs = [(each.source, each.translation.sentence) for each in batch]
        for number, side in enumerate(("source", "target")):
            if question.parses and self._layers["dependency"][number]:
                matrices = forced.read_dependencies(side)
                for one, pair, matrix in zip(found, pairs, matrices or (), strict=True):
                    one[f"{side}_parse"] = Parse(pair[number], matrix)
            if question.distances and "distances" in self.shows:
                gaps = forced.read_distances(side)
                for one, pair, by_layer in zip(found, pairs, gaps, strict=True):
                    one[f"{side}_distances"] = Distances(pair[number], by_layer, self._temperature)
        if question.links:
            for one, pair, matrix in zip(
                found, pairs, forced.read_links(question.layer), strict=True
            ):
                one["alignment"] = Alignment(*pair, matrix)
        if question.every_layer:
            for one in found:
                one["layer_alignments"] = {}
            for layer, rows in forced.read_links_of_layers().items():
                for one, pair, matrix in zip(found, pairs, rows, strict=True):
                    one["layer_alignments"][layer] = Alignment(*pair, matrix)
        if question.heads:
            with naming(self.name):
                read = forced.read_heads()
            for one, pair, (arrays, kinds) in zip(found, pairs, read, strict=True):
                encoder, decoder, cross = (arrays[part] for part in PARTS)
                one["heads"] = AttentionHeads(*pair, encoder, decoder, cross, kinds)
        if question.scores and any(np.isnan(each.score) for each in batch):
            for one, each, score in zip(found, batch, forced.read_scores(), strict=True):
                if np.isnan(each.score):  # the search has scored the model's own translations
                    one["score"] = score
        return [replace(each, **one) for each, one in zip(batch, found, strict=True)]

    @contextmanager
    def _exposing_head(self, head: int | None) -> Iterator[None]:
        """Within the block, let the decoders return one head's attention, not the mean."""
        if head is None:
            yield
            return
        decoders = [model.decoder for model in self.models]
        if not all(hasattr(decoder, "choose_head") for decoder in decoders):
            raise DataError(
                f"{self.name}: the model can show only the mean over its heads, not a single head"
            )
        try:
            with naming(self.name):
                for decoder in decoders:
                    decoder.choose_head(head)
            yield
        finally:
            for decoder in decoders:
                decoder.choose_head(None)

    def _translate(self, sources: Sequence[Sentence], search: Search) -> list[Translation]:
        decoding, most = search.decoding, search.most
        first = [self.task.target_dictionary.index(symbol) for symbol in self.first[1]]
        settings = GenerationConfig(
            beam=decoding.beam, lenpen=decoding.length_penalty, max_len_b=most + len(first)
        )
        generator = self.task.build_generator(self.models, settings)
        batch = self._batch(sources)
        given = {}
        if first:
            given["prefix_tokens"] = torch.tensor([first] * len(sources), device=self.device)
        hypotheses = self.task.inference_step(generator, self.models, batch, **given)
        translations = [Translation(Sentence([], self.target_segmenter.scheme)) for _ in sources]
        for index, candidates in zip(batch["id"].tolist(), hypotheses, strict=True):
            best = candidates[0]
            tokens = best["tokens"][len(first) :]
            pieces = self.task.target_dictionary.string(tokens).split()
            sentence = Sentence(pieces, self.target_segmenter.scheme)
            longest = most + len(first)
            cut = any(len(candidate["tokens"]) > longest for candidate in candidates)
            unparsed = index in batch["unparsed"]
            translations[index] = Translation(sentence, float(best["score"]), cut, unparsed)
        return translations

    def _batch(self, sources: Sequence[Sentence]) -> dict[str, Any]:
        """Make a fairseq batch of sources; ``unparsed`` lists the sources without a parse."""
        dictionary, fields = self.task.source_dictionary, self.task.fields
        texts = [" ".join([*self.first[0], *source.pieces]) for source in sources]
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
        self, pairs: Sequence[tuple[Sentence, Translation]], batch_size: int
    ) -> Iterator[tuple[list[int], ForcedDecoding]]:
        """Yield forced decodings of batches, each with the indices of its pairs."""
        dictionary = self.task.target_dictionary
        for indices in make_batches([source for source, _ in pairs], batch_size):
            batch = self._batch([pairs[i][0] for i in indices])
            in_order = [indices[i] for i in batch["id"].tolist()]
            for number in batch["unparsed"]:
                pairs[indices[number]][1].unparsed = True
            targets: list[Tensor] = []
            for index in in_order:
                text = " ".join(pairs[index][1].sentence.pieces)
                tokens = dictionary.encode_line(text, add_if_not_exist=False)
                targets.append(tokens.long().to(self.device))
            yield in_order, ForcedDecoding(self.models, batch["net_input"], targets, dictionary)


def find_device(name: str | None) -> torch.device:
    """Return a PyTorch device, after checking that PyTorch can use it.

    Args:
        name: of the device, such as ``cpu``; None: a GPU, or the CPU if there is no GPU.

    Raises:
        DataError: PyTorch cannot use the device here.
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
