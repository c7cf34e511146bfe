"""Small models with random weights, as Transformers saves them, become checkpoints of fairseq."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
from fairseq import checkpoint_utils, options, tasks
from fairseq.data.indexed_dataset import MMapIndexedDataset
from safetensors.torch import load_file, save_file

import syncattn_fairseq
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.cli import bpe, preprocess
from syncattn_fairseq.cli.import_ import main
from syncattn_fairseq.data.pieces import list_pieces, open_pieces
from syncattn_fairseq.data.preparation import stored_preparations, stored_schemes
from syncattn_fairseq.data.subwords import CONTINUATION
from syncattn_fairseq.data.words import locate_words
from syncattn_fairseq.export import export
from syncattn_fairseq.imports import conversion, import_model
from syncattn_fairseq.patches.started_options import compare_options
from tests.models import build
from tests.published import OTHERS, WORDS, transformers, write_fsmt, write_marian


def load_model(folder: Path):
    state = checkpoint_utils.load_checkpoint_to_cpu(str(folder / "model.pt"))
    state["cfg"]["task"]["data"] = str(folder)
    task = tasks.setup_task(state["cfg"]["task"])
    model = task.build_model(state["cfg"]["model"])
    model.load_state_dict(state["model"])
    return model.eval(), task, state


def score_here(model, task, source, target):
    """Log-probabilities of a pair of sentences, by symbol."""
    x = [task.source_dictionary.index(word) for word in [*source, "</s>"]]
    y = [task.target_dictionary.index(word) for word in ["</s>", *target]]
    with torch.no_grad():
        scores = model(torch.tensor([x]), torch.tensor([len(x)]), torch.tensor([y]))[0]
    scores = scores[0].log_softmax(-1)
    return lambda symbol: scores[:, task.target_dictionary.index(symbol)]


def score_there(folder, source, target, names=("vocab.json", "vocab.json")):
    """The same by Transformers alone, from the folder's own files."""
    kind = json.loads((folder / "config.json").read_text())["model_type"]
    classes = {"marian": "MarianMTModel", "fsmt": "FSMTForConditionalGeneration"}
    model = getattr(transformers, classes[kind]).from_pretrained(folder).eval()
    ids = [json.loads((folder / name).read_text(encoding="utf-8")) for name in names]
    x = [ids[0][word] for word in [*source, "</s>"]]
    y = [model.config.decoder_start_token_id, *(ids[1][word] for word in target)]
    with torch.no_grad():
        inputs = {"input_ids": torch.tensor([x]), "decoder_input_ids": torch.tensor([y])}
        logits = model(**inputs, use_cache=False).logits[0]
    if kind == "marian":
        logits[:, ids[1]["<pad>"]] = float("-inf")
    scores = logits.log_softmax(-1)
    return lambda symbol: scores[:, ids[1][symbol]]


MARIANS: list[dict[str, Any]] = [
    {},
    {"activation_function": "relu", "scale_embedding": False},
    {"activation_function": "gelu", "target": OTHERS},
    {"target": OTHERS},
    {"start": 0.3},
]


@pytest.mark.parametrize("settings", MARIANS)
def test_a_marian_model_computes_the_same(tmp_path, settings):
    folder, made = write_marian(tmp_path / "opus", **settings), tmp_path / "made"
    verdict = import_model(folder, made)
    assert verdict.startswith("20 sentences have the same log-probabilities as in")
    words = settings.get("target", WORDS)
    names = ("vocab.json", "target_vocab.json" if "target" in settings else "vocab.json")
    source, target = ["▁w3", "x", "▁w7"], [words[2], words[5]]
    model, task, _ = load_model(made)
    here = score_here(model, task, source, target)
    there = score_there(folder, source, target, names)
    for symbol in (*words, "</s>", "<unk>"):
        torch.testing.assert_close(here(symbol), there(symbol), atol=1e-4, rtol=0)
    assert here("<s>").max() < -50 and here("<pad>").max() < -50
    tied = model.decoder.embed_tokens.weight is model.encoder.embed_tokens.weight
    assert tied == ("target" not in settings)


