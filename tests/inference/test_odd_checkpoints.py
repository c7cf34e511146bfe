import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from syncattn_fairseq.base.errors import DataError
from tests.checkpoints import Corpus


@pytest.fixture(scope="module")
def state(small_corpus: Corpus) -> dict[str, Any]:
    path = small_corpus.checkpoint("transformer_syncattn", share_all_embeddings=False)
    found: dict[str, Any] = torch.load(path)
    return found


def load(corpus: Corpus, state: dict[str, Any], path: Path) -> Any:
    torch.save(state, path)
    return corpus.load(path)


MODEL = [
    ({"arch": "nothing", "_name": "nothing"}, "unknown architecture 'nothing'; .* --user-dir"),
    ({"arch": ["lstm"], "_name": None}, "unknown architecture"),
    ({"arch": "transformer_lm", "_name": "transformer_lm"}, "do not fit together"),
    ({"arch": "lstm", "_name": "lstm"}, "do not fit together"),
    ({"encoder_layers": "2"}, "encoder_layers is '2', not a whole number"),
    ({"encoder_layers": -1}, "the encoder has layers 1 to -1"),
    ({"encoder_layers": 10**9}, "encoder_layers is 1000000000, larger than its weights"),
    ({"encoder_layers": 1}, "do not fit together .RuntimeError: Unexpected key"),
    ({"encoder_embed_dim": 10**9}, "encoder_embed_dim is 1000000000, larger than"),
    (
        {"encoder_ffn_embed_dim": 8},
        r"fc1.weight has the shape \[16, 16\] in the checkpoint, and \[8, 16",
    ),
    ({"encoder_attention_heads": 0}, "--encoder-attention-heads 0: must divide"),
    ({"decoder_attention_heads": 3}, "--decoder-attention-heads 3: must divide"),
    ({"cross_self_attention": True}, "--cross-self-attention: decoder layer"),
    ({"encoder": 7}, "must be a mapping, not int"),
    ({"pascal_layers": "x\n" * 400}, "--pascal-layers x x "),
]
REST = [
    ({"model": None}, "PyTorch cannot load the file"),
    ({"model": [1]}, "the options in the checkpoint are damaged"),
    ({"model": {}}, "do not fit together"),
    ({"common": None}, "the options in the checkpoint are damaged"),
    ({"common": {"user_dir": 7}}, "the plugin '7', which is imported only"),
    ({"task": None}, "PyTorch cannot load the file"),
    ({"task": {"data": 7}}, "the checkpoint's option data has the invalid value '7'"),
    (
        {"task": {"source_lang": "../en", "target_lang": "de"}},
        "source_lang has the invalid value '../en'",
    ),
    ({"task": {"left_pad_source": 1}}, "left_pad_source has the invalid value '1'"),
]
ODD = [("model", *row) for row in MODEL] + [("cfg", *row) for row in REST]
ODD += [("", cfg, "") for cfg in (None, {}, [], "x")]


@pytest.mark.parametrize(("part", "options", "message"), ODD)
def test_odd_options(small_corpus, state, tmp_path, part, options, message):
    odd, path = copy.deepcopy(state), tmp_path / "odd.pt"
    if part == "model":
        vars(odd["cfg"]["model"]).update(options)
    else:
        odd["cfg"] = {**odd["cfg"], **options} if part == "cfg" else options
    with pytest.raises(DataError, match=f"^{path}: .*{message}") as error:
        load(small_corpus, odd, path)
    assert "\n" not in str(error.value) and len(str(error.value)) < 700


def test_infinite_weights_are_refused(small_corpus, state, tmp_path):
    weights = {**state["model"]}
    name = "encoder.layers.0.fc1.bias"
    weights[name] = torch.full_like(weights[name], float("inf"))
    with pytest.raises(DataError, match="the model's scores are not finite numbers; use another"):
        load(small_corpus, {**state, "model": weights}, tmp_path / "odd.pt")


def test_embeddings_come_from_the_checkpoint(small_corpus, state, tmp_path):
    """The file that they began with may be gone, or be one that never ends."""
    there = copy.deepcopy(state)
    there["cfg"]["model"].encoder_embed_path = "/dev/zero"
    there["cfg"]["model"].decoder_embed_path = str(tmp_path / "gone")
    model = load(small_corpus, there, tmp_path / "model.pt")
    weight = model.models[0].encoder.embed_tokens.weight
    assert torch.equal(weight, state["model"]["encoder.embed_tokens.weight"])
