"""Where every head of every layer attends, and in what forms it is given to other programs."""

from itertools import accumulate

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.inference import AttentionHeads, HeadName, Sentence
from syncattn_fairseq.inference.recorded_attention import record_attention
from syncattn_fairseq.modules.heads.controls.window import WindowHeads
from tests.models import build

TINY = "syntax_transformer_tiny"
ALONE = {"window", "forget_gate"}
#: Architectures, options, and the kinds of heads besides ordinary ones.
SYSTEMS = [
    ("transformer_dbsa_tiny", {}, {"dependency"}),
    ("transformer_lisa_tiny", {}, {"dependency"}),
    ("transformer_lpsi_tiny", {}, {"gated"}),
    ("transformer_pascal_tiny", {}, {"parent_scaled"}),
    ("transformer_dbsa_tiny", {"positions": "rotary", "dependency_heads": 2}, {"dependency"}),
    ("transformer_syncattn_tiny", {"sync_backward": "softmax"}, {"dependency", "sync"}),
    (TINY, {"dasa_layers": "1", "forget_gate_decoder_layers": "2"}, {"dasa", "forget_gate"}),
    (TINY, {"positions": "bias", "local_decoder_layers": "1"}, {"window"}),
    (TINY, {"positions": "rotary", "local_layers": "1", "forget_gate_layers": "2"}, ALONE),
    (TINY, {"cross_attention_tree_window": 2}, {"tree_window"}),
    (TINY, {}, set()),
]
BATCH = build.net_input(build.sentences([5, 3]), build.sentences([4, 2], seed=1))


def list_attentions(model):
    """Return each attention module with the name of its part."""
    found = [("encoder", layer.self_attn) for layer in model.encoder.layers]
    for layer in model.decoder.layers:
        found += [("decoder", layer.self_attn), ("cross", layer.encoder_attn)]
    return found


def build_model(arch, **options):
    return build.model(arch, **options).eval()


@pytest.mark.parametrize(("arch", "options", "special"), SYSTEMS)
def test_a_layer_attends_with_the_attention_that_is_recorded(arch, options, special):
    model = build_model(arch, **options)
    calls = {}

    def note(module, args, kwargs, output):
        calls[id(module)] = kwargs["key"], output[0]

    modules = list_attentions(model)
    hooks = [m.register_forward_hook(note, with_kwargs=True) for _, m in modules]
    found = record_attention(model, BATCH)
    for hook in hooks:
        hook.remove()
    counts = dict.fromkeys(found, 0)
    for part, module in modules:
        layer = found[part][counts[part]]
        counts[part] += 1
        key, output = calls[id(module)]
        value = module.v_proj(key).unflatten(-1, (module.num_heads, -1)).permute(1, 2, 0, 3)
        context = (layer.attention @ value).permute(2, 0, 1, 3).flatten(2)
        torch.testing.assert_close(module.out_proj(context), output, rtol=1e-4, atol=1e-4)
        assert len(layer.kinds) == layer.attention.size(1) == module.num_heads
    assert counts == {part: len(layers) for part, layers in found.items()}
    kinds = {kind for layers in found.values() for layer in layers for kind in layer.kinds}
    assert kinds - {"ordinary"} == special


def count_changes(model):
    """Count the hooks of a model's modules, and the methods that stand before those of classes."""
    modules = [*model.modules()]
    hooks = sum(len(module._forward_hooks) for module in modules)
    return hooks, sum("attend" in vars(module) for module in modules)


def test_a_model_is_left_as_it_was():
    model = build_model("transformer_lpsi_tiny")
    before, scores = count_changes(model), model(**BATCH)[0]
    record_attention(model, BATCH)
    assert count_changes(model) == before
    torch.testing.assert_close(model(**BATCH)[0], scores)


def test_a_model_that_fails_is_left_as_it_was():
    model = build_model("transformer_pascal_tiny")
    before = count_changes(model)
    with pytest.raises(DataError, match="src_parent_positions"):
        record_attention(model, build.plain_input(BATCH))
    assert count_changes(model) == before


