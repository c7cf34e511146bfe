"""Small models and batches, without a corpus."""

from argparse import Namespace
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary, data_utils
from fairseq.models import ARCH_CONFIG_REGISTRY
from torch import Tensor

from syncattn_fairseq import testing

PAD, EOS = 1, 2
LABELS = testing.LABELS
#: Of Transformers that have no architecture named tiny.
SIZE = {
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_embed_dim": 16,
    "encoder_ffn_embed_dim": 16,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
}

#: Of recurrent models.
RNN_SIZES = {
    "encoder_embed_dim": 12,
    "encoder_hidden_size": 10,
    "decoder_embed_dim": 14,
    "decoder_hidden_size": 8,
}


def dictionary(words: int = testing.WORDS) -> Dictionary:
    return testing.make_dictionary(words)


def task(target_words: int = testing.WORDS) -> SimpleNamespace:
    """Make what stands for a task where only its dictionaries are read."""
    words = dictionary(), dictionary(target_words)
    return SimpleNamespace(source_dictionary=words[0], target_dictionary=words[1])


def options_of(arch: str, **chosen: Any) -> Namespace:
    args = Namespace(arch=arch, **chosen)
    ARCH_CONFIG_REGISTRY[arch](args)
    return args


def model(arch: str, seed: int = 0, noise: float = 0.3, **options: Any) -> Any:
    """Build a model as users' tests do, but in float32, and a recurrent one in small."""
    sizes = RNN_SIZES if "rnn" in arch else {}
    return testing.build_model(arch, seed, noise, **sizes | options).float()


def sentences(lengths: list[int], seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.cat([torch.randint(4, 24, (n,), generator=generator), torch.tensor([EOS])])
        for n in lengths
    ]


def net_input(
    source: list[Tensor], target: list[Tensor], left_pad_source: bool = True
) -> dict[str, Tensor]:
    tokens = data_utils.collate_tokens(source, PAD, left_pad=left_pad_source)
    distances = torch.zeros(*tokens.shape, tokens.size(1), dtype=torch.int16)
    heights = torch.full(tokens.shape, float("nan")).double()
    parents, labels = torch.full(tokens.shape, float("nan")).double(), tokens.clone()
    for row, sentence in enumerate(source):
        size = len(sentence)
        first = tokens.size(1) - size if left_pad_source else 0
        # Some parse, the same wherever the sentence stands; the end of sentence is its own parent.
        middles = sentence * 7 % max(2 * size - 2, 1) / 2  # an empty one has none
        middles[-1] = size - 1
        parents[row, first : first + size] = middles + first
        columns = slice(first, first + size)
        distances[row, columns, columns] = (sentence - sentence.unsqueeze(1)).abs().short() % 6
        heights[row, columns] = (sentence % 5).double()
        labels[row, first : first + size - 1] = 4 + sentence[:-1] % LABELS
    return {
        "src_tokens": tokens,
        "src_parent_positions": parents,
        "src_labels": labels,
        "src_tree_distances": distances,
        "src_gap_heights": heights,
        "src_lengths": torch.tensor([len(s) for s in source]),
        "prev_output_tokens": data_utils.collate_tokens(
            target, PAD, EOS, move_eos_to_beginning=True
        ),
    }


def plain_input(fields: dict[str, Any]) -> dict[str, Any]:
    """Return what fairseq's own models take of the input of a model."""
    return {name: fields[name] for name in ("src_tokens", "src_lengths", "prev_output_tokens")}
