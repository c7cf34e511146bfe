"""Models that started from a MarianMT become one again."""

import json

import pytest
import torch

import syncattn_fairseq
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.cli import export as command
from syncattn_fairseq.export import export
from syncattn_fairseq.imports import import_model
from tests.checkpoints import TWO_HEADS
from tests.published import start_corpus, transformers

KINDS = {
    "one vocabulary": {"tags": (">>de<<", ">>fr<<")},
    "two vocabularies": {"two": True, "activation_function": "gelu"},
    "relu": {"activation_function": "relu", "scale_embedding": False, "start": 0.3},
}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    made = {}

    def make(kind):
        if kind not in made:
            made[kind] = start_corpus(tmp_path_factory.mktemp("started"), **KINDS[kind])
        return made[kind]

    return make


def compare(path, folder, corpus, without=(), count=8):
    """Return the largest difference of log-probabilities, text by text, of all symbols."""
    ours = syncattn_fairseq.load(path, corpus.data, device="cpu")
    [model], task = ours.models, ours.task
    model.float()
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    theirs = transformers.MarianMTModel.from_pretrained(folder).eval()
    numbers = tokenizer.target_encoder if tokenizer.separate_vocabs else tokenizer.encoder
    symbols = task.target_dictionary.symbols
    common = [word for word in symbols if word in numbers and word not in without]
    here = torch.tensor([task.target_dictionary.index(word) for word in common])
    there = torch.tensor([numbers[word] for word in common])
    worst = 0.0
    for source, target in zip(
        corpus.lines("test.en")[:count], corpus.lines("test.de")[:count], strict=True
    ):
        x = tokenizer(source, return_tensors="pt").input_ids
        y = tokenizer(text_target=target, return_tensors="pt").input_ids
        pieces = ours.source_segmenter([source])[0], ours.target_segmenter([target])[0]
        unknown = tokenizer.unk_token_id
        assert x[0, :-1].tolist() == [tokenizer.encoder.get(p, unknown) for p in pieces[0]]
        assert y[0, :-1].tolist() == [numbers.get(p, unknown) for p in pieces[1]]
        z = [task.source_dictionary.index(piece) for piece in [*pieces[0], "</s>"]]
        before = [task.target_dictionary.index(piece) for piece in ["</s>", *pieces[1]]]
        start = torch.tensor([[theirs.config.decoder_start_token_id]])
        with torch.no_grad():
            found = model(torch.tensor([z]), torch.tensor([len(z)]), torch.tensor([before]))[0]
            logits = theirs(input_ids=x, decoder_input_ids=torch.cat([start, y[:, :-1]], 1)).logits
        difference = found.log_softmax(-1)[..., here] - logits.log_softmax(-1)[..., there]
        worst = max(worst, difference.abs().max().item())
    return worst


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("arch", ["transformer_dbsa", "transformer_syncattn"])
def test_a_model_with_syntactic_heads_is_a_marian_model_again(corpora, tmp_path, kind, arch):
    corpus = corpora(kind)
    path = corpus.start(arch, **TWO_HEADS)
    verdict = export(path, corpus.data, "marian", tmp_path / "hub")
    assert verdict.startswith("12 sentences have the same scores to ")
    assert compare(path, tmp_path / "hub", corpus) < 1e-4
    import_model(tmp_path / "hub", tmp_path / "again")
    again = tmp_path / "again" / "model.pt"  # in which <pad> is as unlikely as in the first one
    assert compare(again, tmp_path / "hub", corpus, ["<pad>"]) < 1e-4


def test_what_nobody_trained_comes_back_as_it_was_published(corpora, tmp_path):
    corpus = corpora("one vocabulary")
    export(corpus.imported / "model.pt", corpus.data, "marian", tmp_path / "hub")
    for name in ("source.spm", "target.spm"):
        there, here = (folder / name for folder in (corpus.published, tmp_path / "hub"))
        assert there.read_bytes() == here.read_bytes()
    names = "vocab.json", "config.json"
    (words, config), (before, published) = (
        [json.loads((folder / name).read_text(encoding="utf-8")) for name in names]
        for folder in (tmp_path / "hub", corpus.published)
    )
    assert words == before
    for name in ("d_model", "pad_token_id", "eos_token_id", "decoder_start_token_id"):
        assert config[name] == published[name]
    models = [
        transformers.MarianMTModel.from_pretrained(folder).state_dict()
        for folder in (tmp_path / "hub", corpus.published)
    ]
    pad = config["pad_token_id"]
    for name, value in models[1].items():
        kept = torch.arange(value.size(-1)) != (pad if name == "final_logits_bias" else -1)
        torch.testing.assert_close(models[0][name][..., kept], value[..., kept], atol=0, rtol=0)


def test_ctranslate2_starts_with_the_padding_too(corpora, tmp_path):
    pytest.importorskip("ctranslate2")
    corpus = corpora("relu")  # whose padding is no vector of zeros
    path = corpus.start("transformer_dbsa", **TWO_HEADS)
    said = export(path, corpus.data, "ctranslate2", tmp_path / "served")
    assert said.startswith("12 sentences have the same scores to ")


def test_the_card_says_how_to_choose_the_language(corpora, tmp_path, capsys):
    corpus = corpora("one vocabulary")
    arguments = [f"--path={corpus.start('transformer_dbsa')}", f"--data-bin={corpus.data}"]
    arguments += ["--format=marian", f"--output={tmp_path / 'hub'}"]
    assert command.main(arguments) == 0
    card = (tmp_path / "hub" / "README.md").read_text(encoding="utf-8")
    assert 'library_name: "transformers"' in card
    assert 'tokenizer([">>de<< A sentence."]' in card
    [code] = [part.partition("```")[0] for part in card.split("```python\n")[1:]]
    code = code.replace('"hub"', repr(str(tmp_path / "hub")))
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()


def test_other_models_are_refused_by_name(small_corpus, corpora, tmp_path):
    path = small_corpus.checkpoint("transformer_dbsa")
    with pytest.raises(DataError, match="supports only --positions marian, which models have that"):
        small_corpus.export(path, "marian", tmp_path / "hub")
    corpus = corpora("relu")
    for options, fault in [
        ({"encoder_normalize_before": True}, "no --normalize-before and no --layernorm-embedding"),
        ({"layernorm_embedding": True}, "no --normalize-before and no --layernorm-embedding"),
        ({"activation_fn": "tanh"}, "has no --activation-fn tanh"),
    ]:
        path = corpus.start("transformer_dbsa", **options)
        with pytest.raises(DataError, match=fault):
            export(path, corpus.data, "marian", tmp_path / "hub")
    assert not (tmp_path / "hub").exists()