def test_a_decoder_that_attends_to_both_sides_at_once():
    options = {"no_cross_attention": True, "cross_self_attention": True}
    found = record_attention(build_model(TINY, **options), BATCH)
    for own, source in zip(found["decoder"], found["cross"], strict=True):
        assert own.attention.shape[2:] == (5, 5) and source.attention.shape[2:] == (5, 6)
        total = own.attention.sum(-1) + source.attention.sum(-1)
        torch.testing.assert_close(total, torch.ones_like(total))
        assert not own.attention.triu(1).any()
    found = record_attention(build_model(TINY, cross_self_attention=True), BATCH)
    assert [layer.attention.size(1) for layer in found["cross"]] == [4, 4], "of two modules"


@pytest.mark.parametrize(
    ("arch", "kinds"),
    [
        ("rnn_flexible", ("flexible",)),
        ("rnn_syntax_directed_double", ("global", "syntax-directed")),
    ],
)
def test_recurrent_models_attend_to_the_source_alone(arch, kinds):
    model = build.model(arch).eval()
    found = record_attention(model, BATCH)
    assert found["encoder"] == found["decoder"] == []
    [layer] = found["cross"]
    assert layer.kinds == kinds and layer.attention.shape == (2, len(kinds), 5, 6)
    torch.testing.assert_close(layer.attention[:, 0], model(**BATCH)[1]["attn"][0])
    if len(kinds) == 2:
        assert not torch.allclose(layer.attention[:, 0], layer.attention[:, 1])


def test_attention_that_cannot_be_seen_is_said_so():
    model = build_model(TINY)
    layer = model.encoder.layers[1]
    layer.forward = lambda x, **_: x  # PyTorch's own kernel would not call the attention
    with pytest.raises(DataError, match="the attention of these heads cannot be recorded"):
        record_attention(model, BATCH)


def test_heads_that_do_not_say_where_they_attend(monkeypatch):
    model = build_model(TINY, local_layers="1")
    monkeypatch.setattr(WindowHeads, "attend", keep)
    with pytest.raises(
        DataError, match="FairseqSyn.*: the attention of these heads cannot be recorded"
    ):
        record_attention(model, BATCH)


def keep(heads, query, key, value, scope):
    """Do what no kind of heads does: attend without probabilities."""
    return value


# ---- in Python


@pytest.fixture(scope="module")
def model(small_corpus):
    return small_corpus.load(small_corpus.trained())


@pytest.fixture(scope="module")
def plain(small_corpus):
    return small_corpus.load(small_corpus.checkpoint("transformer"))


def test_heads_agree_with_parses_and_links(model, small_corpus):
    sources, targets = small_corpus.lines("test.en"), small_corpus.lines("test.de")
    found = model.heads(sources, targets)
    pairs, links = model.parse(sources, targets), model.align(sources, targets, layer=2)
    for heads, pair, alignment in zip(found, pairs, links, strict=True):
        assert heads.kinds["encoder"][0] == ("dependency", "dependency", "ordinary", "ordinary")
        mean = heads.encoder[0, :2].mean(0)[:-1, :-1]
        np.testing.assert_allclose(mean, pair.source.attention, atol=1e-5)
        mean = heads.decoder[0, :2].mean(0)[:-1, :-1]  # rows predict
        np.testing.assert_allclose(mean, pair.target.attention, atol=1e-5)
        mean = heads.cross[1].mean(0)[:-1, :-1]
        np.testing.assert_allclose(mean, alignment.attention, atol=1e-5)
        assert heads.source_tokens[:-1] == [*pair.source.sentence.pieces]
        assert heads.read_tokens[1:] == heads.written_tokens[:-1] == [*heads.target.pieces]
        assert heads.encoder.shape[-1] == len(heads.source_tokens)
        assert heads.cross.shape[-2:] == (len(heads.read_tokens), len(heads.source_tokens))