@pytest.mark.parametrize("settings", [{}, {"activation_function": "gelu"}])
def test_an_fsmt_computes_the_same(tmp_path, settings):
    folder, made = write_fsmt(tmp_path / "wmt19", **settings), tmp_path / "made"
    import_model(folder, made)
    model, task, _ = load_model(made)
    here = score_here(model, task, ["w1@@", "le@@", "er"], ["v1", "v2"])
    names = ("vocab-src.json", "vocab-tgt.json")
    there = score_there(folder, ["w1", "le", "er</w>"], ["v1</w>", "v2</w>"], names)
    for symbol in range(7):
        torch.testing.assert_close(here(f"v{symbol}"), there(f"v{symbol}</w>"), atol=1e-4, rtol=0)
    assert task.source_dictionary.symbols[4:] == [
        *(f"w{i}@@" for i in range(9)), "le@@", "er", "w",
    ]  # fmt: skip
    assert (made / "subwords.en").read_text() == "#version: 0.2\nl e\ne r</w>\n"


def test_an_fsmt_with_other_positions_is_refused(tmp_path):
    folder = write_fsmt(tmp_path / "trained")
    model = transformers.FSMTForConditionalGeneration.from_pretrained(folder)
    with torch.no_grad():
        model.model.decoder.embed_positions.weight[7] += 0.01
    model.save_pretrained(folder)
    with pytest.raises(DataError, match="decoder.embed_positions.weight is not FSMTForCond"):
        import_model(folder, tmp_path / "made")
    folder = write_fsmt(tmp_path / "padded", pad_token_id=4)
    with pytest.raises(DataError, match="config.json: pad_token_id is 4, from which FSMT counts"):
        import_model(folder, tmp_path / "made")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_a_marian_whose_positions_were_trained_is_refused(tmp_path, side):
    """Transformers does not save Marian's positions, but older tools did."""
    folder = write_marian(tmp_path / "trained")
    model = transformers.MarianMTModel.from_pretrained(folder)
    name = f"model.{side}.embed_positions.weight"
    positions = model.state_dict()[name].clone()
    state = load_file(folder / "model.safetensors")
    for change in (0, 0.01):
        positions[3] += change
        save_file(state | {name: positions}, folder / "model.safetensors", {"format": "pt"})
        if not change:
            import_model(folder, tmp_path / "kept")
    with pytest.raises(DataError, match=f"{side}.embed_positions.weight is not MarianMTModel's"):
        import_model(folder, tmp_path / "made")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("write", [write_marian, write_fsmt])
def test_the_stacks_have_the_version_of_today(tmp_path, write):
    """Without it, fairseq leaves out norms."""
    import_model(write(tmp_path / "x"), tmp_path / "made")
    state = load_model(tmp_path / "made")[2]["model"]
    assert [state[f"{side}.version"].tolist() for side in ("encoder", "decoder")] == [[3.0]] * 2


@pytest.mark.parametrize("write", [write_marian, write_fsmt])
@pytest.mark.parametrize("arch", ["transformer_dbsa", "transformer_syncattn"])
def test_syntactic_models_start_from_it_with_the_same_scores(tmp_path, write, arch):
    made = tmp_path / "made"
    import_model(write(tmp_path / "x"), made)
    plain, task, state = load_model(made)
    given = (made / "options.txt").read_text().split()
    parser = options.get_training_parser()
    words = [str(made), f"--arch={arch}", "-s=en", "-t=de", "--optimizer=adam", *given]
    args = options.parse_args_and_arch(parser, words)
    compare_options("model.pt", state["cfg"]["model"], args)
    model = task.build_model(args)
    model.load_state_dict(state["model"], strict=True)
    inputs = build.net_input(build.sentences([5, 3]), build.sentences([4, 6], seed=1))
    inputs["src_tokens"].clamp_(max=14)
    inputs["prev_output_tokens"].clamp_(max=10)
    with torch.no_grad():
        found = model.eval()(**inputs)[0].log_softmax(-1)
        expected = plain(**build.plain_input(inputs))[0].log_softmax(-1)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


