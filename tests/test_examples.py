"""The plugins of examples/; tests/end_to_end/test_training.py trains with user_dir."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch

from syncattn_fairseq.modules import PARTS
from tests.models import build

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def released(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The plugin, while the registry forgets it afterwards."""
    path = EXAMPLES / "released_pascal" / "__init__.py"
    spec = importlib.util.spec_from_file_location("released_pascal", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    part = PARTS.pop("released_parent_scaled")
    monkeypatch.setitem(PARTS, "released_parent_scaled", part)
    return module


def test_released_pascal_scales_the_last_rows(released: ModuleType) -> None:
    batch, heads, meant, length = 3, 4, 2, 5
    group = released.ReleasedParentScaledHeads(heads, 8, None)
    group.meant = meant
    weights = torch.rand(batch, length, length)
    rows = torch.ones(batch * heads, length, length)
    for k in range(meant * batch):
        rows[batch * heads - meant * batch + k] = weights[k // meant]
    torch.testing.assert_close(group.mix_up(weights), rows.view(batch, heads, length, length))


def test_released_pascal_is_right_if_all_heads_are_scaled(released: ModuleType) -> None:
    group = released.ReleasedParentScaledHeads(4, 8, None)
    group.meant = 4
    weights = torch.rand(3, 5, 5)
    torch.testing.assert_close(group.mix_up(weights), weights[:, None].expand(3, 4, 5, 5))


def test_a_model_with_released_pascal(released: ModuleType) -> None:
    model = build.model("syntax_transformer_tiny", released_layers="1", pascal_heads=1)
    [group] = model.encoder.layers[0].self_attn.heads.values()
    assert (group.count, group.meant) == (2, 1)
    assert {field.name for field in model.source_fields.fields} == {"src_parent_positions"}