def test_a_plain_transformer_of_fairseq_has_ordinary_heads(plain):
    [heads] = plain.heads(["the old man saw it"])
    assert heads.encoder.shape[:2] == (2, 4) and heads.decoder.shape[:2] == (3, 4)
    assert {k for part in heads.kinds.values() for kinds in part for k in kinds} == {"ordinary"}
    assert heads.target.pieces == plain.translate(["the old man saw it"])[0].sentence.pieces
    assert len(heads.names) == 8 + 12 + 12 and str(heads.names[-1]) == "cross.3.4"


def test_heads_are_the_same_alone_and_in_a_batch(model, plain, small_corpus):
    sources, targets = small_corpus.lines("test.en"), small_corpus.lines("test.de")
    for one in (model, plain):
        together = one.heads(sources, targets)
        for source, target, heads in zip(sources[:4], targets, together, strict=False):
            [alone] = one.heads([source], [target])
            for part in ("encoder", "decoder", "cross"):
                np.testing.assert_allclose(getattr(heads, part), getattr(alone, part), atol=1e-5)
                sums = getattr(heads, part).sum(-1)
                np.testing.assert_allclose(sums, np.ones_like(sums), atol=1e-5)
            assert not np.triu(heads.decoder, 1).any()


def test_heads_of_nothing(model):
    empty, words = model.heads(["", "the old man saw it"], ["der Hund", ""])
    assert empty.encoder.size == empty.cross.size == 0 and empty.names == []
    assert empty.source_tokens == empty.read_tokens == empty.written_tokens == []
    assert empty.of_words("cross").shape == (0, 0, len(empty.target.lengths), 0)
    assert empty.parents("encoder").shape == (0, 0, 0)
    assert words.decoder.shape[-2:] == (1, 1) and words.read_tokens == ["</s>"]
    assert words.of_words("cross").shape[-2:] == (0, 5)
    assert model.heads([]) == []
    with pytest.raises(DataError, match="cross.1.1: the sentence is empty or too long, so the"):
        empty.of_head("cross.1.1")


def test_what_shows_no_heads_says_so_in_a_line(small_corpus):
    path = small_corpus.trained()
    with pytest.raises(DataError, match="heads can be shown for a single model"):
        small_corpus.load(f"{path}:{path}").heads(["a"])
    exported = small_corpus.load(small_corpus.exported("ctranslate2"), data_bin=None, subwords=None)
    with pytest.raises(DataError, match="shows only the mean over a layer's heads; load the check"):
        exported.heads(["a"])


def test_names_of_heads(plain):
    [heads] = plain.heads(["the old man"])
    assert heads.find("cross.3.4") == HeadName("cross", 3, 4)
    for wrong in ("encoder", "encoder.0.1", "encoder.1.01", "e.1.1", "encoder.1.1\n", "x" * 999):
        with pytest.raises(
            DataError, match="is not the name of an attention head; give PART.LAYER.HEAD"
        ) as info:
            heads.find(wrong)
        assert "\n" not in str(info.value) and len(str(info.value)) < 250
    with pytest.raises(DataError, match=r"encoder.3.1: no such head; .* has encoder.1.1 to encod"):
        heads.find("encoder.3.1")


# ---- words, and other programs


@st.composite
def drawn_heads(draw):
    sides = []
    for letter in "st":
        lengths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
        pieces = [
            f"{'▁' if not i else ''}{letter}{w}" for w, n in enumerate(lengths) for i in range(n)
        ]
        sides.append(Sentence(pieces, "sentencepiece"))
    s, t = (len(side.pieces) + 1 for side in sides)
    generator = np.random.default_rng(draw(st.integers(0, 999)))
    arrays = [generator.random((2, 3, *size)) for size in ((s, s), (t, t), (t, s))]
    arrays[1] = np.tril(arrays[1])
    kinds = (("ordinary",) * 3,) * 2
    return AttentionHeads(*sides, *arrays, dict.fromkeys(("encoder", "decoder", "cross"), kinds))


