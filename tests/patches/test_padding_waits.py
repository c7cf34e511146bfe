import traceback
from typing import Any

import pytest
import torch
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase

from syncattn_fairseq.patches import padding_waits
from syncattn_fairseq.patches.padding_waits import may_be_padded
from syncattn_fairseq.patches.wrapping import reword
from syncattn_fairseq.tasks.waits import Watch
from tests.models import build


@pytest.mark.parametrize("arch", ["transformer", "syntax_transformer_tiny"])
def test_a_gpu_is_not_asked_whether_a_batch_has_padding(arch):
    """fairseq's own Transformer asks it no more either."""
    model = build.model("syntax_transformer_tiny") if "tiny" in arch else fairseqs_own()
    batch = build.net_input(build.sentences([5, 2]), build.sentences([3, 4], seed=1))
    plain = {k: batch[k].to("meta") for k in ("src_tokens", "src_lengths", "prev_output_tokens")}
    model.to("meta").train().decoder.buffered_future_mask(torch.empty(20, 1, 1, device="meta"))
    with Watch("meta") as watch:
        model(**plain)[0].sum().backward()
    assert watch.places == []


def fairseqs_own() -> Any:
    from fairseq.models.transformer import TransformerModel

    args = build.options_of("transformer", **build.SIZE, decoder_embed_dim=16)
    return TransformerModel.build_model(args, build.task())


@pytest.mark.parametrize(("source", "target"), [([5, 2], [3, 4]), ([4, 4], [3, 3])])
def test_the_numbers_are_the_same_with_and_without_padding(source, target, monkeypatch):
    model = build.model("syntax_transformer_tiny", dropout=0.0, attention_dropout=0.0).double()
    batch = build.net_input(build.sentences(source), build.sentences(target, seed=1))
    for train in (True, False):
        scores = []
        for at_hand in ({"cpu"}, set()):
            monkeypatch.setattr(padding_waits, "AT_HAND", at_hand)
            scores.append(model.train(train)(**batch)[0])
        torch.testing.assert_close(*scores)
        if not train:
            assert torch.equal(*scores)


def test_only_training_takes_padding_for_granted(monkeypatch):
    stack, mask = torch.nn.Identity(), torch.zeros(2, 3, dtype=torch.bool)
    assert may_be_padded(stack.train(), mask).item() is False
    monkeypatch.setattr(padding_waits, "AT_HAND", set())
    assert may_be_padded(stack.train(), mask) is True
    assert may_be_padded(stack.eval(), mask).item() is False


def test_both_functions_of_fairseq_are_reworded_and_stay_where_they_were():
    for kind, name in (
        (TransformerEncoderBase, "forward_scriptable"),
        (TransformerDecoderBase, "extract_features_scriptable"),
    ):
        code = getattr(kind, name).__code__
        assert "_may_be_padded" in code.co_names
        assert code.co_filename.endswith("coder.py") and code.co_firstlineno > 100


class Example:
    def double(self, x: int) -> int:
        y = x + x
        if y < 0:
            raise ValueError(x)
        return y


def test_words_of_a_function_are_changed(monkeypatch):
    line = Example.double.__code__.co_firstlineno
    monkeypatch.setattr(Example, "double", Example.double)
    assert not reword(Example, "double", {"y = x + x": "y = 0", "none of its words": ""})
    assert not reword(Example, "double", {"x": "y"}), "it is there more than once"
    assert Example().double(2) == 4
    assert reword(Example, "double", {"x + x": "_treble(x)"}, _treble=lambda x: 3 * x)
    assert Example().double(2) == 6
    with pytest.raises(ValueError, match="-2") as error:
        Example().double(-2)
    last = traceback.extract_tb(error.value.__traceback__)[-1]
    assert (last.filename, last.lineno) == (__file__, line + 3)
    del globals()["_treble"]
