"""The plugins of examples/; tests/end_to_end/test_training.py trains with user_dir."""

from collections.abc import Iterator
from types import ModuleType

import pytest
import torch

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.export.fold import refuse
from syncattn_fairseq.functional import parent_gaussian
from syncattn_fairseq.modules import BatchView
from syncattn_fairseq.modules.heads import Scope
from syncattn_fairseq.testing import check_model
from tests.importing import ROOT, forgetting_plugins, import_file, run_program
from tests.models import build

EXAMPLES = ROOT / "examples"


def load(name: str) -> ModuleType:
    return import_file(EXAMPLES / name / "__init__.py")


@pytest.fixture
def plugin(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    with forgetting_plugins():
        yield load(request.param)


def of(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("plugin", [name], indirect=True)


@of("released_pascal")
@pytest.mark.parametrize("meant", [2, 4])  # of all heads it is right
def test_released_pascal_scales_the_last_rows(plugin, meant):
    batch, heads, length = 3, 4, 5
    group = plugin.ReleasedParentScaledHeads(heads, 8, None)
    group.meant = meant
    weights = torch.rand(batch, length, length)
    rows = torch.ones(batch * heads, length, length)
    for k in range(meant * batch):
        rows[batch * heads - meant * batch + k] = weights[k // meant]
    torch.testing.assert_close(group.mix_up(weights), rows.view(batch, heads, length, length))


@of("released_pascal")
def test_a_model_with_released_pascal(plugin):
    model = build.model("syntax_transformer_tiny", released_layers="1", pascal_heads=1)
    [group] = model.encoder.layers[0].self_attn.heads.values()
    assert (group.count, group.meant) == (2, 1)
    assert {field.name for field in model.source_fields.fields} == {"src_parent_positions"}


@of("parent_bias")
def test_parent_bias_multiplies_attention_by_the_density(plugin):
    torch.manual_seed(1)
    batch, heads, length, width = 2, 3, 6, 8
    parents = torch.tensor([[1.0, 0.5, 2, 5, float("nan"), 5], [2.0, 2, 2, 2, 2, 2]])
    padding = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
    group = plugin.ParentBiasedHeads(heads, width, BatchView()).eval()
    group.view.fill(torch.ones(batch, length), padding, {"src_parent_positions": parents})
    query, key, value = torch.randn(3, batch, heads, length, width)
    mask = torch.zeros(padding.shape).masked_fill(padding, float("-inf"))[:, None, None]
    plain = (query @ key.transpose(2, 3) / width**0.5 + mask).softmax(-1)
    expected = plain * parent_gaussian(parents, length).unsqueeze(1)
    expected = expected / expected.sum(-1, keepdim=True) @ value
    context = group.attend(query, key, value, Scope(mask, padding, False, torch.nn.Dropout(0.0)))
    torch.testing.assert_close(context, expected)


@of("parent_bias")
def test_a_model_with_parent_bias(plugin):
    model = build.model("syntax_transformer_tiny", parent_bias_layers="1", pascal_parents="self")
    group = model.encoder.layers[0].self_attn.heads["parent_biased"]
    assert (group.count, group.parents) == (1, "self")
    assert model.source_fields.fields == frozenset()


@of("sharp_sync")
def test_sharp_sync_compares_with_shares_of_the_visible_projection(plugin):
    target, projected = torch.rand(2, 2, 4, 4)
    padding = torch.tensor([[False] * 4, [False, False, False, True]])
    expected = 0.0
    for sentence, size in enumerate((4, 3)):
        for row in range(size):
            total = float(projected[sentence, row, : row + 1].sum())
            for column in range(row + 1):
                share = float(projected[sentence, row, column]) / total
                expected += (share - float(target[sentence, row, column])) ** 2
    loss = plugin.SharpSyncTerm.compare(target, projected, padding)
    assert float(loss) == pytest.approx(expected, rel=1e-5)


@of("length_aware")
def test_length_aware_heads_see_how_far_tokens_are_from_the_diagonal(plugin):
    torch.manual_seed(1)
    heads, width, scale = 2, 4, 5.0
    left = torch.tensor([[False] * 6, [True] * 2 + [False] * 4])  # M is not read
    padding = torch.tensor([[False] * 5, [True] * 2 + [False] * 3])
    group = plugin.LengthAwareHeads(heads, width, BatchView(), scale).eval()
    group.view.fill(torch.ones(2, 6), left, {})
    query, (key, value) = torch.randn(2, heads, 6, width), torch.randn(2, 2, heads, 5, width)
    hidden = torch.zeros(padding.shape).masked_fill(padding, float("-inf"))[:, None, None]
    context = group.attend(query, key, value, Scope(hidden, padding, False, torch.nn.Dropout(0.0)))
    for sentence, (first_row, first) in enumerate(((0, 0), (2, 2))):
        words = 5 - first
        for head in range(heads):
            for row in range(first_row, 6):
                m, scores = scale * (row - first_row) / words, []
                for column in range(first, 5):
                    turn = scale * (column - first) / words - m
                    q, k = (
                        torch.view_as_complex(x[sentence, head, i].view(2, 2))
                        for x, i in ((query, row), (key, column))
                    )
                    angles = turn * torch.tensor([1.0, 0.01])
                    turned = q.conj() * k * torch.polar(torch.ones(2), angles)
                    scores.append(float(turned.real.sum()) / width**0.5)
                expected = torch.tensor(scores).softmax(0) @ value[sentence, head, first:]
                torch.testing.assert_close(context[sentence, head, row], expected)


def test_heads_of_the_attention_to_the_source():
    with forgetting_plugins():
        load("length_aware")
        check_model(larope_layers="all")
        check_model("transformer_syncattn_tiny", larope_layers="1", larope_scale=3.0)
        model = build.model("transformer_syncattn_tiny", larope_layers="1")
        with pytest.raises(DataError, match="m: cannot be exported: its length-aware heads attend"):
            refuse(model, "m")


def test_transformers_of_ones_own_learn_without_fairseq():
    program = """
import sys

class Refused:
    def find_spec(self, name, *rest):
        assert name.partition(".")[0] not in {"fairseq", "hydra", "omegaconf"}, name

sys.meta_path.insert(0, Refused())
import runpy

import torch

example = runpy.run_path(sys.argv[1])
for library in ("PyTorchModel", "MarianModel"):
    torch.manual_seed(1)
    model = example[library]()
    (first, guessed), *_, (last, found) = example["train"](model, 30)
    assert last < 0.8 * first, (library, first, last)
    assert found > 0.2 and found > 1.5 * guessed, (library, guessed, found)

model.double().eval()
source, *_ = next(example["draw_batches"](3, 2))
seen = (source != 0).long()
generate = dict(num_beams=3, length_penalty=0.0, max_new_tokens=9, do_sample=False)
generate |= dict(return_dict_in_generate=True, output_scores=True)
out = model.marian.generate(source, attention_mask=seen, **generate)
steps = model(source, out.sequences[:, :-1]).log_softmax(-1)
words = out.sequences[:, 1:].unsqueeze(-1)
forced = (steps.gather(-1, words) * (words != 0)).sum((1, 2))
torch.testing.assert_close(out.sequences_scores, forced, check_dtype=False)
assert not torch.allclose(forced[:1], forced[1:])
"""
    done = run_program(program, EXAMPLES / "any_transformer.py")
    assert done.returncode == 0, done.stderr


def test_heads_that_read_the_parse_and_those_that_do_not():
    with forgetting_plugins():
        load("user_dir")
        check_model(outward_layers="1", outward_decoder_layers="same")
        check_model(root_layers="all", positions="rotary")
