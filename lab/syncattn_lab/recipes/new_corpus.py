"""The files of a corpus for somebody's own raw text, with sizes for the text and the machine."""

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import replacing
from syncattn_fairseq.data.moses import check_language as check_moses
from syncattn_fairseq.data.parallel_text import write_pairs
from syncattn_fairseq.data.parses import SPLITS

from .missing import count_subwords
from .systems import check_group, check_language
from .text_formats import collect

#: Models by the fewest pairs that they are for: layers, width, inner width, heads, dropout and the
#: learning rate.
_MODELS = {
    1_000_000: (6, 512, 2048, 8, 0.1, 0.0007),
    50_000: (6, 512, 1024, 4, 0.3, 0.0005),
    0: (3, 256, 512, 4, 0.3, 0.001),
}
#: The fewest pairs of training text; of how many one is held out, and how many are at most.
_FEWEST, _EVERY, _HELD_OUT = 100, 20, 1000
#: Pairs whose words and letters are looked at.
_SAMPLE = 100_000
#: Tokens of a batch, and the most updates, on a GPU and without; how often the text is read.
_BATCH, _UPDATES, _PASSES = {True: 4096, False: 1024}, {True: 100_000, False: 5000}, 40
_KYTEA = "kytea -notags -out tok"

_DATA = """\
# {name}: {source}-{target}, {pairs:,} pairs, written by syncattn-recipe --init.
# docs/recipes.md explains all keys.
here:
  folder: {folder}
  train: "{train}"
  valid: "{valid}"
  test: "{test}"
words: # what splits each language into words
  {source}: "{source_words}"
  {target}: "{target_words}"
clean: {{max_words: 100, ratio: 9}} # leaves out training pairs that are longer or more uneven
subwords: {{size: {size}, joint: {joint}}} # joint: both languages share them, as they share letters
checkpoint: best # what translates: best, last, or a number of epochs, whose mean it is
score: {score}
# What @all trains. syncattn also needs parses; models of Stanza are downloaded for them.
systems: [transformer, lpsi, syncattn]
"""
_CORPUS = """\
# {name}: sizes for {pairs:,} pairs, trained {where}.
common: {{fp16: {fp16}}}
task: {{source_lang: {source}, target_lang: {target}}}
model: {{{shared}: true, dropout: {dropout},
  encoder_layers: {layers}, encoder_embed_dim: {width}, encoder_ffn_embed_dim: {inner},
  encoder_attention_heads: {heads}, decoder_layers: {layers}, decoder_attention_heads: {heads}}}
optimizer: {{adam_betas: "(0.9,0.98)"}}
lr_scheduler: {{warmup_updates: {warmup}}}
optimization: {{lr: [{lr}], max_update: {updates}}} # reads the text about {passes} times
dataset: {{max_tokens: {batch}}} # tokens of a batch; give fewer if memory is short
checkpoint: {{no_epoch_checkpoints: true}}
generation: {{beam: 5}}
"""


