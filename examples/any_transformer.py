"""Syntactic heads in a Transformer of PyTorch's, and in one of the transformers library.

    python examples/any_transformer.py pytorch
    python examples/any_transformer.py marian

trains a small encoder-decoder for a minute on sentences of the built-in grammar, whose bottom
layers have a dependency head each, with its loss (DBSA). It prints the cross-entropy per word, and
how many parents the heads find.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from syncattn_fairseq.functional import dependency_loss
from syncattn_fairseq.modules import BatchView, DropInAttention
from syncattn_fairseq.modules.heads import DependencyHeads, Heads
from syncattn_lab.synthetic.generated_corpus import generate

PAD, START, END = 0, 1, 2
#: The size of the vocabulary of both languages; its last word stands for all others.
WORDS = 1000
WIDTH, HEADS = 64, 4


def put_in(layer: Any, view: BatchView, causal: bool) -> DropInAttention:
    """Make one self-attention head of a layer, of either library, a dependency head."""
    kinds: dict[str, Heads] = {
        "dependency": DependencyHeads(1, WIDTH // HEADS, view),
        "ordinary": Heads(HEADS - 1, WIDTH // HEADS, view),
    }
    layer.self_attn = DropInAttention(layer.self_attn, kinds, causal=causal)
    return layer.self_attn


class PyTorchModel(nn.Module):
    """PyTorch's own Transformer, with a dependency head in the encoder and in the decoder."""

    def __init__(self) -> None:
        super().__init__()
        sizes = (WIDTH, HEADS, 2, 2, 4 * WIDTH, 0.0)
        self.transformer = nn.Transformer(*sizes, batch_first=True, norm_first=True)
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(100, WIDTH)
        self.output = nn.Linear(WIDTH, WORDS)
        source, target = BatchView(), BatchView()
        source.watch(self, lambda source, previous: (source, source == PAD))
        target.watch(self, lambda source, previous: (previous, previous == PAD))
        self.parsers = (
            put_in(self.transformer.encoder.layers[0], source, causal=False),
            put_in(self.transformer.decoder.layers[0], target, causal=True),
        )

    def forward(self, source: Tensor, previous: Tensor) -> Tensor:
        """Return the scores of all words at each target position, ``(B, T, V)``."""
        source_x, target_x = (
            self.words(tokens) + self.places.weight[: tokens.size(1)]
            for tokens in (source, previous)
        )
        padding, future = source == PAD, torch.ones(2 * previous.shape[1:], dtype=torch.bool)
        return self.output(
            self.transformer(
                source_x,
                target_x,
                tgt_mask=future.triu(1),
                src_key_padding_mask=padding,
                memory_key_padding_mask=padding,
            )
        )


class MarianModel(nn.Module):
    """The transformers library's Marian model, with a dependency head in encoder and decoder."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import MarianConfig, MarianMTModel

        sizes = {"d_model": WIDTH, "vocab_size": WORDS, "max_position_embeddings": 100}
        for side in ("encoder", "decoder"):
            sizes |= {f"{side}_layers": 2, f"{side}_attention_heads": HEADS}
            sizes |= {f"{side}_ffn_dim": 4 * WIDTH}
        special = {"pad_token_id": PAD, "decoder_start_token_id": START, "eos_token_id": END}
        config = MarianConfig(**sizes, **special, bos_token_id=START, forced_eos_token_id=None)
        config.dropout = 0.0
        config._attn_implementation = "eager"
        self.marian = MarianMTModel(config)
        source, target = BatchView(), BatchView()
        encoder, decoder = self.marian.model.encoder, self.marian.model.decoder
        source.watch(encoder)
        target.watch(decoder)
        self.parsers = (
            put_in(encoder.layers[0], source, causal=False),
            put_in(decoder.layers[0], target, causal=True),
        )

    def forward(self, source: Tensor, previous: Tensor) -> Tensor:
        """Return the scores of all words at each target position, ``(B, T, V)``."""
        seen = (source != PAD).long()
        scores: Tensor = self.marian(
            source, attention_mask=seen, decoder_input_ids=previous, use_cache=False
        ).logits
        return scores


def draw_batches(size: int, seed: int) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Yield batches of words and dependency heads of both languages, ``(B, S)`` and ``(B, T)``."""
    batch: list[Tensor] = []
    numbers: dict[str, int] = {}
    for pair in generate(1_000_000, seed):
        for side in (pair.source, pair.target):
            words = [numbers.setdefault(w, min(len(numbers) + 3, WORDS - 1)) for w in side.words]
            # 1-based, 0 = root, which becomes its own parent; the end has none.
            parents = [head - 1 if head else i for i, head in enumerate(side.heads)]
            batch += [torch.tensor([*words, END]), torch.tensor([*parents, -1])]
        if len(batch) == 4 * size:
            padding = (PAD, -1, PAD, -1)
            yield tuple(pad_sequence(batch[i::4], True, p) for i, p in enumerate(padding))  # type: ignore[misc]
            batch = []


def train(model: nn.Module, updates: int, seed: int = 1) -> Iterator[tuple[float, float]]:
    """Train a model; yield each update's cross-entropy per word, and UAS of the source."""
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _, batch in zip(range(updates), draw_batches(32, seed), strict=False):
        source, source_parents, target, target_parents = batch
        previous = F.pad(target, (1, -1), value=START).masked_fill(target == PAD, PAD)
        scores = model(source, previous)
        source_parse, target_parse = (attention.parse for attention in model.parsers)
        entropy = F.cross_entropy(scores.transpose(1, 2), target, ignore_index=PAD)
        source_loss, source_count = dependency_loss(source_parse, source_parents)
        target_loss, target_count = dependency_loss(target_parse, target_parents, causal=True)
        loss = entropy + 0.5 * (source_loss / source_count + target_loss / target_count)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        correct = (source_parse.argmax(-1) == source_parents)[source_parents >= 0]
        yield entropy.item(), correct.float().mean().item()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="Train syntactic heads in another Transformer.")
    options.add_argument("library", choices=("pytorch", "marian"))
    options.add_argument("--updates", type=int, default=600)
    chosen = options.parse_args()
    torch.manual_seed(1)
    model = PyTorchModel() if chosen.library == "pytorch" else MarianModel()
    for update, (entropy, accuracy) in enumerate(train(model, chosen.updates), 1):
        if update % 50 == 0:
            print(
                f"update {update}: {entropy:.3f} nats a word, {accuracy:.0%} of the parents found"
            )