PLACES = [("encoder", None), ("decoder", None), ("decoder", "predicted")]
PLACES += [("cross", None), ("cross", "input")]


@given(drawn_heads(), st.sampled_from(PLACES))
def test_attention_of_words_and_their_parents_equal_the_loop(heads, place):
    part, rows = place
    sides = {"encoder": (heads.source, heads.source), "decoder": (heads.target, heads.target)}
    of_rows, of_columns = sides.get(part, (heads.target, heads.source))
    row_shift = int((part, rows) in [("decoder", None), ("cross", "input")])
    column_shift = int((part, rows) == ("decoder", None))
    words, best = heads.of_words(part, rows), part != "cross" and heads.parents(part, rows)
    for layer in range(2):
        for head in range(3):
            whole = getattr(heads, part)[layer, head]
            for row, last in enumerate(accumulate(of_rows.lengths)):
                top, parent, column = -1.0, 0, 0
                for word, size in enumerate(of_columns.lengths):
                    total = 0.0
                    for _ in range(size):
                        weight = whole[last - 1 + row_shift, column + column_shift]
                        total += weight
                        if weight > top:
                            top, parent = weight, word + 1
                        column += 1
                    assert words[layer, head, row, word] == pytest.approx(total)
                if part != "cross":
                    assert best[layer, head, row] == (0 if parent == row + 1 else parent)
    name = HeadName(part, 2, 3)
    np.testing.assert_array_equal(heads.of_head(str(name), rows), words[1, 2])


@given(drawn_heads())
def test_bertviz_gets_tensors_of_one_sentence_a_layer(heads):
    given_ = heads.to_bertviz()
    assert [*given_] == [
        *("encoder_attention", "decoder_attention", "cross_attention"),
        *("encoder_tokens", "decoder_tokens"),
    ]
    source, target = given_["encoder_tokens"], given_["decoder_tokens"]
    sizes = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
    for part, (rows, columns) in sizes.items():
        layers = given_[f"{part}_attention"]
        assert [layer.shape for layer in layers] == [(1, 3, len(rows), len(columns))] * 2
        np.testing.assert_array_equal(layers[1][0].numpy(), getattr(heads, part)[1])
    assert [*heads.to_bertviz("cross")] == ["cross_attention", "encoder_tokens", "decoder_tokens"]
    with pytest.raises(ValueError, match="unknown part 'e'"):
        heads.to_bertviz("e")


@given(drawn_heads())
def test_inseq_gets_what_each_token_contributes_to_each_predicted_one(heads):
    parts = heads.to_inseq()
    source, target = parts["source"], parts["target"]
    assert target[-1] == "</s>" and target[:-1] == heads.target.pieces
    assert parts["source_attributions"].shape == (len(source), len(target), 2, 3)
    assert parts["target_attributions"].shape == (len(target), len(target), 2, 3)
    scores = parts["sequence_scores"]["encoder_self_attentions"].numpy()
    np.testing.assert_array_equal(scores.transpose(2, 3, 1, 0), heads.encoder)
    assert parts["_num_dimensions"] == 2
    for column in range(len(target)):
        for row in range(len(source)):
            found = parts["source_attributions"][row, column].numpy()
            np.testing.assert_array_equal(found, heads.cross[:, :, column, row])
        for row in range(len(target)):
            found = parts["target_attributions"][row, column].numpy()
            if row < column:  # state `column` has read it
                np.testing.assert_array_equal(found, heads.decoder[:, :, column, row + 1])
            else:
                assert np.isnan(found).all()


def test_a_recurrent_model_gives_what_it_has(small_corpus):
    [heads] = small_corpus.load(small_corpus.checkpoint("rnn_global")).heads(["the man"], ["der"])
    assert [*heads.to_bertviz()][:1] == ["cross_attention"]
    given_ = heads.to_inseq()
    assert given_["target_attributions"] is given_["sequence_scores"] is None
    assert heads.of_words("encoder").shape == (0, 0, 2, 2)
