"""Check that a kind of attention heads or of position information computes correctly.

    from syncattn_fairseq.testing import check_model

    check_model(outward_layers="1,2", outward_decoder_layers="1")

builds a small model with these options and raises ``AssertionError`` unless

* a sentence has the same scores alone, in a batch, and padded on the left or on the right;
* decoding step by step, where the beams of two sentences are reordered, gives the scores and the
  alignments of teacher forcing;
* scores are finite in half precision;
* all gradients are finite, and every parameter has one;
* forward and backward pass do not wait for a GPU, or copy to it, so that with ``--fast`` they
  become CUDA graphs; no GPU is needed to find that out.

All kinds of this library pass. The options are those of the command line, with ``_`` for ``-``;
whatever the model reads of the source's parse is made from random trees.
"""

import copy
import functools
from argparse import SUPPRESS, Action, ArgumentParser, Namespace
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, LanguagePairDataset
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from torch import Tensor

from . import plugin  # noqa: F401  (registers the models)
from .base.errors import DataError, suggest
from .checkpoints.option_checks import find_expected
from .data.controls import draw_heads
from .data.dataset import SyntaxPairDataset
from .data.subwords import CONTINUATION
from .models.rnn_decoder import ConditionalGRUDecoder
from .modules import PARTS
from .modules.positions import POSITIONS
from .tasks.graphs import find_model_obstacle, grow_masks
from .tasks.waits import CannotRecord, Watch

#: Numbers of subwords of the sentence pairs in source and target, without end of sentence.
SOURCE_LENGTHS, TARGET_LENGTHS = (5, 2, 9), (3, 7, 4)
TOLERANCE = 1e-5
#: Sizes of the dictionaries of words and of dependency labels.
WORDS, LABELS = 20, 5


def check_model(arch: str = "syntax_transformer_tiny", **options: Any) -> None:
    """Run all checks of this module on a small model with the given options.

    Args:
        arch: its architecture, of this plugin.
        options: others than the architecture's own; for example ``positions="rotary"``.

    Raises:
        AssertionError: a check failed; the message says which.
        DataError: the options are impossible.
    """
    model = build_model(arch, **options)
    check_batches(model)
    check_steps(model)
    check_half_precision(model)
    check_gradients(model)
    check_recording(model)


def build_model(
    arch: str = "syntax_transformer_tiny", seed: int = 0, noise: float = 0.3, **options: Any
) -> Any:
    """Build a small model with random parameters, in evaluation mode and in float64.

    Its parameters are disturbed, by ``noise`` times normal numbers, so that none that starts at 0
    hides a fault.
    """
    words = make_dictionary(WORDS)
    task = SimpleNamespace(
        source_dictionary=words,
        target_dictionary=words,
        source_label_dictionary=make_dictionary(LABELS),
    )
    _check_options(arch, options)
    args = Namespace(arch=arch, **options)
    ARCH_CONFIG_REGISTRY[arch](args)
    torch.manual_seed(seed)
    model = ARCH_MODEL_REGISTRY[arch].build_model(args, task)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(noise * torch.randn_like(parameter))
    return model.double().eval()


def _check_options(arch: str, options: Mapping[str, Any]) -> None:
    """Raise `DataError` for unknown or invalid options, which would leave the heads out."""
    known = _list_options(arch, (*PARTS.values(), *POSITIONS.values()))
    for name, value in options.items():
        if name not in known:
            raise DataError(f"{name}: {arch} has no such option{suggest(name, known)}")
        if expected := find_expected(known[name], value):
            raise DataError(f"{name}: {value!r} is not {expected}")


@functools.cache
def _list_options(arch: str, _registered: tuple[type, ...]) -> dict[str, Action]:
    """Return an architecture's options by name, cached for the registered parts."""
    parser = ArgumentParser(argument_default=SUPPRESS, allow_abbrev=False)
    ARCH_MODEL_REGISTRY[arch].add_args(parser)
    return {action.dest: action for action in parser._actions}


def make_batch(
    model: Any, sentences: list[int], left_pad: bool = True, left_pad_target: bool = False
) -> dict[str, Any]:
    """Collate random sentence pairs, with parses of source and target, into a batch.

    Args:
        model: the model.
        sentences: indices in :data:`SOURCE_LENGTHS`.
        left_pad, left_pad_target: whether source and target are padded on the left.
    """
    dataset = make_dataset(model, left_pad, left_pad_target)
    return dataset.collater([dataset[index] for index in sentences])


def make_dataset(
    model: Any, left_pad: bool = True, left_pad_target: bool = False
) -> SyntaxPairDataset:
    """Make a data set of random sentence pairs with parses, from which batches are collated."""
    words = make_dictionary(WORDS)
    generator = np.random.default_rng(1)
    source, target = (
        [_draw_sentence(length, generator, words) for length in lengths]
        for lengths in (SOURCE_LENGTHS, TARGET_LENGTHS)
    )
    pairs = LanguagePairDataset(
        source,
        [len(sentence) for sentence in source],
        words,
        target,
        [len(sentence) for sentence in target],
        words,
        left_pad_source=left_pad,
        left_pad_target=left_pad_target,
        shuffle=False,
    )
    return SyntaxPairDataset(
        pairs,
        [_draw_marks(length, generator) for length in SOURCE_LENGTHS],
        [_draw_marks(length, generator) for length in TARGET_LENGTHS],
        [4 + torch.from_numpy(generator.integers(LABELS, size=n)) for n in SOURCE_LENGTHS],
        fields=model.source_fields,
    )


