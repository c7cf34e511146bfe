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
import platform
import shutil
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import replacing
from syncattn_fairseq.base.text import read_lines
from syncattn_fairseq.data.controls import SameLength, draw_other
from syncattn_fairseq.data.parses import SPLITS
from syncattn_fairseq.data.spans import format_spans
from syncattn_fairseq.data.words import locate_words
from syncattn_lab.evaluation.measures import NLL
from syncattn_lab.evaluation.results_file import load_results

CORPUS = "multi30k_en_de"
LANGUAGES = "en", "de"
#: Of the training pairs, so many are those of the MarianMT.
PRETRAINED = 21750
SEEDS = (41, 42, 43)
#: By name: what of ``fairseq-train`` is its own.
_DBSA = ("--arch=transformer_dbsa", "--src-dep-weight=0.5", "--tgt-dep-weight=0.5")
SYSTEMS = {
    "right_tree": _DBSA,
    "other_tree": _DBSA,
    "plain": ("--arch=syntax_transformer",),
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
    files = [str(part / name) for name in ("source.spm", "target.spm", "vocab.json")]
    tokenizer = MarianTokenizer(*files, source_lang="en", target_lang="de")
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
        loss = F.cross_entropy(
            scores, target.where(target != pad, -100), label_smoothing=0.1
        )
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
