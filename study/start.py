"""Train the cells of the plan's experiment on a model that already translates.

    python -m study.start --work . --results study/results/start

needs the text and the parses of the recipe ``multi30k_en_de`` in the folder ``--work``. One step
after the other makes what is missing, and goes on where it was stopped:

1. A MarianMT of Transformers learns from three quarters of the text, as people write it.
2. ``syncattn-import`` makes it a checkpoint of fairseq.
3. The last quarter, the validation and the test text are binarised with the model's subwords. The
   parses are of words as Moses splits them, and are matched by characters. Another binarised text
   has the trees of other sentences.
4. Each system is fine-tuned with each seed. NLL of the test text, of the average of late
   checkpoints, is written as each ends.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import syncattn_fairseq
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import replacing
from syncattn_fairseq.base.text import read_lines
from syncattn_fairseq.data.controls import SameLength, draw_other, take_tree
from syncattn_fairseq.data.parses import SPLITS, parse_heads
from syncattn_fairseq.data.spans import format_spans
from syncattn_fairseq.data.words import locate_words
from syncattn_lab.evaluation.results_file import load_results
from syncattn_lab.recipes.grid import describe_run
from syncattn_lab.recipes.launch import Machines

from .exchange import average

CORPUS = "multi30k_en_de"
LANGUAGES = "en", "de"
#: Of the training pairs, so many are those of the MarianMT.
PRETRAINED = 21750
SEEDS = (41, 42, 43)
_DBSA = ("--arch=transformer_dbsa", "--src-dep-weight=0.5", "--tgt-dep-weight=0.5")
#: By name: the trees of the training text, and what of ``fairseq-train`` is the system's own.
SYSTEMS = {
    "right_tree": ("right", _DBSA),
    "other_tree": ("other", _DBSA),
    "plain": ("right", ("--arch=syntax_transformer",)),
}
#: How many updates a fine-tuning has, how many of its late checkpoints are averaged, and how many
#: updates they are apart: a prime, since fairseq leaves out one that falls on the end of an epoch.
UPDATES, AVERAGED, APART = 480, 5, 41


@dataclass(frozen=True)
class Pretraining:
    """The MarianMT and its training.

    Attributes:
        pieces: of the subword model of each language.
        width, layers: of both stacks.
        tokens: of a batch, of the longer side and with its padding, at most.
        updates: of the training.
        rate, warmup: the highest learning rate, and after how many updates it is reached.
        saved: after how many updates the training is saved.
    """

    pieces: int = 2000
    width: int = 128
    layers: int = 3
    tokens: int = 1536
    updates: int = 1200
    rate: float = 2e-3
    warmup: int = 300
    saved: int = 100


def pretrain(folder: Path, texts: tuple[list[str], list[str]], settings: Pretraining) -> None:
    """Train a MarianMT, and save it as OPUS-MT's are published.

    Args:
        folder: the new folder; beside it, ``FOLDER.part`` has what an interrupted training did.
        texts: sentences of source and target, as people write them.
        settings: of the model and its training.
    """
    if folder.exists():
        return
    import torch
    from torch.nn import functional as F
    from torch.nn.utils.rnn import pad_sequence
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    part = folder.with_name(f"{folder.name}.part")
    part.mkdir(parents=True, exist_ok=True)
    _learn_subwords(part, texts, settings.pieces)
    kept: dict[str, Any] = {"source_lang": "en", "target_lang": "de"}
    for name, file in (("source_spm", "source.spm"), ("target_spm", "target.spm")):
        kept[name] = str(part / file)
    tokenizer = MarianTokenizer(**kept, vocab=str(part / "vocab.json"))
    rows = [tokenizer(texts[0]).input_ids, tokenizer(text_target=texts[1]).input_ids]
    pairs = [*zip(*rows, strict=True)]
    pad = tokenizer.pad_token_id
    sizes: dict[str, Any] = {"vocab_size": len(tokenizer), "d_model": settings.width}
    for side in ("encoder", "decoder"):
        sizes |= {f"{side}_layers": settings.layers, f"{side}_attention_heads": 4}
        sizes |= {f"{side}_ffn_dim": 2 * settings.width}
    torch.manual_seed(1)
    model = MarianMTModel(
        MarianConfig(
            **sizes,
            activation_function="swish",
            scale_embedding=True,
            max_position_embeddings=256,
            pad_token_id=pad,
            decoder_start_token_id=pad,
            eos_token_id=0,
            forced_eos_token_id=None,
        )
    )
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    done = 0
    if (part / "state.pt").exists():
        state = torch.load(part / "state.pt")
        done = state["update"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
    began, cpu = time.time(), time.process_time()
    for update, batch in enumerate(_list_batches(pairs, settings), 1):
        if update <= done:
            continue
        source, target = (
            pad_sequence([torch.tensor(pairs[number][side]) for number in batch], True, pad)
            for side in (0, 1)
        )
        given = F.pad(target, (1, -1), value=pad)
        seen = (source != pad).long()
        scores = model(source, attention_mask=seen, decoder_input_ids=given, use_cache=False).logits
        # Marian has no such word: its vector, with which translations begin, stays zeros.
        scores = scores[..., :pad].transpose(1, 2)
        loss = F.cross_entropy(scores, target.where(target != pad, -100), label_smoothing=0.1)
        optimizer.param_groups[0]["lr"] = settings.rate * min(
            update / settings.warmup, math.sqrt(settings.warmup / update)
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % settings.saved == 0 or update == settings.updates:
            state = {"update": update, "random": torch.get_rng_state()}
            state |= {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            with replacing(part / "state.pt") as temporary:
                torch.save(state, temporary)
            seconds = f"{time.time() - began:.0f} s, {time.process_time() - cpu:.0f} of a core"
            print(f"update {update}: loss {loss.item():.3f}, {seconds}", flush=True)
    model.save_pretrained(part)
    tokenizer.save_pretrained(part)
    (part / "state.pt").unlink()
    part.rename(folder)


def _learn_subwords(folder: Path, texts: Sequence[Sequence[str]], pieces: int) -> None:
    """Write a sentencepiece model of each text, as OPUS-MT has them, and their vocabulary."""
    import sentencepiece

    vocabulary = ["</s>", "<unk>"]
    for name, text in zip(("source", "target"), texts, strict=True):
        path = folder / f"{name}.spm"
        if not path.exists():
            with replacing(path) as temporary, open(temporary, "wb") as file:
                sentencepiece.SentencePieceTrainer.train(
                    sentence_iterator=iter(text),
                    model_writer=file,
                    vocab_size=pieces,
                    num_threads=1,
                    minloglevel=2,
                )
        processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        vocabulary += map(processor.id_to_piece, range(len(processor)))
    vocabulary = [word for word in dict.fromkeys(vocabulary) if word != "<s>"]
    numbers = {word: number for number, word in enumerate([*vocabulary, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(numbers, ensure_ascii=False), "utf-8")


def _list_batches(pairs: Sequence[Any], settings: Pretraining) -> Iterator[list[int]]:
    """Yield the numbers of the pairs of each update: of similar lengths, in random order."""
    sizes = np.array([[len(side) for side in pair] for pair in pairs])
    left = settings.updates
    for epoch in range(1, 1 + settings.updates):
        generator = np.random.default_rng(epoch)
        noise = generator.random(len(pairs))
        batches: list[list[int]] = [[]]
        longest = 0
        for number in np.lexsort((noise, sizes[:, 0], sizes[:, 1])).tolist():
            longest = max(longest, *sizes[number].tolist())
            if longest * (len(batches[-1]) + 1) > settings.tokens:
                batches.append([])
                longest = max(sizes[number].tolist())
            batches[-1].append(number)
        for place in generator.permutation(len(batches))[:left].tolist():
            yield batches[place]
        left -= len(batches)
        if left <= 0:
            return


def bring_model(work: Path, settings: Pretraining = Pretraining()) -> Path:
    """Train the MarianMT and import it; return the folder of the import."""
    made = work / "start" / "imported"
    if not made.exists():
        paths = [_find_texts(work) / "raw" / f"train.{language}" for language in LANGUAGES]
        source, target = ([*read_lines(path)][:PRETRAINED] for path in paths)
        pretrain(work / "start" / "marian", (source, target), settings)
        _run("syncattn-import", str(work / "start" / "marian"), f"--output={made}")
    return made


def _find_texts(work: Path) -> Path:
    return work / "corpora" / CORPUS


def _run(*words: str) -> None:
    subprocess.run(words, check=True)


def prepare(work: Path, model: Path) -> None:
    """Binarise the texts of the fine-tunings, with right trees and with those of other sentences.

    Args:
        work: the folder of the recipe.
        model: the import, whose subwords and dictionaries they have.

    Raises:
        DataError: the recipe's texts differ in their lines.
    """
    for trees in ("right", "other"):
        data = _find_data(work, trees)
        if data.exists():
            continue
        part = work / "start" / trees
        part.mkdir(parents=True, exist_ok=True)
        for split in SPLITS:
            for language in LANGUAGES:
                name = f"{split}.{language}"
                _write_parsed(work, part, split, language, trees == "other" and split == "train")
                made = [f"--input={part / name}", f"--output={part / f'pieces.{name}'}"]
                _run("syncattn-bpe", "apply", f"--model={model / f'subwords.{language}'}", *made)
        words = ["-s=en", "-t=de", f"--destdir={data}.part", f"--start={model}"]
        for split in SPLITS:
            words.append(f"--{split}pref={part / f'pieces.{split}'}")
            words.append(f"--{split}heads={part / split}")
        _run("syncattn-preprocess", *words)
        Path(f"{data}.part").rename(data)


def _find_data(work: Path, trees: str) -> Path:
    return work / "data-bin" / f"start.{trees}"


def _write_parsed(work: Path, part: Path, split: str, language: str, others: bool) -> None:
    """Write sentences, and the places and heads of their words.

    Args:
        work: the folder of the recipe.
        part: the folder to write into.
        split: of the text; of the training text, those pairs that the MarianMT has not learnt from.
        language: of the text.
        others: whether each sentence has the tree of another one.
    """
    name, texts = f"{split}.{language}", _find_texts(work)
    paths = [
        texts / "raw" / name,
        texts / "words" / name,
        texts / "words" / f"{split}.heads.{language}",
    ]
    columns = [[*read_lines(path)] for path in paths]
    if len({*map(len, columns)}) > 1:
        raise DataError(f"{paths[1]}: has not the lines of {paths[0]}; was it cleaned?")
    raw, words, heads = (rows[PRETRAINED if split == "train" else 0 :] for rows in columns)
    spans = [locate_words(line.split(), text) for line, text in zip(words, raw, strict=True)]
    trees = [
        parse_heads(line, paths[2], number) if found else []
        for number, (line, found) in enumerate(zip(heads, spans, strict=True), 1)
    ]
    if others:
        trees = take_others(trees, LANGUAGES.index(language))
    files = {
        name: raw,
        f"{split}.spans.{language}": [format_spans(found or []) for found in spans],
        f"{split}.heads.{language}": [" ".join(map(str, tree)) for tree in trees],
    }
    for file, lines in files.items():
        with replacing(part / file) as temporary:
            temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def take_others(trees: Sequence[Sequence[int]], seed: int) -> list[list[int]]:
    """Return for each tree that of another sentence with as many words, or itself mirrored.

    Args:
        trees: 1-based heads, 0 for the root; none: no parse.
        seed: of the choice.
    """
    import torch

    alike = SameLength(np.array([*map(len, trees)]))
    taken: list[list[int]] = []
    for index, tree in enumerate(trees):
        generator = np.random.default_rng([seed, index])
        other = draw_other(index, alike.find(len(tree)), generator)
        marks = torch.tensor([*tree], dtype=torch.long)
        taken.append(
            take_tree(marks, None if other is None else torch.tensor(trees[other])).tolist()
            if tree
            else []
        )
    return taken


def make_command(work: Path, model: Path, system: str, seed: int) -> list[str]:
    """Return the command of a fine-tuning.

    Args:
        work: the folder of the recipe.
        model: the import.
        system: its name in `SYSTEMS`.
        seed: of new weights, dropout and batches.
    """
    trees, own = SYSTEMS[system]
    options = (model / "options.txt").read_text().split()
    return [
        *("fairseq-train", str(_find_data(work, trees)), "--source-lang=en", "--target-lang=de"),
        f"--user-dir={Path(syncattn_fairseq.__file__).parent}",
        *("--task=translation_with_syntax", *own, *options),
        f"--finetune-from-model={model / 'model.pt'}",
        *("--criterion=label_smoothed_cross_entropy_with_syntax", "--label-smoothing=0.1"),
        *("--optimizer=adam", "--adam-betas=(0.9,0.98)", "--lr=5e-4"),
        *("--lr-scheduler=inverse_sqrt", "--warmup-updates=60"),
        *("--max-tokens=1024", f"--max-update={UPDATES}", f"--seed={seed}", "--cpu"),
        f"--save-dir={_find_checkpoints(work, system, seed)}",
        *("--no-epoch-checkpoints", f"--save-interval-updates={APART}"),
        *(f"--keep-interval-updates={AVERAGED}", "--disable-validation"),
        *("--log-format=simple", f"--log-interval={APART}"),
    ]


def _find_checkpoints(work: Path, system: str, seed: int) -> Path:
    return work / "checkpoints" / "start" / system / str(seed)


def measure(checkpoint: Path, data: Path) -> dict[str, float]:
    """Return NLL of the test text, in bits per subword, and UAS of dependency heads, in per cent.

    UAS is that of subwords against the right trees: as in training, the target is given.
    """
    from fairseq import checkpoint_utils

    import syncattn_fairseq.plugin  # noqa: F401  (registers the models)

    [model], options, task = checkpoint_utils.load_model_ensemble_and_task(
        [str(checkpoint)], arg_overrides={"data": str(data)}
    )
    model.eval()
    criterion = task.build_criterion(options.criterion)
    task.load_dataset("test")
    sums: Counter[str] = Counter()
    batches = task.get_batch_iterator(task.dataset("test"), max_tokens=4096)
    for batch in batches.next_epoch_itr(shuffle=False):
        _, _, logs = task.valid_step(batch, model, criterion)
        sums.update({name: float(value) for name, value in logs.items()})
    nats = sums["nll_loss" if "nll_loss" in sums else "loss"]  # an import's has no smoothing
    found = {"nll_loss": nats / sums["ntokens"] / math.log(2)}
    for side in ("src", "tgt"):
        if parents := sums[f"{side}_dep_parents"]:
            found[f"{side}_uas"] = 100 * sums[f"{side}_dep_correct"] / parents
    return {name: round(value, 4) for name, value in found.items()}


def run(work: Path, results: Path, model: Path) -> None:
    """Fine-tune what is missing in the results, seed by seed, and write each as it ends.

    Args:
        work: the folder of the recipe.
        results: the folder of ``imported.json``, the model itself, and ``fine_tuned.json``.
        model: the import.
    """
    machine = describe_run(Machines(cpu=True), 1)
    if not (before := results / "imported.json").exists():
        cell = {
            "system": "imported",
            "seed": 1,
            "test": measure(model / "model.pt", _find_data(work, "right")),
        }
        _write(before, [_complete(cell, machine)])
    path = results / "fine_tuned.json"
    cells = load_results(path)["cells"] if path.exists() else []
    for seed in SEEDS:
        for system in SYSTEMS:
            if any((x["system"], x["seed"]) == (system, seed) for x in cells):
                continue
            began = time.time()
            _run(*make_command(work, model, system, seed))
            checkpoint = average(_find_checkpoints(work, system, seed), UPDATES, APART)
            cell = {"system": system, "seed": seed, "updates": UPDATES}
            cell |= {"seconds": round(time.time() - began)}
            cell |= {"test": measure(checkpoint, _find_data(work, "right"))}
            cells.append(_complete(cell, machine))
            _write(path, cells)


def _complete(cell: dict[str, Any], machine: dict[str, str]) -> dict[str, Any]:
    empty: dict[str, Any] = {"overrides": {}, "scores": {}, "signatures": {}, "valid": {}}
    return cell | empty | machine | {"precision": "single"}


def _write(path: Path, cells: Sequence[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = ",\n".join(json.dumps(cell) for cell in cells)
    with replacing(path) as temporary:
        temporary.write_text(f'{{"corpus": "{CORPUS}", "cells": [\n{rows}\n]}}\n', "utf-8")


def main(words: Sequence[str] | None = None) -> None:
    """Do what is missing; ``words`` are the process's, if not given."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--work", type=Path, default=Path(), help="folder of the recipe")
    made.add_argument("--results", type=Path, required=True, help="folder; is continued")
    args = made.parse_args(words)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    model = bring_model(args.work)
    prepare(args.work, model)
    run(args.work, args.results, model)


if __name__ == "__main__":
    main()
