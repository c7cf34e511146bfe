"""Write the configs of a corpus for a user's raw text, with model sizes that suit them."""

import json
import math
import os
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import replacing
from syncattn_fairseq.data.doctor import Finding, Text, examine
from syncattn_fairseq.data.parallel_text import simplify, write_pairs
from syncattn_fairseq.data.parses import SPLITS

from .corpus_texts import name_format
from .language_tools import (
    can_split,
    describe_language,
    has_parser,
    name_scoring,
    separate_words,
)
from .missing import count_subwords
from .start_folder import check_folder as check_start
from .systems import check_group, check_language
from .text_formats import collect

#: Models by the fewest pairs that they are for: layers, width, inner width, heads, dropout and the
#: learning rate.
_MODELS = {
    1_000_000: (6, 512, 2048, 8, 0.1, 0.0007),
    50_000: (6, 512, 1024, 4, 0.3, 0.0005),
    0: (3, 256, 512, 4, 0.3, 0.001),
}
#: The fewest pairs of training text; one of how many pairs is held out, and the most that are.
_FEWEST, _EVERY, _HELD_OUT = 100, 20, 1000
#: The most pairs from which the sizes of the model and the vocabulary are chosen.
_SAMPLE = 100_000
#: Tokens of a batch and the most updates, both with a GPU (True) or without; epochs of a training.
_BATCH, _UPDATES, _PASSES = {True: 4096, False: 1024}, {True: 100_000, False: 5000}, 40
#: The hash of a pair with an empty side.
_INCOMPLETE = 0
#: Characters that the name of a file may not have in a recipe: they stand for members of archives,
#: languages and other settings, or do not print.
_UNWRITABLE = re.compile(r"[!{}$]|[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
#: The parts of the name of a file, among them languages with a script or a region, as in pt_BR.
_PARTS = re.compile(
    r"(?<![^./_-])[a-z]{2,3}[_-][A-Z][a-z]{3}(?:[_-][A-Z]{2})?(?![^./_-])"
    r"|(?<![^./_-])[a-z]{2}[_-](?:[A-Z]{2}|[0-9]{3})(?![^./_-])|[./_-]|[^./_-]+"
)
#: The most words of a training sentence, and the largest ratio of lengths in a pair; without word
#: splitters for both languages (False), for which letters may count as words, limits are higher.
_LIMITS = {True: {"max_words": 100, "ratio": 9}, False: {"max_words": 400, "ratio": 36}}
#: Subwords of a model of raw sentences that are bytes, and the fewest that are neither bytes nor
#: characters.
_BYTES, _OTHERS = 256, 44

_DATA = """\
# {name}: {languages}, {pairs:,} pairs, written by syncattn-recipe --init.
# docs/recipes.md explains all keys.
here:
  folder: {folder}
  train: {train}
  valid: {valid}
  test: {test}
{parsed}\
# Training pairs are left out that are longer or more uneven, or have a sentence of the test text.
clean: {{max_words: {max_words}, ratio: {ratio}, exclude: test}}
{subwords}\
checkpoint: best # what translates: best, last, or a number of epochs, whose mean it is
score: {{tokenize: {tokenize}}}
{systems}
"""
#: Where subwords come from: the text, or the model to start from.
_LEARNT = """\
# raw: subwords are pieces of the sentences as they are. joint: both languages share them, as they
# share letters.
subwords: {{size: {size}, joint: {joint}, raw: true}}
"""
_STARTED = """\
# The model that every system starts from. Its subwords and dictionaries are used.
start: {start}
"""
#: The systems that are suggested: what each is, what it needs, and what it can be exported to.
_SYSTEMS = {
    "transformer": (
        "the baseline of most papers",
        "no parser",
        "exports to CTranslate2, transformers and fairseq",
    ),
    "rotary": ("a strong baseline, with rotary positions", "no parser", "exports to CTranslate2"),
    "lpsi": ("phrases that it learns by itself", "no parser", "no exports"),
    "dbsa": (
        "heads that learn to parse",
        "{parses} in training, no parser in translating",
        "exports to CTranslate2, transformers and fairseq",
    ),
    "syncattn": (
        "what syntax adds: trees of both languages, and links",
        "{parses} in training, no parser in translating",
        "exports to CTranslate2, transformers and fairseq",
    ),
}
#: The suggested systems without and with parses, first for trainings from random weights, then for
#: those that start from a published model. Gates change what a trained model computes, and need
#: many updates to learn.
_SUGGESTED = (
    (["transformer", "rotary", "lpsi"], ["transformer", "rotary", "lpsi", "syncattn"]),
    (["transformer", "lpsi"], ["transformer", "dbsa", "syncattn"]),
)
#: Where parses come from, if there are any.
_PARSES = {
    "stanza": "parsers of both languages, models of Stanza that are downloaded,",
    "own": "your parses",
}
_CORPUS = """\
# {name}: sizes for {pairs:,} pairs, trained {where}.
common: {{fp16: {fp16}}}
task: {{source_lang: {source}, target_lang: {target}}}
{model}
optimizer: {{adam_betas: "(0.9,0.98)"}}
lr_scheduler: {{warmup_updates: {warmup}}}
optimization: {{lr: [{lr}], max_update: {updates}}} # reads the text about {passes} times
dataset: {{max_tokens: {batch}}} # tokens of a batch; give fewer if memory is short
checkpoint: {{no_epoch_checkpoints: true}}
generation: {{beam: 5}}
"""
_MODEL = """\
model: {{{shared}: true, dropout: {dropout},
  encoder_layers: {layers}, encoder_embed_dim: {width}, encoder_ffn_embed_dim: {inner},
  encoder_attention_heads: {heads}, decoder_layers: {layers}, decoder_attention_heads: {heads}}}"""
#: Settings of trainings that start from a model, whose sizes they have; a trained model needs
#: smaller steps.
_TRAINED = {"model": "model: {dropout: 0.1} # other options are those of start", "lr": "0.00005"}
#: Epochs of a training that starts from a model that translates already.
_FEW_PASSES = 5


@dataclass(frozen=True)
class NewCorpus:
    """A summary of the files that were written for a new corpus.

    Attributes:
        sizes: a line with the sizes of the corpus, the model and the training.
        systems: a line about each suggested system: what it needs, and what it exports to.
        findings: the faults that were found in the text.
        notes: lines about missing tools for its languages.
    """

    sizes: str
    systems: list[str]
    findings: list[Finding]
    notes: list[str]


def write_corpus(
    folder: Path, files: Sequence[str], gpu: bool, start: Path | None = None
) -> NewCorpus:
    """Write the configs of a new corpus, ``_data.yaml`` and ``_corpus.yaml``.

    If validation or test text is missing, pairs are held out, and all splits are written as well.
    Existing files are never overwritten.

    Args:
        folder: the folder of the configs, with the name of the corpus.
        files: source and target of the training text, and perhaps of validation and test; text, or
            treebanks in CoNLL-U, whose sentences and trees are used.
        gpu: whether systems will be trained on a GPU.
        start: the folder of a published model, or of an import, that every system starts from;
            None: from random weights.

    Raises:
        DataError: the files are no parallel text, or the folder has a corpus or texts already.
    """
    check_group(folder.name)
    if any(os.path.lexists(folder / f"{name}.yaml") for name in ("_data", "_corpus")):
        raise DataError(
            f"{folder}: has a corpus already; choose another folder, or remove this one"
        )
    if start is not None:
        check_start(start, folder / "_data.yaml")
    if len(files) not in (2, 4, 6):
        raise DataError(
            f"{folder}: give two files of training text, such as train.en train.de, and "
            f"optionally two of validation text and two of test text; {len(files)} files are "
            "given"
        )
    found = [_find_pattern(*files[n : n + 2]) for n in range(0, len(files), 2)]
    languages = found[0][1]
    for number, (_, others) in enumerate(found):
        if others != languages:
            raise DataError(
                f"{files[2 * number]} {files[2 * number + 1]}: {' and '.join(others)}, but the "
                f"training text is {' and '.join(languages)}; give the same languages, in the same "
                "order"
            )
    names = dict(zip(SPLITS, (os.path.abspath(pattern) for pattern, _ in found), strict=False))
    left = [split for split in SPLITS if split not in names]
    if left and _has_files(folder / "texts"):
        raise DataError(
            f"{folder / 'texts'}: this folder is not empty, and the held-out pairs would be "
            "written there; choose another corpus folder, or move the files away"
        )
    survey = _Survey(hashes=bool(left))
    texts = [
        Text(split, _name_files(name, languages), survey.watch(split, _read(name, languages)))
        for split, name in names.items()
    ]
    findings = examine(texts, languages, excluded=["test"])
    pairs = survey.count
    if pairs < _FEWEST:
        raise DataError(f"{files[0]}: has {pairs} pairs; a training needs at least {_FEWEST}")
    fixed = (os.path.dirname(name.partition("{")[0]) for name in names.values())
    place = os.path.commonpath([*fixed])
    treebanks = {split: name_format(name) != "plain" for split, name in names.items()}
    parsed = _quote(names["train"]) if treebanks["train"] else None
    if not left and all(treebanks.values()):
        parsed = None  # each of its own
    elif parsed and any(split != "train" for split in names):
        raise DataError(
            f"{files[0]}: the training text is in CoNLL-U; give the other texts in CoNLL-U, too, "
            "or only the training text, from which the others are held out"
        )
    own = treebanks["train"]
    parsing = all(has_parser(x) and can_split(x) for x in languages)
    if left:
        pairs = _hold_out(left, names, languages, survey.choose(left), folder)
        place, names = "texts", {split: f"{split}.{{language}}" for split in SPLITS}
    else:
        names = {split: os.path.relpath(name, place) for split, name in names.items()}
    parser = "own" if own else "stanza" if parsing else ""
    systems = _describe_systems(parser, start is not None)
    sizes = _choose_sizes(survey.sample, languages, pairs, gpu)
    values = {
        **{"name": folder.name, "languages": "-".join(languages), "pairs": pairs},
        **{"source": _quote(languages[0]), "target": _quote(languages[1]), "folder": _quote(place)},
        **{split: _quote(name) for split, name in names.items()},
        **sizes,
        "tokenize": name_scoring(languages[1]),
        "start": _quote(os.path.abspath(start)) if start else "",
        "parsed": f"  parsed: {parsed} # of all texts\n" if parsed else "",
        "systems": "\n".join(
            [
                "# What @all trains, and what each system needs:",
                *(f"# {name}: {line}" for name, line in systems.items()),
                f"systems: [{', '.join(systems)}]",
            ]
        ),
        **_LIMITS[all(map(can_split, languages))],
    }
    values["subwords"] = (_STARTED if start else _LEARNT).format(**values)
    if start:
        each = values["passes"] / values["updates"]
        updates = max(100, 100 * round(_FEW_PASSES / each / 100))
        values |= {**_TRAINED, "updates": updates, "warmup": updates // 10}
        values["passes"] = max(1, round(updates * each))
    else:
        values["model"] = _MODEL.format(**values)
    folder.mkdir(parents=True, exist_ok=True)
    for name, template in (("_data", _DATA), ("_corpus", _CORPUS)):
        with replacing(folder / f"{name}.yaml") as path:
            path.write_text(template.format(**values), encoding="utf-8")
    model = f"{sizes['size']:,} subwords, {sizes['layers']} layers of {sizes['width']}"
    said = (
        f"{pairs:,} pairs, {f'from {start}' if start else model}, {values['updates']:,} updates "
        f"{values['where']}"
    )
    notes = [note for language in languages for note in describe_language(language, own)]
    about = [f"{name}: {line}" for name, line in systems.items()]
    return NewCorpus(said, about, findings, notes)


def _describe_systems(parser: str, started: bool) -> dict[str, str]:
    """Return a description of each suggested system: use, needs, and exports.

    Exports are left out if systems start from a published model, which decides them.
    """
    described = {}
    for name in _SUGGESTED[started][bool(parser)]:
        parts = _SYSTEMS[name][: 2 if started else 3]
        described[name] = "; ".join(parts).format(parses=_PARSES.get(parser))
    return described


def _quote(text: str) -> str:
    """Quote a text for YAML, so that the language code ``no`` is not read as false."""
    return json.dumps(text, ensure_ascii=False)


def _find_pattern(source: str, target: str) -> tuple[str, tuple[str, str]]:
    """Return the common name of two files, with ``{language}`` in it, and their languages."""
    for name in (source, target):
        if odd := _UNWRITABLE.search(os.path.abspath(name)):
            raise DataError(
                f"{name}: the character {odd[0]!r} has a special meaning in file names of a "
                "recipe; rename the file or its folder"
            )
    parts = [_PARTS.findall(name) for name in (source, target)]
    differing = {pair for pair in zip(*parts, strict=False) if pair[0] != pair[1]}
    if len(parts[0]) != len(parts[1]) or len(differing) != 1:
        raise DataError(
            f"{source} {target}: the names of the two files must differ only in the language, as "
            "in train.en train.de"
        )
    [languages] = differing
    for language in languages:
        check_language(language, source)
    pairs = zip(*parts, strict=True)
    return "".join(a if a == b else "{language}" for a, b in pairs), languages


def _has_files(folder: Path) -> bool:
    """Tell whether a folder has files, or its path is something else than a folder."""
    return os.path.lexists(folder) and not (folder.is_dir() and not any(folder.iterdir()))


def _name_files(pattern: str, languages: tuple[str, str]) -> tuple[str, str]:
    source, target = (pattern.replace("{language}", language) for language in languages)
    return os.path.relpath(source), os.path.relpath(target)


def _read(pattern: str, languages: tuple[str, str]) -> Iterator[tuple[str, str]]:
    return collect(Path(), name_format(pattern), pattern, languages, keep_empty=True)


class _Survey:
    """Counts, samples and hashes the pairs of the training text as they are read.

    Args:
        hashes: whether to hash all pairs, so that `choose` can hold some out.
    """

    def __init__(self, hashes: bool) -> None:
        self.count = 0
        self.sample: list[tuple[str, str]] = []
        self._hashes = array("q") if hashes else None

    def watch(self, split: str, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Yield the pairs of a split unchanged, and survey those of the training text."""
        for pair in pairs:
            if split == "train" and any(pair):
                self.count += 1
                if len(self.sample) < _SAMPLE:
                    self.sample.append(pair)
                if self._hashes is not None:
                    self._hashes.append(_hash(pair))
            yield pair

    def choose(self, left: Sequence[str]) -> dict[int, str]:
        """Choose pairs to hold out from all over the text; return the split of each by its hash."""
        import numpy as np

        hashes = np.array(self._hashes)
        hashes = hashes[hashes != _INCOMPLETE]
        first = np.sort(np.unique(hashes, return_index=True)[1])
        different = hashes[first].tolist()
        step = max(1, len(different) // max(1, min(_HELD_OUT, len(different) // _EVERY)))
        places = [(n * step) // len(left) for n in range(len(left))]
        return {
            each: split
            for place, split in zip(places, left, strict=True)
            for each in different[place::step][: len(different) // step]
        }


def _hash(pair: tuple[str, str]) -> int:
    """Return a hash of a pair that ignores case and spaces."""
    source, target = map(simplify, pair)
    return hash((source, target)) if source and target else _INCOMPLETE


def _hold_out(
    left: Sequence[str],
    names: Mapping[str, str],
    languages: tuple[str, str],
    chosen: Mapping[int, str],
    folder: Path,
) -> int:
    """Write all splits into ``texts``, and return the number of training pairs that are left.

    A pair that is held out is not in the training text, however often it was.
    """
    missing, kept = {*chosen}, 0
    with write_pairs([folder / "texts" / split for split in SPLITS], languages) as files:
        writers = dict(zip(SPLITS, files, strict=True))
        for split, name in names.items():
            for pair in filter(any, _read(name, languages)):
                key = _hash(pair) if split == "train" else None
                if key not in chosen:
                    writers[split].write(*pair)
                    kept += split == "train"
                elif key in missing:
                    writers[chosen[key]].write(*pair)
                    missing.discard(key)
    return kept


def _share_letters(source: Sequence[str], target: Sequence[str]) -> bool:
    """Tell whether more than half of the letters in each text also occur in the other text."""
    ours, theirs = _count_letters(source), _count_letters(target)
    shared = ours.keys() & theirs.keys()
    in_source = 2 * sum(ours[letter] for letter in shared) > ours.total()
    in_target = 2 * sum(theirs[letter] for letter in shared) > theirs.total()
    return in_source and in_target


def _count_letters(lines: Sequence[str]) -> Counter[str]:
    return Counter(character for line in lines for character in line if character.isalpha())


def _choose_sizes(
    sample: Sequence[tuple[str, str]], languages: tuple[str, str], pairs: int, gpu: bool
) -> dict[str, Any]:
    sides = [[*side] for side in zip(*sample, strict=True)]
    joint = _share_letters(*sides)
    words = []
    for side, language in zip(sides, languages, strict=True):
        words.append([separate_words(line, language) for line in side])
    texts = [words[0] + words[1]] if joint else words
    most = min(map(count_subwords, texts)) // 4 if pairs <= _SAMPLE else 32_000
    size = min(32_000, most, 500 * math.ceil(40 * math.sqrt(pairs) / 500))
    characters = max(len(set[str]().union(*lines)) for lines in texts)
    size = _BYTES + max(size, characters + _OTHERS)
    layers, width, inner, heads, dropout, lr = _MODELS[max(n for n in _MODELS if n <= pairs)]
    longer = max(len(" ".join(side).split()) for side in words) / len(sample)
    tokens = 1.3 * max(longer, 1) * pairs
    updates = min(_UPDATES[gpu], max(500, 100 * round(_PASSES * tokens / _BATCH[gpu] / 100)))
    return {
        **{"size": size, "joint": str(joint).lower(), "fp16": str(gpu).lower()},
        **{"layers": layers, "width": width, "inner": inner, "heads": heads, "dropout": dropout},
        "shared": "share_all_embeddings" if joint else "share_decoder_input_output_embed",
        **{"lr": lr, "updates": updates, "warmup": min(4000, updates // 5)},
        **{"batch": _BATCH[gpu], "passes": max(1, round(updates * _BATCH[gpu] / tokens))},
        "where": "on a GPU" if gpu else "without a GPU",
    }