@pytest.fixture(scope="module")
def opus(small_corpus, tmp_path_factory):
    """A MarianMT with subword models, as OPUS-MT's of several target languages have them."""
    folder = tmp_path_factory.mktemp("opus") / "opus"
    pieces = list_pieces(open_pieces(small_corpus.subwords))
    write_marian(
        folder, [">>de<<", *pieces], decoder_attention_heads=4, max_position_embeddings=200
    )
    for name in ("source.spm", "target.spm"):
        shutil.copyfile(small_corpus.subwords, folder / name)
    made = folder.with_name("made")
    assert main([str(folder), f"--output={made}"]) == 0
    return folder, made


def test_text_becomes_the_numbers_of_marians_tokenizer(small_corpus, opus, tmp_path):
    folder, made = opus
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    model = syncattn_fairseq.load(made, device="cpu")
    words = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    lines = [*small_corpus.lines("test.en"), ">>de<< the dog", "the >>de<< dog"]
    for line, pieces in zip(lines, model.source_segmenter(lines), strict=True):
        # This sentencepiece model, unlike published ones, keeps a space at the beginning.
        expected = tokenizer(re.sub("^>>de<< ", ">>de<<", line)).input_ids
        assert [*(words.get(piece, 1) for piece in pieces), 0] == expected
    assert model.source_segmenter([">>de<< the"])[0][0] == ">>de<<"
    assert model.source_segmenter([">>fr<< the"])[0][0] != ">>fr<<", "not of the model"
    assert len(model.translate(lines)) == len(lines)
    text, split = tmp_path / "text", tmp_path / "split"
    text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = ["apply", f"--model={made / 'subwords.en'}", f"--dictionary={made / 'dict.en.txt'}"]
    assert bpe.main([*command, f"--input={text}", f"--output={split}"]) == 0
    found = [line.split() for line in split.read_text(encoding="utf-8").splitlines()]
    assert found == model.source_segmenter(lines)


#: A sentence as people write it, its words and their heads, and what a published model reads.
WRITTEN = "He said: “½ café…”, man."
SPLIT = ["He", "said", ":", "“", "½", "café", "…", "”", ",", "man", "."]
TREE = [2, 0, 2, 6, 6, 2, 6, 6, 2, 2, 2]
READ = "He said: “1⁄2 café...”, man."


def test_parses_of_words_go_with_the_subwords_of_a_published_model(tmp_path, monkeypatch):
    """Words are matched by characters, also where the model's sentencepiece changes these."""
    monkeypatch.chdir(tmp_path)
    texts = [WRITTEN, "A man said so.", "He is here…"]
    options = {"vocab_size": 60, "hard_vocab_limit": False, "minloglevel": 3}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*texts, "man. so. said: here."] * 5), model_prefix="opus", **options
    )
    processor = open_pieces(Path("opus.model"))
    folder = write_marian(tmp_path / "opus", [">>de<<", *list_pieces(processor)])
    for name in ("source.spm", "target.spm"):
        shutil.copyfile("opus.model", folder / name)
    assert main([str(folder), "--output=made"]) == 0
    assert {each.tokenizer for each in stored_preparations(Path("made")).values()} == {"raw"}
    for language in ("en", "de"):
        Path(f"text.{language}").write_text(f"{WRITTEN}\n{texts[1]}\n", encoding="utf-8")
        arguments = [f"--input=text.{language}", f"--output=pieces.{language}"]
        assert bpe.main(["apply", f"--model=made/subwords.{language}", *arguments]) == 0
    Path("text.heads.en").write_text(" ".join(map(str, TREE)) + "\n\n")
    spans = " ".join(f"{a}-{b}" for a, b in locate_words(SPLIT, WRITTEN))
    Path("text.spans.en").write_text(f"{spans}\n\n")
    arguments = ["-s=en", "-t=de", "--destdir=bin", "--trainpref=pieces", "--trainheads=text"]
    arguments += ["--start=made", "--min-parsed=0"]
    assert preprocess.main(arguments) == 0
    assert stored_schemes("bin") == dict.fromkeys(("en", "de"), "raw:uax29")
    pieces = Path("pieces.en").read_text(encoding="utf-8").splitlines()[0].split()
    assert "".join(pieces).replace("▁", " ").strip() == READ
    assert any(piece[-1] in ".,:" and len(piece) > 1 for piece in pieces)  # not a word's
    marks = MMapIndexedDataset("bin/train.heads.en-de.en")[0].tolist()
    starts = [0, *(n for n, mark in enumerate(marks) if n and mark != CONTINUATION)]
    ends = [*starts[1:], len(marks)]
    units = ["".join(pieces[a:b]).strip("▁") for a, b in zip(starts, ends, strict=True)]
    assert "café" in units and "1⁄2" in units
    heads = [marks[start] for start in starts]
    assert heads.count(0) == 1 and units[heads[units.index("café")] - 1].startswith("said")
    assert units[heads[units.index("1⁄2")] - 1] == "café"


