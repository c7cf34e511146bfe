"""Models exported to CTranslate2, which run without fairseq and torch."""

from __future__ import annotations

import ctypes
import json
import math
import os
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import DataError, shorten
from ..base.files import hash_file, open_file, read_json
from ..data.fingerprint import check_text_steps, read_stored
from ..data.preparation import stored_schemes
from ..data.segmenters import SubwordFiles, is_file_name, open_segmenters
from ..data.words import split_units
from .analysis import Analysis, Question
from .answers import Alignment, Sentence, Translation
from .model import FORKED, Model, make_batches, make_unaligned
from .shared_batches import Search

#: Separates a subword from its dependency label.
FACTOR = "￨"

ABOUT = "syncattn.json"
#: Names in CTranslate2's settings: of symbols of the vocabulary, and of booleans.
_TOKENS = ("bos", "eos", "unk", "decoder_start")
_SWITCHES = ("add_source_bos", "add_source_eos")

#: The version of CUDA whose libraries CTranslate2 loads for a GPU.
_CUDA = 12
#: Before this version of CTranslate2, all layers had the biases of the first one.
_OWN_BIASES = [4, 8, 3]


@dataclass(frozen=True)
class About:
    """The description of an exported model, in the file ``syncattn.json`` of its folder.

    Attributes:
        format: ``fairseq``, ``ctranslate2`` or ``transformers``.
        source: source language.
        target: target language.
        labels: whether the source carries dependency labels.
        alignment_layer: decoder layer, from 1, whose attention aligns.
        longest_source: the most subwords that a source may have.
        longest_target: the most subwords of a translation; 0 in exports of earlier versions, which
            have as many as for the source.
        positions: the kind of positions, by its name in ``--positions``.
        shortlist: how many target subwords each source subword allows; 0: all of them.
        files: the SHA-256 of each file; empty in exports of earlier versions.
    """

    format: str
    source: str
    target: str
    labels: bool
    alignment_layer: int
    longest_source: int
    longest_target: int = 0
    positions: str = "absolute"
    shortlist: int = 0
    files: dict[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write the description into a folder, with the SHA-256 of every other file.

        The other files must be there already.
        """
        files = {path.name: hash_file(path) for path in sorted(folder.iterdir())}
        text = json.dumps(asdict(replace(self, files=files)), indent=2)
        (folder / ABOUT).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> About:
        """Read the description of an exported model, and check the files' SHA-256.

        Raises:
            DataError: the folder was not made by ``syncattn-export``, or is damaged.
        """
        path = folder / ABOUT
        try:
            about = cls(**read_json(path))
        except FileNotFoundError:
            raise DataError(
                f"{folder}: has no {ABOUT}; export the model with syncattn-export"
            ) from None
        except (ValueError, TypeError):
            raise _damaged(path) from None
        if not about._is_sound():
            raise _damaged(path)
        for name, digest in about.files.items():
            if not (folder / name).is_file() or hash_file(folder / name) != digest:
                raise _damaged(folder / name)
        return about

    def _is_sound(self) -> bool:
        """Return whether each field has its type, and no file name leads out of the folder."""
        numbers, names = (self.alignment_layer, self.longest_source), (self.source, self.target)
        return (
            isinstance(self.format, str)
            and isinstance(self.positions, str)
            and all(map(is_file_name, names))
            and type(self.labels) is bool
            and all(type(number) is int and number > 0 for number in numbers)
            and all(type(number) is int for number in (self.shortlist, self.longest_target))
            and self.longest_target >= 0
            and isinstance(self.files, dict)
            and all(map(is_file_name, self.files))
        )


class CTranslate2Model(Model):
    """A translation model exported to CTranslate2, which runs without fairseq and torch.

    Args:
        folder: the model's folder.
        subwords, source_parser, device, threads, compute_type, tokenised, in_subwords: as for
            :func:`.load`.

    Raises:
        DataError: the folder is damaged, CTranslate2 is not installed or cannot run the model, or
            the parser cannot be opened.
    """

    shows = frozenset(["links"])

    def __init__(
        self,
        folder: Path,
        subwords: SubwordFiles,
        source_parser: str | None,
        device: str | None,
        threads: int | None,
        compute_type: str | None,
        tokenised: bool = False,
        in_subwords: bool = False,
    ) -> None:
        self.folder = folder
        self.about = about = About.read(folder)
        vocabularies = _vocabulary(folder, "source"), _vocabulary(folder, "target")
        _check_config(folder, vocabularies[1])
        stored = stored_schemes(folder)
        schemes = stored.get(about.source), stored.get(about.target)
        if not in_subwords:
            trained = {str(folder): read_stored(folder)}
            check_text_steps(trained, subwords, [folder], self.languages, tokenised)
        segmenters = open_segmenters(
            subwords, [folder], self.languages, vocabularies, schemes, in_subwords
        )
        super().__init__(segmenters, tokenised)
        device = device or ("cuda" if _can_use_gpu() else "cpu")
        if about.labels and source_parser is not None:
            from ..parsing.parsers import open_parser

            self.parser = open_parser(source_parser)
        _check_heads(folder / "model.bin")
        self._options = {
            "device": device,
            "intra_threads": threads or 0,
            "compute_type": compute_type or "default",
        }
        self.translator = self._open()

    def _open(self) -> Any:
        """Load and return CTranslate2's model; `DataError` if CTranslate2 cannot run it."""
        library = load_ctranslate2(self.about.positions)
        try:
            return library.Translator(str(self.folder), **self._options)
        except (ValueError, RuntimeError, LookupError) as error:
            raise DataError(
                f"{self.folder}: CTranslate2 cannot run the model on {self._options['device']} "
                f"({shorten(error)}); give the device cpu, or cuda for a GPU"
            ) from None

    def _note_fork(self) -> None:
        """Keep a forked process from waiting for the parent's threads in CTranslate2."""
        super()._note_fork()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.translator))

    def _reopen(self) -> None:
        """Load the model again, with threads of this process."""
        if self._options["device"] != "cpu":
            raise DataError(f"{self.folder}: {FORKED}")
        if About.read(self.folder) != self.about:
            raise DataError(
                f"{self.folder}: the folder has another model than before the fork; load the "
                "model again"
            )
        self.translator = self._open()

    @property
    def name(self) -> str:
        """The path of the exported model's folder."""
        return str(self.folder)

    @property
    def languages(self) -> tuple[str, str]:
        """The source and the target language, from the description."""
        return self.about.source, self.about.target

    @property
    def reads(self) -> frozenset[str]:
        """The parts of a source's parse read by the export, ``labels`` or none."""
        return frozenset(["labels"] if self.about.labels else [])

    @property
    def longest(self) -> tuple[int, int]:
        """The maximum numbers of subwords in source and translation, from the description."""
        return self.about.longest_source, self.about.longest_target or self.about.longest_source

    def _analyse(
        self, pairs: Sequence[tuple[Sentence, Translation]], question: Question, batch_size: int
    ) -> list[Analysis]:
        """Align with the export's only layer, and score given translations."""
        only = self.about.alignment_layer
        if question.layer not in (None, only):
            raise DataError(f"{self.folder}: the export shows only the attention of layer {only}")
        if question.head is not None:
            raise DataError(f"{self.folder}: the export shows only the mean over the layer's heads")
        analyses = [
            Analysis(
                source,
                target,
                score=target.score,
                alignment=make_unaligned(source, target) if question.links else None,
            )
            for source, target in pairs
        ]
        for indices in make_batches([source for source, _ in pairs], batch_size):
            batch = [pairs[index] for index in indices]
            found: list[dict[str, Any]] = [{} for _ in batch]
            if question.links:
                for one, alignment in zip(found, self._align(batch), strict=True):
                    one["alignment"] = alignment
            if question.every_layer:
                for one in found:
                    one["layer_alignments"] = {only: one["alignment"]}
            if question.scores and any(math.isnan(target.score) for _, target in batch):
                for one, score in zip(found, self._score(batch), strict=True):
                    one["score"] = score
            for index, one in zip(indices, found, strict=True):
                if not math.isnan(analyses[index].score):  # the search has scored it
                    one.pop("score", None)
                analyses[index] = replace(analyses[index], **one)
        return analyses

    def _align(self, pairs: Sequence[tuple[Sentence, Translation]]) -> list[Alignment]:
        """Return the alignments of the pairs of one batch."""
        targets = [[*target.sentence.pieces] for _, target in pairs]
        # CTranslate2 returns no attention for a forced prefix, but it does for one that the
        # search is biased towards, here so strongly that it cannot deviate.
        results, _ = self._run(
            [source for source, _ in pairs],
            target_prefix=targets,
            prefix_bias_beta=0.99,
            beam_size=1,
            max_decoding_length=max(1, *map(len, targets)),
            return_attention=True,
        )
        alignments = []
        for (source, target), result in zip(pairs, results, strict=True):
            rows, columns = len(target.sentence.pieces), len(source.pieces)
            attention = np.zeros((rows, columns))
            if rows:
                attention = np.array(result.attention[0])[:rows, :columns]
                assert attention.shape == (rows, columns)  # the search has not deviated
            alignments.append(Alignment(source, target.sentence, attention))
        return alignments

    def _score(self, pairs: Sequence[tuple[Sentence, Translation]]) -> list[float]:
        """Return the mean log-probability of each translation's subwords and its end."""
        tokens, _ = self._tokens([source for source, _ in pairs])
        targets = [[*target.sentence.pieces] for _, target in pairs]
        found = self._call(self.translator.score_batch, tokens, targets, max_input_length=0)
        return [float(np.mean(each.log_probs)) for each in found]

    def _translate(self, sources: Sequence[Sentence], search: Search) -> list[Translation]:
        decoding, most = search.decoding, search.most
        begin = len(self.first[1])
        prefix = {"target_prefix": [self.first[1]] * len(sources)} if begin else {}
        results, unparsed = self._run(
            sources,
            **prefix,
            beam_size=decoding.beam,
            num_hypotheses=decoding.beam,
            length_penalty=decoding.length_penalty,
            max_decoding_length=most + begin + 1,  # with the end of sentence
            return_scores=True,
            use_vmap=self.about.shortlist > 0,
        )
        scheme = self.target_segmenter.scheme
        return [
            Translation(
                Sentence(result.hypotheses[0][begin : most + begin], scheme),
                float(result.scores[0]),
                cut=any(len(hypothesis) > most + begin for hypothesis in result.hypotheses),
                unparsed=index in unparsed,
            )
            for index, result in enumerate(results)
        ]

    def _run(self, sources: Sequence[Sentence], **options: Any) -> tuple[Any, list[int]]:
        """Return CTranslate2's results, and the indices of sources without a parse to be read."""
        tokens, unparsed = self._tokens(sources)
        call = self.translator.translate_batch
        return self._call(call, tokens, max_input_length=0, **options), unparsed

    def _call(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call CTranslate2, and turn errors into a single line."""
        try:
            return call(*arguments, **options)
        except (ValueError, RuntimeError, LookupError) as error:
            mend = "export the model again"
            if "libcu" in str(error):
                mend = (
                    f"on a GPU, CTranslate2 needs CUDA {_CUDA}; choose device='cpu' (--device cpu)"
                )
            raise DataError(
                f"{self.folder}: CTranslate2 cannot translate with this model "
                f"({shorten(error)}); {mend}"
            ) from None

    def _tokens(self, sources: Sequence[Sentence]) -> tuple[list[list[str]], list[int]]:
        """Return CTranslate2's input tokens, and the indices of sources without a parse."""
        if not self.reads:
            return [[*self.first[0], *source.pieces] for source in sources], []
        parses = self._list_trees(sources)
        rows = []
        for source, parse in zip(sources, parses, strict=True):
            spans = (parse and parse.spans) or None
            units = split_units(source.pieces, source.scheme, spans)
            labels = ["<unk>"] * sum(units.starts)
            if parse:
                labels = units.map_labels(parse.labels, parse.heads)
            rows.append(
                [
                    f"{piece.replace(FACTOR, '<unk>')}{FACTOR}{labels[number - 1]}"
                    for piece, number in zip(source.pieces, accumulate(units.starts), strict=True)
                ]
            )
        return rows, [index for index, parse in enumerate(parses) if parse is None]


def _vocabulary(folder: Path, side: str) -> list[str]:
    """Read the vocabulary kept with a model by CTranslate2, without dependency labels."""
    for name in (f"{side}_vocabulary.json", f"{side}_1_vocabulary.json", "shared_vocabulary.json"):
        if (folder / name).is_file():
            return _read_json(folder / name, _is_vocabulary)
    raise DataError(f"{folder}: the {side} vocabulary is missing; export the model again")


def _check_config(folder: Path, words: Sequence[str]) -> None:
    """Check CTranslate2's settings file, since wrong settings may crash CTranslate2."""

    def is_config(config: Any) -> bool:
        return (
            isinstance(config, dict)
            and all(config.get(f"{name}_token") in words for name in _TOKENS)
            and all(type(config.get(name)) is bool for name in _SWITCHES)
            and type(config.get("multi_query_attention")) in (bool, type(None))
            and type(config.get("layer_norm_epsilon")) in (float, type(None))
        )

    _read_json(folder / "config.json", is_config)


def _is_vocabulary(words: Any) -> bool:
    return (
        isinstance(words, list)
        and all(isinstance(word, str) for word in words)
        and len({*words}) == len(words)
    )


def _read_json(path: Path, is_sound: Callable[[Any], bool]) -> Any:
    try:
        content = read_json(path)
        if is_sound(content):
            return content
    except (FileNotFoundError, ValueError):
        pass
    raise _damaged(path)


def _damaged(path: Path) -> DataError:
    return DataError(f"{path}: the file is damaged or missing; export the model again")


def _check_heads(path: Path) -> None:
    """Check that CTranslate2's model file has attention heads, to avoid a division by zero."""
    with open_file(path) as file:

        def number(kind: str) -> int:
            return struct.unpack(kind, file.read(struct.calcsize(kind)))[0]

        def text() -> str:
            return file.read(number("<H")).rstrip(b"\0").decode("utf-8", "replace")

        try:
            number("<I"), text(), number("<I")  # versions, and the kind of the model
            for _ in range(number("<I")):
                name, rank = text(), number("B")
                file.seek(4 * rank + 1, os.SEEK_CUR)  # its shape and type
                size = number("<I")
                if not name.endswith("num_heads"):
                    file.seek(size, os.SEEK_CUR)
                elif int.from_bytes(file.read(size), "little", signed=True) < 1:
                    raise DataError(
                        f"{path}: the file is damaged: {name} is below 1; export the model again"
                    )
        except struct.error:
            raise DataError(
                f"{path}: the file is damaged: it ends early; export the model again"
            ) from None


def _can_use_gpu() -> bool:
    """Return whether a GPU and CTranslate2's CUDA library are available."""
    if not load_ctranslate2().get_cuda_device_count():
        return False
    try:
        ctypes.CDLL(f"libcublas.so.{_CUDA}")
    except OSError:
        return False
    return True


def load_ctranslate2(positions: str = "absolute") -> Any:
    """Import and return CTranslate2, an optional dependency, after checking its version.

    Args:
        positions: the kind of positions that it has to support, by its name in ``--positions``.

    Raises:
        DataError: CTranslate2 is not installed, or too old for these positions.
    """
    try:
        import ctranslate2
    except ImportError:
        raise DataError(
            "this format needs CTranslate2; pip install 'syncattn-fairseq[ctranslate2]'"
        ) from None
    version = ctranslate2.__version__
    if positions == "bias" and [*map(int, re.findall(r"\d+", version)[:3])] < _OWN_BIASES:
        raise DataError(
            f"--positions bias needs CTranslate2 {'.'.join(map(str, _OWN_BIASES))} or later: "
            f"version {version} gives all layers the biases of the first layer"
        )
    return ctranslate2
