"""The plugins of examples/; tests/end_to_end/test_training.py trains with user_dir."""

import json
from collections.abc import Iterator
from types import ModuleType

import pytest
import sentencepiece
import torch

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.pieces import list_pieces, open_pieces
from syncattn_fairseq.export.fold import refuse
from syncattn_fairseq.functional import parent_gaussian
from syncattn_fairseq.modules import BatchView
from syncattn_fairseq.modules.heads import Scope
from syncattn_fairseq.testing import check_model
from tests.importing import ROOT, forgetting_plugins, import_file, run_program
from tests.models import build
from tests.parsing.chain import Chain

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


@pytest.fixture
def marian(tmp_path):
    """A small Marian model with random weights, as it is published, and a text in files."""
    transformers = pytest.importorskip("transformers")
    lines = [
        "The old man sees a dog.",
        "A dog, a man.",
        "The dog is old: see!",
        "",
        "Old is a man.",
    ]
    for name in ("source", "target"):
        with open(tmp_path / f"{name}.spm", "wb") as file:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(lines * 5),
                model_writer=file,
                vocab_size=40,
                hard_vocab_limit=False,
                minloglevel=3,
            )
    pieces = list_pieces(open_pieces(tmp_path / "source.spm"))
    numbers = {word: n for n, word in enumerate(["</s>", "<unk>", *pieces, "<pad>"])}
    (tmp_path / "vocab.json").write_text(json.dumps(numbers))
    files = [str(tmp_path / name) for name in ("source.spm", "target.spm", "vocab.json")]
    transformers.MarianTokenizer(*files, source_lang="en", target_lang="de").save_pretrained(
        tmp_path / "opus"
    )
    sizes = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 1, "vocab_size": len(numbers)}
    for side in ("encoder", "decoder"):
        sizes |= {f"{side}_attention_heads": 4, f"{side}_ffn_dim": 32}
    special = dict.fromkeys(("pad_token_id", "decoder_start_token_id"), len(numbers) - 1)
    torch.manual_seed(1)
    model = transformers.MarianMTModel(
        transformers.MarianConfig(
            **sizes,
            **special,
            eos_token_id=0,
            forced_eos_token_id=None,
            dropout=0,
            scale_embedding=True,
        )
    )
    model.generation_config.max_length = 20
    model.save_pretrained(tmp_path / "opus")
    for name in ("text.en", "text.de"):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return tmp_path / "opus", lines


def test_a_published_model_is_fine_tuned_by_the_trainer(marian, tmp_path, monkeypatch, capsys):
    pytest.importorskip("accelerate")
    example = import_file(EXAMPLES / "fine_tune_marian.py")
    monkeypatch.setattr(example, "open_parser", lambda spec: Chain())
    folder, lines = marian
    text = [str(tmp_path / "text.en"), str(tmp_path / "text.de")]
    words = [f"--model={folder}", "--train", *text, "--test", *text, f"--output={tmp_path / 'out'}"]
    before, after = example.main([*words, "--epochs=120", "--rate=1e-2"])
    assert after[0] > before[0] + 30  # BLEU
    assert after[1] > max(90, before[1] + 20)  # UAS: the parent is the word before
    assert capsys.readouterr().out.endswith(f"after: {after[0]:.1f} BLEU, {after[1]:.1f} UAS\n")
    model = example.MarianMTModel.from_pretrained(folder).eval()
    tokenizer = example.AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(lines[:2], text_target=lines[:2], padding=True, return_tensors="pt")
    expected = model(**batch).logits
    heads = example.put_head_in(model.get_encoder()), example.put_head_in(model.get_decoder(), True)
    torch.testing.assert_close(model(**batch).logits, expected)
    model.load_state_dict(torch.load(tmp_path / "out" / "model.pt"))
    source, target = (
        example.read_side(tokenizer, tmp_path / f"text.{x}", x, "", x == "de") for x in ("en", "de")
    )
    pairs = [*zip(source, target, strict=True)]
    own = example.collate(tokenizer.pad_token_id, pairs[:2])
    for name in ("input_ids", "attention_mask"):
        assert own[name].equal(batch[name])
    labels = batch["labels"]
    assert own["labels"].where(own["labels"] != -100, labels).equal(labels)
    model(**batch)
    assert heads[0].parse.size(1) == batch["input_ids"].size(1)
    # Words are those of the text: a sign of punctuation may be in the middle of a subword's word.
    assert source[1].words[-1] + 1 == len(["A", "dog", ",", "a", "man", "."])
    assert source[3] == ([0], [-1], [])
    words, parents = source[1].words, source[1].parents
    for place, word in enumerate(words):
        last = place + 1 == len(words) or words[place + 1] != word
        above = words.index(word - 1) if word else place
        assert parents[place] == (above if last else place + 1)
    assert len({*words}) < len(words) and parents[len(words) :] == [-1]