def test_it_is_exported_to_ctranslate2(small_corpus, opus, tmp_path):
    pytest.importorskip("ctranslate2")
    _, made = opus
    data, pieces = tmp_path / "bin", small_corpus.folder / "pieces"
    arguments = ["-s=en", "-t=de", f"--destdir={data}", f"--trainpref={pieces / 'valid'}"]
    arguments += [f"--trainheads={small_corpus.folder / 'words' / 'valid'}"]
    arguments += [f"--start={made}"]
    assert preprocess.main(arguments) == 0
    assert "have the same scores" in export(
        made / "model.pt", data, "ctranslate2", tmp_path / "out"
    )


def change(name, **values):
    """Change values of a JSON file; those that are None are left out."""

    def apply(folder):
        table = json.loads((folder / name).read_text(encoding="utf-8")) | values
        kept = {key: value for key, value in table.items() if value is not None}
        (folder / name).write_text(json.dumps(kept), encoding="utf-8")

    return apply


def spoil_index(folder):
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"x": "../opus/x"}}')


class Hostile:
    """What runs code as a pickle is read."""

    def __reduce__(self):
        return os.system, ("touch ran",)


def write_pickle(folder):
    (folder / "model.safetensors").unlink()
    torch.save({"x": Hostile()}, folder / "pytorch_model.bin")