def write_corpus(folder: Path, files: Sequence[str], gpu: bool) -> str:
    """Write ``_data.yaml`` and ``_corpus.yaml``; and the text, if parts of it are held out.

    The files are source and target of the training text, and perhaps of validation and test.
    Returns the sizes that were chosen, in a line. `DataError`: the files are no parallel text, or
    the folder has a corpus already.
    """
    check_group(folder.name)
    if (folder / "_data.yaml").exists():
        raise DataError(f"{folder}: has a corpus already; take another folder, or remove it")
    if len(files) not in (2, 4, 6):
        raise DataError(
            f"{folder}: give two files of training text, such as train.en train.de, and perhaps "
            f"two of validation and two of test text; these are {len(files)}"
        )
    found = [_find_pattern(*files[n : n + 2]) for n in range(0, len(files), 2)]
    languages = found[0][1]
    names = dict(zip(SPLITS, (os.path.abspath(pattern) for pattern, _ in found), strict=False))
    sample: list[tuple[str, str]] = []
    sizes = dict.fromkeys(names, 0)
    for split, name in names.items():
        for sizes[split], pair in enumerate(collect(Path(), "plain", name, languages), 1):
            if split == "train" and len(sample) < _SAMPLE:
                sample.append(pair)
    if sizes["train"] < _FEWEST:
        raise DataError(f"{files[0]}: {sizes['train']} pairs; a training needs {_FEWEST} at least")
    fixed = (os.path.dirname(name.partition("{")[0]) for name in names.values())
    place = os.path.commonpath([*fixed])
    names = {split: os.path.relpath(name, place) for split, name in names.items()}
    if left := [split for split in SPLITS if split not in names]:
        _hold_out(left, {s: f"{place}/{n}" for s, n in names.items()}, languages, sizes, folder)
        place, names = "texts", {split: f"{split}.{{language}}" for split in SPLITS}
    values = {
        **{"name": folder.name, "source": languages[0], "target": languages[1], **names},
        **{"folder": json.dumps(place), "pairs": sizes["train"]},
        **_choose_sizes(sample, sizes["train"], gpu),
        "source_words": _name_tokeniser(languages[0]),
        "target_words": _name_tokeniser(languages[1]),
        "score": _name_scores(languages[1]),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, template in (("_data", _DATA), ("_corpus", _CORPUS)):
        with replacing(folder / f"{name}.yaml") as path:
            path.write_text(template.format(**values), encoding="utf-8")
    return (
        f"{sizes['train']:,} pairs, {values['size']:,} subwords, {values['layers']} layers of "
        f"{values['width']}, {values['updates']:,} updates {values['where']}"
    )


def _find_pattern(source: str, target: str) -> tuple[str, tuple[str, str]]:
    """Return the name of both files with ``{language}``, and the languages."""
    parts = [re.split(r"([./_-])", name) for name in (source, target)]
    differing = {pair for pair in zip(*parts, strict=False) if pair[0] != pair[1]}
    if len(parts[0]) != len(parts[1]) or len(differing) != 1:
        raise DataError(
            f"{source} {target}: names of two files differ in the language alone, as in "
            "train.en train.de"
        )
    [languages] = differing
    for language in languages:
        check_language(language, source)
    pairs = zip(*parts, strict=True)
    return "".join(a if a == b else "{language}" for a, b in pairs), languages


def _hold_out(
    left: Sequence[str],
    names: Mapping[str, str],
    languages: tuple[str, str],
    sizes: Mapping[str, int],
    folder: Path,
) -> None:
    """Write all splits into ``texts``; those left are pairs from all over the training text."""
    step = sizes["train"] // min(_HELD_OUT, sizes["train"] // _EVERY)
    chosen = {(n * step) // len(left): split for n, split in enumerate(left)}
    with write_pairs([folder / "texts" / split for split in SPLITS], languages) as files:
        writers = dict(zip(SPLITS, files, strict=True))
        for split, name in names.items():
            for number, pair in enumerate(collect(Path(), "plain", name, languages)):
                part = chosen.get(number % step, split) if split == "train" else split
                writers[part].write(*pair)


def _choose_sizes(sample: Sequence[tuple[str, str]], pairs: int, gpu: bool) -> dict[str, Any]:
    sides = [[*side] for side in zip(*sample, strict=True)]
    letters = [{c for line in side for c in line if c.isalpha()} for side in sides]
    joint = 2 * len(letters[0] & letters[1]) > min(map(len, letters))
    texts = [sides[0] + sides[1]] if joint else sides
    most = min(map(count_subwords, texts)) // 4 if pairs <= _SAMPLE else 32_000
    size = min(32_000, most, 500 * math.ceil(40 * math.sqrt(pairs) / 500))
    layers, width, inner, heads, dropout, lr = _MODELS[max(n for n in _MODELS if n <= pairs)]
    words = max(sum(len(line.split()) for line in side) for side in sides) / len(sample)
    tokens = 1.3 * max(words, 1) * pairs
    updates = min(_UPDATES[gpu], max(500, 100 * round(_PASSES * tokens / _BATCH[gpu] / 100)))
    return {
        **{"size": size, "joint": str(joint).lower(), "fp16": str(gpu).lower()},
        **{"layers": layers, "width": width, "inner": inner, "heads": heads, "dropout": dropout},
        "shared": "share_all_embeddings" if joint else "share_decoder_input_output_embed",
        **{"lr": lr, "updates": updates, "warmup": min(4000, updates // 5)},
        **{"batch": _BATCH[gpu], "passes": max(1, round(updates * _BATCH[gpu] / tokens))},
        "where": "on a GPU" if gpu else "without a GPU",
    }


def _knows(language: str) -> bool:
    try:
        check_moses(language)
    except DataError:
        return False
    return True


def _name_tokeniser(language: str) -> str:
    if language == "ja":
        return f"tr -d ' ' | {_KYTEA}"
    return f"syncattn-tokenise --lang {language if _knows(language) else 'en'} --workers {{cores}}"


def _name_scores(language: str) -> str:
    if language == "ja":
        return f'{{words_by: "{_KYTEA}", tokenize: none}}'
    if not _knows(language):
        return "{references: words, tokenize: none}"
    return f'{{detokenize: "moses:{language}", tokenize: {"zh" if language == "zh" else "13a"}}}'