@torch.no_grad()
def check_batches(model: Any) -> None:
    """Check that a sentence gets the same scores alone as in a batch padded left or right."""
    # A recurrent decoder, fairseq's too, reads what stands before a target.
    recurrent = isinstance(model.decoder, ConditionalGRUDecoder)
    for left_pad, left_pad_target in ((True, False), (False, not recurrent)):
        batch = make_batch(model, [0, 1, 2], left_pad, left_pad_target)
        scores, _ = model(**batch["net_input"])
        for row, sentence in enumerate(batch["id"].tolist()):
            alone, _ = model(**make_batch(model, [sentence])["net_input"])
            length = alone.size(1)
            side = "left" if left_pad else "right"
            _compare(
                scores[row, -length:] if left_pad_target else scores[row, :length],
                alone[0],
                f"sentence {sentence} has different scores alone and in a batch padded on the "
                f"{side}",
            )


@torch.no_grad()
def check_steps(model: Any) -> None:
    """Check that step-by-step decoding with a reordered beam gives the scores of teacher forcing.

    There are two hypotheses of each of two sentences, one of which is padded.
    """
    batch = make_batch(model, [1, 1, 0, 0])["net_input"]
    previous = batch.pop("prev_output_tokens").clone()
    previous[:, 1:] = 4 + torch.arange(previous[:, 1:].numel()).view(4, -1) * 7 % WORDS
    whole, extra = model(**batch, prev_output_tokens=previous)
    encoder_out = model.encoder(**batch)
    state: dict[str, Any] = {}
    order = torch.arange(4)
    # Two change places, and of the others one goes on twice. Then the first sentence is complete.
    turns = {2: torch.tensor([1, 0, 3, 3]), 5: torch.tensor([2, 3])}
    for step in range(previous.size(1)):
        if step in turns:
            turn = turns[step]
            model.decoder.reorder_incremental_state_scripting(state, turn)
            encoder_out = model.encoder.reorder_encoder_out(encoder_out, turn)
            order = order[turn]
        scores, last = model.decoder(
            previous[order, : step + 1], encoder_out=encoder_out, incremental_state=state
        )
        for name, actual, expected in (
            ("scores", scores, whole),
            ("alignments", last["attn"][0], extra["attn"][0]),
        ):
            _compare(
                actual[:, 0],
                expected[order, step],
                f"step {step + 1} of incremental decoding has other {name} than the same step "
                "with teacher forcing",
            )


@torch.no_grad()
def check_half_precision(model: Any) -> None:
    """Check that a model's scores are finite in float16 and in bfloat16."""
    for dtype in (torch.float16, torch.bfloat16):
        scores, _ = copy.deepcopy(model).to(dtype)(**make_batch(model, [0, 1, 2])["net_input"])
        if not scores.isfinite().all():
            raise AssertionError(f"some scores are not finite in {dtype}")


def check_gradients(model: Any) -> None:
    """Check that every trained parameter of a model gets a finite gradient."""
    differentiate(model, make_batch(model, [0, 1, 2]))
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and parameter.grad is None:
            raise AssertionError(f"{name} has no gradient")
        if parameter.grad is not None and not parameter.grad.isfinite().all():
            raise AssertionError(f"the gradient of {name} is not finite")


def check_recording(model: Any) -> None:
    """Check that a CUDA graph could record the model's forward and backward pass.

    The model runs on the meta device, which has shapes without numbers, so no GPU is needed.
    """
    if find_model_obstacle(model):
        return
    model = copy.deepcopy(model).to("meta")
    batch = make_batch(model, [0, 1, 2])
    net_input = {name: tensor.to("meta") for name, tensor in batch["net_input"].items()}
    batch = {"net_input": net_input, "target": batch["target"].to("meta")}
    grow_masks(model, batch["target"].size(1), next(model.parameters()))
    try:
        with Watch("meta", refuse=True):
            differentiate(model, batch)
    except CannotRecord as error:
        raise AssertionError(f"a GPU would train without CUDA graphs: {error}") from None


def differentiate(model: Any, batch: dict[str, Any]) -> None:
    """Compute the gradients of a loss that depends on every output of a model for a batch."""
    model.train().zero_grad()
    scores, extra = model(**batch["net_input"])
    log_probabilities = scores.log_softmax(-1)
    loss = -log_probabilities.gather(-1, batch["target"].unsqueeze(-1)).sum()
    for exposed in extra.values():
        for tensor in exposed if isinstance(exposed, list) else [exposed]:
            if isinstance(tensor, Tensor) and tensor.requires_grad:
                loss = loss + tensor.square().sum()
    loss.backward()
    model.eval()


def make_dictionary(words: int) -> Dictionary:
    """Return a dictionary of ``words`` made-up words: w0, w1 and so on."""
    dictionary = Dictionary()
    for number in range(words):
        dictionary.add_symbol(f"w{number}")
    return dictionary


def _draw_sentence(length: int, generator: np.random.Generator, words: Dictionary) -> Tensor:
    drawn = generator.integers(words.nspecial, len(words), size=length)
    return torch.tensor([*drawn, words.eos()])


def _draw_marks(length: int, generator: np.random.Generator) -> Tensor:
    """Draw a random tree over ``length`` subwords; every third subword continues a word."""
    continues = torch.arange(length) % 3 == 2
    return draw_heads(torch.zeros(length).long().masked_fill(continues, CONTINUATION), generator)


def _compare(actual: Tensor, expected: Tensor, message: str) -> None:
    torch.testing.assert_close(
        actual, expected, atol=TOLERANCE, rtol=TOLERANCE, msg=lambda text: f"{message}: {text}"
    )
