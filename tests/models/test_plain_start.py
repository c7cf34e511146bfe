import logging

import pytest
import torch

from tests.models import build
from tests.models.build import SIZE

INPUT = build.net_input(build.sentences([5, 3, 7]), build.sentences([4, 6, 2], seed=1))


def scores(model: torch.nn.Module) -> torch.Tensor:
    own = INPUT if hasattr(model, "source_fields") else build.plain_input(INPUT)
    with torch.no_grad():
        result: torch.Tensor = model(**own)[0]
    return result


@pytest.mark.parametrize(
    "options", [{}, {"dependency_heads": 2, "dependency_key_bias": True, "sync_layer": 2}]
)
def test_a_dependency_model_starts_exactly_as_good_as_the_plain_one(options, caplog):
    plain = build.model("transformer", **SIZE)
    model = build.model("transformer_dbsa", seed=1, **SIZE, **options)
    with caplog.at_level(logging.INFO, "syncattn_fairseq.models.plain_start"):
        model.load_state_dict(plain.state_dict(), strict=True)
    torch.testing.assert_close(
        scores(model.double()), scores(plain.double()), atol=1e-12, rtol=1e-12
    )
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO"]
    assert "new parts: encoder.layers.0.self_attn.heads.dependency.weight" in caplog.text
    assert "new parts: decoder.layers.0.self_attn.heads.dependency.weight" in caplog.text


#: What encoder layers of fairseq 0.12.2 hold besides: joined projections, and copies of weights.
COPIES = [
    f"{x}_{kind}" for x in ("in_proj", "out_proj", "fc1", "fc2") for kind in ("weight", "bias")
]


@pytest.mark.parametrize("arch", ["syntax_transformer", "transformer_dbsa"])
def test_a_checkpoint_of_fairseq_0_12_2_is_taken(arch, tmp_path):
    plain = build.model("transformer", **SIZE)
    copies = {f"encoder.layers.{n}.{name}": torch.rand(9) for n in (0, 1) for name in COPIES}
    torch.save(plain.state_dict() | copies, tmp_path / "model.pt")
    model = build.model(arch, seed=1, **SIZE)
    model.load_state_dict(torch.load(tmp_path / "model.pt"), strict=True)
    torch.testing.assert_close(scores(model.double()), scores(plain.double()))


@pytest.mark.parametrize(
    ("arch", "options", "new"),
    [
        ("transformer_lpsi", {}, "encoder.layers.1.self_attn.heads.gated.weight"),
        ("transformer_lisa", {}, "encoder.layers.0.self_attn.heads.dependency.weight"),
        ("transformer_sh", {"source_label_dim": 4}, "encoder.label_embedding.weight"),
        (
            "syntax_transformer",
            {"cross_attention_tree_window": 4},
            "decoder.layers.1.encoder_attn.position.",
        ),
    ],
)
def test_what_cannot_start_equal_is_said(arch, options, new, caplog):
    plain = build.model("transformer", **SIZE)
    model = build.model(arch, seed=1, **SIZE, **options)
    model.load_state_dict(plain.state_dict(), strict=True)
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    assert new in caplog.text and "worse at first" in caplog.text
    assert not torch.allclose(scores(model), scores(plain), atol=1e-3)


@pytest.mark.parametrize("arch", ["transformer_pascal", "transformer_local_attn"])
def test_parts_without_parameters_load_as_they_are(arch):
    plain = build.model("transformer", **SIZE)
    build.model(arch, seed=1, **SIZE).load_state_dict(plain.state_dict(), strict=True)


def test_a_checkpoint_of_the_same_kind_is_taken_as_it_is():
    trained = build.model("transformer_dbsa", **SIZE)
    model = build.model("transformer_dbsa", seed=1, **SIZE)
    model.load_state_dict(trained.state_dict(), strict=True)
    assert torch.equal(scores(model), scores(trained))


def test_half_a_part_is_an_error_still():
    trained = build.model("transformer_dbsa", **SIZE)
    model = build.model("transformer_dbsa", seed=1, **SIZE, dependency_key_bias=True)
    with pytest.raises(RuntimeError, match="heads.dependency.key_bias"):
        model.load_state_dict(trained.state_dict(), strict=True)
