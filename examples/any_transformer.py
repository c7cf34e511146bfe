"""Syntactic heads in a Transformer of your own, with torch alone.

    python examples/any_transformer.py

trains a small encoder-decoder for a minute on sentences of the built-in grammar: dependency heads
in the bottom layers, with their loss (DBSA); in the layers above, gates that learn how far to look
(LPSI) in the encoder, and biases for the distance in the decoder. It prints the cross-entropy per
word, and how many parents the heads find.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from syncattn_fairseq.functional import dependency_loss
from syncattn_fairseq.lab.synthetic.generated_corpus import generate
from syncattn_fairseq.modules import BatchView, SyntaxAttention
from syncattn_fairseq.modules.heads import DependencyHeads, DistanceBiasHeads, GatedHeads, Heads

PAD, START, END = 0, 1, 2
#: The size of the vocabulary of both languages; its last word stands for all others.
WORDS = 1000
WIDTH, HEADS = 64, 4
HEAD_DIM = WIDTH // HEADS


class Layer(nn.Module):
    """A Transformer layer, before which its input is normalised."""

    def __init__(self, heads: dict[str, Heads], crosses: bool) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))
        self.attention = SyntaxAttention(WIDTH, heads)
        self.cross = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True) if crosses else None
        self.dense = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(
        self, x: Tensor, padding: Tensor, memory: Tensor | None, memory_padding: Tensor | None
    ) -> Tensor:
        """Run the layer on ``(B, T, D)``; with a memory, it is a decoder's."""
        x = x + self.attention(self.norms[0](x), padding, causal=self.cross is not None)
        if self.cross is not None:
            assert memory is not None
            x = x + self.cross(self.norms[1](x), memory, memory, memory_padding)[0]
        return x + self.dense(self.norms[2](x))


class Stack(nn.Module):
    """An encoder or a decoder of two layers."""

    def __init__(self, words: int, decodes: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, WIDTH)
        self.view = BatchView()
        self.view.observed = ["dependency"]
        rest = Heads(HEADS - 1, HEAD_DIM, self.view)
        bottom = {"dependency": DependencyHeads(1, HEAD_DIM, self.view), "ordinary": rest}
        upper = DistanceBiasHeads if decodes else GatedHeads
        top = {"upper": upper(HEADS, HEAD_DIM, self.view)}
        self.layers = nn.ModuleList([Layer(bottom, decodes), Layer(top, decodes)])

    def forward(
        self, tokens: Tensor, memory: Tensor | None = None, memory_padding: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return states, ``(B, T, D)``, and the parse, ``(B, T, T)``."""
        padding = tokens == PAD
        self.view.fill(tokens, padding, {})
        x = self.embedding(tokens) + sinusoids(tokens.size(1))
        for layer in self.layers:
            x = layer(x, padding, memory, memory_padding)
        return x, self.layers[0].attention.exposed["dependency"][:, 0]


def sinusoids(length: int) -> Tensor:
    """Return position embeddings, ``(length, D)``."""
    rates = torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(10000) / WIDTH))
    angles = torch.arange(length).unsqueeze(1) * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def draw_batches(size: int, seed: int) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Yield words and parents of both languages, ``(B, S)`` and ``(B, T)``."""
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


def train(updates: int, seed: int = 1) -> Iterator[tuple[float, float]]:
    """Train, and yield the cross-entropy per word and the share of right parents, by update."""
    torch.manual_seed(seed)
    encoder, decoder, output = Stack(WORDS, False), Stack(WORDS, True), nn.Linear(WIDTH, WORDS)
    model = nn.ModuleList([encoder, decoder, output])
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _, batch in zip(range(updates), draw_batches(32, seed), strict=False):
        source, source_parents, target, target_parents = batch
        memory, source_parse = encoder(source)
        previous = F.pad(target, (1, -1), value=START).masked_fill(target == PAD, PAD)
        states, target_parse = decoder(previous, memory, source == PAD)
        entropy = F.cross_entropy(output(states).transpose(1, 2), target, ignore_index=PAD)
        source_loss, source_count = dependency_loss(source_parse, source_parents)
        target_loss, target_count = dependency_loss(target_parse, target_parents, causal=True)
        loss = entropy + 0.5 * (source_loss / source_count + target_loss / target_count)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        correct = (source_parse.argmax(-1) == source_parents)[source_parents >= 0]
        yield entropy.item(), correct.float().mean().item()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="Train syntactic heads in a plain Transformer.")
    options.add_argument("--updates", type=int, default=600)
    for update, (entropy, accuracy) in enumerate(train(options.parse_args().updates), 1):
        if update % 50 == 0:
            print(
                f"update {update}: {entropy:.3f} nats a word, {accuracy:.0%} of the parents found"
            )