def change_weights(folder, nan=False):
    weights = load_file(folder / "model.safetensors")
    if nan:
        weights["final_logits_bias"][:] = float("nan")
    else:
        weights["model.encoder.layers.0.adapter.weight"] = torch.ones(1)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def test_weights_of_earlier_times_are_read_without_running_code(tmp_path):
    folder = write_marian(tmp_path / "opus")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert "the same log-probabilities" in import_model(folder, tmp_path / "made")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (change("config.json", normalize_before=True), "normalize_before is True, which"),
        (change("config.json", normalize_embedding=True), "normalize_embedding is True"),
        (change("config.json", static_position_embeddings=False), "static_position_embeddings is"),
        (change("config.json", model_type="mbart"), "'mbart'; only marian, fsmt, m2m_100 can be"),
        (change("config.json", activation_function="tanh"), "the activation 'tanh'; only swish"),
        (change("config.json", decoder_start_token_id=5), "start with '▁w3', which has anoth"),
        (change("config.json", decoder_start_token_id=99), "decoder_start_token_id is 99"),
        (change("config.json", d_model=32), "weights are of other sizes than config.json says"),
        (change("config.json", d_model=10**9), "config.json: d_model is 1000000000; get it again"),
        (change("config.json", d_model="16"), "config.json: d_model is '16'; get it again"),
        (change("config.json", encoder_layers=10**6), "encoder_layers is 1000000; get it again"),
        (change("config.json", max_position_embeddings=1), "max_position_embeddings is 1; get"),
        (
            change("config.json", encoder_attention_heads=3),
            "MarianMTModel cannot load the model .embed_dim must be div",
        ),
        (change("config.json", dropout=7), "config.json: dropout is 7; get it again"),
        (change("config.json", vocab_size=9), "vocab_size is 9, but its vocabulary has 27 symb"),
        (change("config.json", eos_token_id=5), "eos_token_id is 5, but </s> is 0; get it again"),
        (
            change("config.json", transformers_weights="../x"),
            "transformers_weights refers to quantised or other weights",
        ),
        (
            spoil_index,
            "model.safetensors.index.json: names the file '../opus/x', "
            "which this folder does not have",
        ),
        (write_pickle, "its weights are a pickle that runs code when it is read; get the model as"),
        (
            lambda folder: change_weights(folder, nan=True),
            "final_logits_bias holds NaN or infinity",
        ),
        (
            lambda folder: change_weights(folder),
            "weights that MarianMTModel does not have, such as ",
        ),
        (
            lambda folder: (folder / "source.spm").write_bytes(b"x"),
            "target.spm: no such file; give",
        ),
        (
            lambda folder: (folder / "tokenizer_config.json").write_text("{"),
            "_config.json: not valid JSON",
        ),
        (
            change("tokenizer_config.json", source_lang=None),
            "name the model's languages; give --source-lang",
        ),
        (
            change("tokenizer_config.json", source_lang="../x"),
            "name the model's languages; give --source-lang",
        ),
        (change("tokenizer_config.json", source_lang="de"), "both languages are de"),
        (change("vocab.json", x="1"), "expected a number for each symbol"),
        (change("vocab.json", x=1), "expected each number from 0 to 26 once"),
        (change("vocab.json", more=27), "vocab_size is 27, but its vocabulary has 28 symbols"),
        (change("vocab.json", x=None, **{"a\nb": 22}), "cannot stand in a dictionary"),
        (change("vocab.json", **{"<unk>": None, "y": 1}), "the vocabulary has no <unk>"),
        (lambda folder: (folder / "config.json").write_text("[1]"), "expected a JSON object"),
        (lambda folder: (folder / "vocab.json").unlink(), "no such file; give the complete folder"),
        (lambda folder: (folder / "model.safetensors").unlink(), "cannot load the model"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"x"), "cannot load the model"),
        (lambda folder: shutil.rmtree(folder), "no such folder; download the model"),
    ],
)
def test_what_cannot_be_imported_is_refused_by_name(tmp_path, capsys, monkeypatch, spoil, reason):
    monkeypatch.chdir(tmp_path)
    folder = write_marian(tmp_path / "opus")
    spoil(folder)
    assert main([str(folder), f"--output={tmp_path / 'made'}"]) == 1
    [line] = capsys.readouterr().err.strip().splitlines()[-1:]
    assert line.startswith("error: ") and re.search(reason, line), line
    assert [*tmp_path.iterdir()] == ([folder] if folder.exists() else [])


def test_a_model_that_computes_something_else_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(conversion, "NEVER", 0.0)
    with pytest.raises(DataError, match="differs from the published one: .* nothing was written$"):
        import_model(write_marian(tmp_path / "opus"), tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_a_broken_subword_model_is_refused(tmp_path):
    folder = write_marian(tmp_path / "opus")
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(b"\nnone")
    with pytest.raises(DataError, match=r"source.spm: not a sentencepiece model"):
        import_model(folder, tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_languages_can_be_named_and_nothing_is_overwritten(tmp_path):
    folder, made = write_marian(tmp_path / "opus"), tmp_path / "made"
    import_model(folder, made, "ROMANCE", "xx")
    assert {path.name for path in made.glob("dict.*")} == {"dict.ROMANCE.txt", "dict.xx.txt"}
    with pytest.raises(DataError, match="made: already exists"):
        import_model(folder, made)


def test_an_export_for_transformers_comes_back(small_corpus, tmp_path):
    path = small_corpus.checkpoint("transformer")
    small_corpus.export(path, "transformers", tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "made")
    paths = path, tmp_path / "made" / "model.pt"
    there, here = (torch.load(each, weights_only=False)["model"] for each in paths)
    for name, value in here.items():
        assert torch.equal(value, there[name].float()), name
