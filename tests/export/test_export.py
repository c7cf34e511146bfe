import json
import os
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

import syncattn_fairseq
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.folders import making
from syncattn_fairseq.cli import bpe
from syncattn_fairseq.export import check, export
from syncattn_fairseq.export.ctranslate2_format import are_sentencepiece, name_missing_pieces
from syncattn_fairseq.inference import Decoding
from syncattn_fairseq.inference import exported as exported_models
from syncattn_fairseq.inference import model as inference_model
from syncattn_fairseq.inference.model import limit_length
from tests.checkpoints import PRE_NORM, TWO_HEADS, Corpus, change_checkpoint
from tests.importing import fork
from tests.models.test_ends import MARIAN

ctranslate2 = pytest.importorskip("ctranslate2")

UNSHARED = {"share_all_embeddings": False, "share_decoder_input_output_embed": False}
BOTH = ("fairseq", "ctranslate2")
#: Systems that are plain Transformers in truth, with what makes each difficult, and the formats;
#: the last two with positions that CTranslate2 has in its attention, where key biases turn queries.
SYSTEMS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("transformer", {}, BOTH),
    ("transformer_dbsa", {**TWO_HEADS, **PRE_NORM}, BOTH),
    ("transformer_syncattn", {"sync_backward": "softmax"}, BOTH),
    ("transformer_syncattn", {"positions": "rotary", **TWO_HEADS, **PRE_NORM}, BOTH[1:]),
    ("transformer_dbsa", {"positions": "bias", **TWO_HEADS, "layernorm_embedding": True}, BOTH[1:]),
    ("transformer_syncattn", {**MARIAN, **TWO_HEADS}, BOTH[1:]),
]


@pytest.fixture(scope="module")
def model(small_corpus: Corpus) -> Any:
    return small_corpus.load(small_corpus.trained())


@pytest.fixture
def unsigned(small_corpus: Corpus, tmp_path: Path) -> Path:
    """An export for CTranslate2 as earlier versions wrote it: without checksums."""
    folder = shutil.copytree(small_corpus.exported("ctranslate2"), tmp_path / "out")
    describe(folder, files=None)
    return folder


def load_both(corpus: Corpus, path: Path, output: Path, format: str) -> tuple[Any, Any]:
    """Load a checkpoint, and what it becomes in a format."""
    corpus.export(path, format, output)
    return corpus.load(path), syncattn_fairseq.load(output, device="cpu")


@pytest.mark.parametrize("kind", [*BOTH, "rotary", "bias"])
def test_translations_are_the_same(small_corpus, tmp_path, model, kind):
    if kind in BOTH:
        other = syncattn_fairseq.load(small_corpus.exported(kind), device="cpu")
    else:
        path = small_corpus.trained(positions=kind)
        model, other = load_both(small_corpus, path, tmp_path / "out", "ctranslate2")
    sources = [*small_corpus.learned(), ""]
    expected, found = model.translate(sources), other.translate(sources)
    assert found == expected
    assert [bool(t) for t in found] == [True] * (len(sources) - 1) + [False]
    # The searches differ a little where one text can be cut in two ways; forced scores do not.
    scores = [t.score for t in expected[:-1]]
    assert [t.score for t in found[:-1]] == pytest.approx(scores, abs=0.01)


def test_biases_of_every_layer_need_a_ctranslate2_that_has_them(
    small_corpus, tmp_path, monkeypatch
):
    bias, rotary = (small_corpus.trained(positions=kind) for kind in ("bias", "rotary"))
    small_corpus.export(bias, "ctranslate2", tmp_path / "bias")
    monkeypatch.setattr(ctranslate2, "__version__", "4.8.2")
    reason = "^--positions bias needs CTranslate2 4.8.3 or later: version 4.8.2 gives all layers"
    with pytest.raises(DataError, match=reason):
        small_corpus.export(bias, "ctranslate2", tmp_path / "none")
    with pytest.raises(DataError, match=reason):
        syncattn_fairseq.load(tmp_path / "bias", device="cpu")
    small_corpus.export(rotary, "ctranslate2", tmp_path / "rotary")


def test_an_export_searches_as_it_is_told(small_corpus, model):
    other = syncattn_fairseq.load(small_corpus.exported("ctranslate2"), device="cpu")
    sources = small_corpus.learned()
    scores = {}
    for penalty in (1.0, 0.0):
        search = Decoding(length_penalty=penalty)
        expected, found = (
            [t.score for t in each.translate(sources, decoding=search)] for each in (model, other)
        )
        assert found == pytest.approx(expected, rel=0.02)
        scores[penalty] = found
    assert all(one < 2 * other for one, other in zip(scores[0.0], scores[1.0], strict=True))


@pytest.mark.parametrize("format", ["checkpoint", "ctranslate2"])
def test_the_longest_sentences_are_those_with_positions(
    small_corpus, tmp_path, caplog, monkeypatch, format
):
    options = {"max_source_positions": 60, "max_target_positions": 30}
    path = small_corpus.checkpoint("transformer_dbsa", **options)
    if format == "checkpoint":
        model = small_corpus.load(path)
    else:
        _, model = load_both(small_corpus, path, tmp_path / "out", format)
    [alignment] = model.align(["the " * 59], ["der"])
    assert len(alignment.source.pieces) == 59
    search = Decoding(max_len=1, too_long="empty", max_source=59)
    found = model.translate(["the " * 59, "the " * 60, "the"], decoding=search)
    reasons = [each.too_long for each in found]
    assert reasons == ["", "60 subwords, but the model reads at most 59", ""]
    assert [bool(each) for each in found] == [True, False, True]
    assert "sentence 2: not translated: the sentence has more subwords than" in caplog.text
    for given in (["der"], ["der " * 30]):
        [_, analysis] = model.analyse(["the", "the " * 60], ["der", *given], decoding=search)
        assert analysis.translation.too_long == "60 subwords, but the model reads at most 59"
        assert not analysis.source.pieces
    with pytest.raises(DataError, match="^translation 1: 30 subwords, but .* writes at most 29; s"):
        model.align(["the"], ["der " * 30])
    with pytest.raises(DataError, match="^sentence 2: 60 subwords, but .* reads at most 59; split"):
        model.align(["the", "the " * 60], ["der", "der"])

    sources = ["the", "the dog", ""]
    whole = model.translate(sources)  # untrained, it does not come to an end
    assert [len(each.sentence.pieces) for each in whole] == [29, 29, 0]
    assert [each.cut for each in whole] == [True, True, False]
    assert (
        "sentence 1: the search reached the largest number of subwords (--max-len)" in caplog.text
    )
    assert "2 of 3 sentences; this is the first" in caplog.text
    monkeypatch.setattr(inference_model, "SHORT", 5)
    found = model.translate(["the", "the the the", ""])
    assert [len(each.sentence.pieces) for each in found] == [5, 16, 0]
    found = model.translate(sources, decoding=Decoding(max_len=2))
    assert [len(each.sentence.pieces) for each in found] == [2, 2, 0]


@pytest.mark.parametrize("format", BOTH)
def test_scores_are_compared_on_what_the_model_reads(small_corpus, tmp_path, format):
    path = small_corpus.checkpoint("transformer_dbsa", max_source_positions=40)
    said = small_corpus.export(path, format, tmp_path / "out")
    assert 0 < int(said.split()[0]) < 12
    path = small_corpus.checkpoint("transformer_dbsa", max_target_positions=3)
    with pytest.raises(
        DataError, match="has no sentences in valid, test, train that the model can read"
    ):
        small_corpus.export(path, format, tmp_path / "none")


@pytest.mark.parametrize("sides", [(False, True), (True, False)])
def test_padding_stays_on_its_sides(small_corpus, tmp_path, sides):
    state = torch.load(small_corpus.checkpoint("transformer_dbsa"), weights_only=False)
    padding = dict(zip(("left_pad_source", "left_pad_target"), sides, strict=True))
    state["cfg"]["task"] |= padding
    torch.save(state, tmp_path / "checkpoint.pt")
    small_corpus.export(tmp_path / "checkpoint.pt", "fairseq", tmp_path / "out")
    task = torch.load(tmp_path / "out" / "model.pt")["cfg"]["task"]
    assert task | padding == task


@pytest.mark.parametrize(("arch", "options", "formats"), SYSTEMS)
def test_attention_is_the_same(small_corpus, tmp_path, arch, options, formats):
    path = small_corpus.checkpoint(arch, **options)
    texts = small_corpus.lines("test.en"), small_corpus.lines("test.de")
    layer = 3 if arch == "transformer" else None  # fairseq's own aligns by its last layer
    expected = small_corpus.load(path).align(*texts, layer=layer)
    for format in formats:
        small_corpus.export(path, format, tmp_path / format)
        aligned = syncattn_fairseq.load(tmp_path / format, device="cpu").align(*texts)
        for one, two in zip(expected, aligned, strict=True):
            np.testing.assert_allclose(two.attention, one.attention, atol=1e-5)


@pytest.mark.parametrize("rows", ["predicted", "input"])
def test_a_plain_export_is_still_a_parser(small_corpus, tmp_path, rows):
    options = {**TWO_HEADS, **PRE_NORM, "tgt_dependency_rows": rows}
    path = small_corpus.checkpoint("transformer_dbsa", **options)
    texts = small_corpus.lines("test.en"), small_corpus.lines("test.de")
    models = load_both(small_corpus, path, tmp_path / "out", "fairseq")
    for one, two in zip(*(model.parse(*texts) for model in models), strict=True):
        np.testing.assert_allclose(two.source.attention, one.source.attention, atol=1e-5)
        np.testing.assert_allclose(two.target.attention, one.target.attention, atol=1e-5)


@pytest.mark.parametrize("format", BOTH)
def test_an_export_knows_how_subwords_are_marked(small_corpus, own_data, tmp_path, format):
    (own_data / "subwords.json").write_text('{"de": "none", "en": "none"}\n', encoding="utf-8")
    (own_data / "fingerprint.json").unlink()
    path = change_checkpoint(small_corpus.trained(), tmp_path / "earlier.pt", task_state={})
    export(path, own_data, format, tmp_path / "out")
    model = syncattn_fairseq.load(tmp_path / "out", device="cpu")
    [alignment] = model.align(["▁the ▁dog s"], ["▁der ▁H und"])
    assert alignment.source.words == ["▁the", "▁dog", "s"]


def check_refused(path: Path, fault: str = "the file is damaged or missing; export") -> None:
    """Check that an export is not loaded, for the fault of one of its files, or of its folder."""
    folder = path if path.is_dir() else path.parent
    with pytest.raises(DataError, match=f"^{path}: {fault}") as error:
        syncattn_fairseq.load(folder, device="cpu")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("format", BOTH)
def test_every_file_of_an_export_has_a_checksum(small_corpus, tmp_path, format):
    folder = shutil.copytree(small_corpus.exported(format), tmp_path / "out")
    names = {path.name for path in folder.iterdir()} - {"README.md", "syncattn.json"}
    model = "model.bin" if format == "ctranslate2" else "model.pt"
    assert {model, "subwords.en", "subwords.de"} <= names
    for name in names:
        content = (folder / name).read_bytes()
        flipped = bytearray(content)
        flipped[len(content) // 2] ^= 1
        (folder / name).write_bytes(flipped)
        check_refused(folder / name)
        (folder / name).unlink()
        with pytest.raises(DataError):
            syncattn_fairseq.load(folder, device="cpu")
        (folder / name).write_bytes(content)
    syncattn_fairseq.load(folder, device="cpu")


def describe(folder: Path, **values: Any) -> None:
    """Change the description of an export; None: remove a value."""
    about = json.loads((folder / "syncattn.json").read_text()) | values
    about = {name: value for name, value in about.items() if value is not None}
    (folder / "syncattn.json").write_text(json.dumps(about))


@pytest.mark.parametrize(
    "values",
    [
        *({"source": source} for source in ("../en", 7, ["en"])),
        *({"labels": 1}, {"alignment_layer": "1"}, {"alignment_layer": 0}),
        *({"longest_source": 1.5}, {"longest_target": -1}, {"format": 7}, {"positions": 1}),
        *({"target": None}, {"unknown": 1}),
        *({"files": files} for files in (["x"], {"../x": "0"}, {"": "0"}, {"a\nb": "0"}, "x")),
    ],
)
def test_a_damaged_description_is_refused(small_corpus, tmp_path, values):
    folder = shutil.copytree(small_corpus.exported("fairseq"), tmp_path / "out")
    describe(folder, **values)
    check_refused(folder / "syncattn.json")


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 99999, b"[]", b"null", b"\xff", b'{"a": 1}'])
def test_damaged_json_is_refused(unsigned, content):
    for path in (unsigned / "shared_vocabulary.json", unsigned / "syncattn.json"):
        path.write_bytes(content)
        if (path.name, content) == ("shared_vocabulary.json", b"[]"):
            continue  # a list of words
        check_refused(path)


@pytest.mark.parametrize(
    "change",
    [
        {"decoder_start_token": None},
        {"eos_token": "nothing"},
        {"unk_token": ["<unk>"]},
        {"add_source_eos": 1},
        {"add_source_bos": None},
        {"multi_query_attention": "x"},
        {"layer_norm_epsilon": "1e-5"},
    ],
)
def test_settings_that_ctranslate2_would_crash_with_are_refused(unsigned, change):
    path = unsigned / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    check_refused(path)


def test_vocabularies_that_do_not_fit_are_refused(unsigned):
    path = unsigned / "shared_vocabulary.json"
    words = json.loads(path.read_text())
    path.write_text(json.dumps([*words[:-1], words[5]]))
    check_refused(path)
    path.write_text(json.dumps(words[:20]))
    cannot = (
        rf"^{unsigned}: CTranslate2 cannot translate with this model \(Invalid token.*\); export"
    )
    for labels, parser in ((False, None), (True, "random:1")):
        describe(unsigned, labels=labels)
        model = syncattn_fairseq.load(unsigned, source_parser=parser, device="cpu")
        with pytest.raises(DataError, match=cannot):
            model.translate(["a b ."])


@pytest.mark.parametrize(
    ("start", "value", "fault"),
    [
        (b"encoder/num_heads\0", 0, "the file is damaged: encoder/num_heads is below 1; export"),
        (b"decoder/num_heads\0", -1, "the file is damaged: decoder/num_heads is below 1; export"),
        (b"decoder/num_heads\0", None, "the file is damaged: it ends early; export"),
    ],
)
def test_a_model_without_heads_is_refused(unsigned, start, value, fault):
    path = unsigned / "model.bin"
    content = bytearray(path.read_bytes())
    first = content.index(start) + len(start)
    assert content[first] == 0, "a number has no dimensions"
    size = int.from_bytes(content[first + 2 : first + 6], "little")
    if value is None:
        del content[first + 4 :]
    else:
        content[first + 6 : first + 6 + size] = value.to_bytes(size, "little", signed=True)
    path.write_bytes(content)
    check_refused(path, fault)


def test_a_model_without_weights_is_refused(unsigned):
    path = unsigned / "model.bin"
    content = path.read_bytes()
    (kind,) = struct.unpack_from("<H", content, 4)
    path.write_bytes(content[: 10 + kind] + bytes(8))  # no variables, no aliases
    check_refused(unsigned, "CTranslate2 cannot run the model on cpu ")


def test_a_gpu_needs_the_library_that_ctranslate2_loads(unsigned, monkeypatch):
    with pytest.raises(DataError, match=f"^{unsigned}: CTranslate2 cannot run the model on gpu "):
        syncattn_fairseq.load(unsigned, device="gpu")
    model = syncattn_fairseq.load(unsigned, device="cpu")

    lack = Mock(
        side_effect=RuntimeError("Library libcublas.so.12 is not found or cannot be loaded")
    )
    monkeypatch.setattr(model, "translator", Mock(translate_batch=lack))
    with pytest.raises(
        DataError, match=r"; on a GPU, CTranslate2 needs CUDA 12; choose device='cpu'"
    ):
        model.translate(["a b ."])
    assert not exported_models._can_use_gpu()
    monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: 1)
    monkeypatch.setattr("ctypes.CDLL", lambda name: {"libcublas.so.12": name}[name])
    assert exported_models._can_use_gpu()
    monkeypatch.setattr("ctypes.CDLL", Mock(side_effect=OSError("cannot open shared object file")))
    assert not exported_models._can_use_gpu()
    assert syncattn_fairseq.load(unsigned).translate(["a b ."])


def test_another_subword_model_is_not_exported(small_corpus, tmp_path):
    pytest.importorskip("subword_nmt", reason="needs the extra subword-nmt")
    other = tmp_path / "other"
    text = small_corpus.folder / "words" / "train.en"
    assert bpe.main(["learn", "--vocab-size=60", f"--model={other}", "--input", str(text)]) == 0
    wrong = {
        other.with_suffix(".model"): r"splits (\d+) of \1 sentences of .* differently",
        _file(tmp_path / "bytes", bytes(range(255, 0, -1))): "not UTF-8",
        _file(tmp_path / "piece", b"\n\x01\x02"): "not a sentencepiece model",
        _file(tmp_path / "codes", b"h e\n"): "marks subwords as subword_nmt",
        _file(tmp_path / "empty", b""): "no pairs of subwords to join",
    }
    trained = small_corpus.trained()
    both, *_ = of_target = [[small_corpus.subwords, path] for path in wrong]
    for subwords in (both[1:], *of_target):
        path, reason = subwords[-1], wrong[subwords[-1]]
        with pytest.raises(DataError, match=f"^{path}:.*{reason}") as error:
            small_corpus.export(trained, "fairseq", tmp_path / "out", subwords=subwords)
        assert "\n" not in str(error.value)
        assert not (tmp_path / "out").exists()


def _file(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def read_codes(folder: Path) -> list[str]:
    """Return the lines of Python in the README of an export."""
    readme = (folder / "README.md").read_text(encoding="utf-8")
    return [part.removeprefix("python\n") for part in readme.split("```")[1::2]]


def test_the_hint_fits_the_subword_models_of_the_model():
    """--subwords helps a model whose subword models are not known, and no other one."""
    unknown = SimpleNamespace(segmenters=None)
    assert "give them with --subwords" in name_missing_pieces(unknown)
    codes = SimpleNamespace(segmenters=(object(), object()))
    assert "codes of subword-nmt or whole words; use --format" in name_missing_pieces(codes)
    assert not are_sentencepiece(unknown) and not are_sentencepiece(codes)


def test_fairseq_runs_the_readme_without_this_package(small_corpus, model):
    source = small_corpus.learned()[0]
    code = read_codes(small_corpus.exported("fairseq"))[0].replace("A sentence .", source)
    code += "import sys\nassert not any(name.startswith('syncattn') for name in sys.modules)"
    command = [sys.executable, "-c", code]
    beside = small_corpus.exported("fairseq").parent
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=beside)
    assert found.stdout.splitlines()[-1] == model.translate([source])[0]


@pytest.mark.parametrize("format", BOTH)
def test_a_card_is_of_no_machine(small_corpus, format):
    folder = small_corpus.exported(format)
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert f'"{folder.name}"' in readme and str(folder.parent) not in readme


def test_a_wrong_licence_is_refused_before_the_model_is_read(tmp_path):
    with pytest.raises(DataError, match="^--licence 'two words': "):
        export("no.pt", "none", "fairseq", tmp_path / "out", licence="two words")


def test_ctranslate2_runs_the_readme(small_corpus, model, capsys, monkeypatch):
    monkeypatch.chdir(small_corpus.folder)
    source = small_corpus.learned()[0]
    ours, plain = read_codes(small_corpus.exported("ctranslate2"))
    assert "syncattn" not in plain
    for code in (ours, plain):
        exec(code.replace("A sentence .", source), {})
        assert capsys.readouterr().out == f"{model.translate([source])[0]}\n"


def test_hugging_face_has_the_same_logits_parse_and_subwords(
    small_corpus, tmp_path, capsys, monkeypatch
):
    transformers = pytest.importorskip("transformers")
    path = small_corpus.checkpoint("transformer_syncattn", dependency_key_bias=True)
    folder = tmp_path / "out"
    small_corpus.export(path, "transformers", folder)
    model = small_corpus.load(path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    fsmt = transformers.FSMTForConditionalGeneration.from_pretrained(
        folder, attn_implementation="eager"
    ).eval()
    search = fsmt.generation_config
    assert (search.num_beams, search.early_stopping) == (Decoding().beam, True)
    assert search.max_length == 1002
    sources = [*small_corpus.lines("test.en"), "an unknown ẞ here"]
    dictionary = model.task.source_dictionary
    for source, pieces in zip(sources, model.source_segmenter(sources), strict=True):
        numbers = dictionary.encode_line(" ".join(pieces), add_if_not_exist=False).tolist()
        assert tokenizer(source).input_ids == numbers
    for text in (" the man", "the man ", "the  man", "the\u00a0man\u3000", "\tthe\x85man\n"):
        assert model.source_segmenter([text]) == model.source_segmenter(["the man"])
        assert tokenizer(text).input_ids == tokenizer("the man").input_ids
    assert tokenizer("old </s> dog").input_ids.count(2) == 1
    batch = tokenizer(sources, return_tensors="pt", padding=True)
    previous = torch.tensor([[2, 5, 6, 7]] * len(sources))
    with torch.no_grad():
        found = fsmt(**batch, decoder_input_ids=previous, output_attentions=True, use_cache=False)
        lengths = batch.attention_mask.sum(1)
        expected = model.models[0](batch.input_ids, lengths, previous)[0]
    torch.testing.assert_close(found.logits, expected, atol=1e-4, rtol=0)
    parses = model.parse(sources, sources)
    for row, pair in zip(found.encoder_attentions[0][:, 0], parses, strict=True):
        size = len(pair.source.sentence.pieces)
        np.testing.assert_allclose(row[:size, :size], pair.source.attention, atol=1e-5)
    capsys.readouterr()
    monkeypatch.chdir(tmp_path)
    [code] = read_codes(folder)
    # Nobody has taught the model where a sentence ends.
    exec(code.replace("A sentence .", sources[0]).replace("max(200, ", "max(50, "), {})
    expected = model.translate(sources[:1], decoding=Decoding(max_len=50))[0]
    assert capsys.readouterr().out[:50] == expected[:50]
    monkeypatch.setattr("syncattn_fairseq.inference.model.MAX_LEN", 1000)
    limit = next(line for line in code.splitlines() if line.startswith("most = "))
    for size in (0, 1, 32, 33, 64, 65, 200, 999):
        found = {"size": size}
        exec(limit, found)
        assert found["most"] == limit_length(size) + 2


def test_labels_become_source_factors(small_corpus, tmp_path):
    path = small_corpus.checkpoint("transformer_sh", source_label_dim=4)
    said = small_corpus.export(path, "ctranslate2", tmp_path / "out")
    assert "12 sentences have the same scores" in said
    translator = ctranslate2.Translator(str(tmp_path / "out"))
    targets = [["▁der"]] * 2
    one, two = translator.score_batch([["▁the￨det"], ["▁the￨nsubj"]], targets)
    assert one.log_probs != two.log_probs  # labels are read
    model = syncattn_fairseq.load(tmp_path / "out")
    with pytest.raises(DataError, match="source_parser"):
        model.translate(["the dog"])


def test_a_parser_gives_the_labels_that_an_export_reads(small_corpus, tmp_path, stanza_models):
    path = small_corpus.checkpoint("transformer_sh", source_label_dim=4)
    small_corpus.export(path, "ctranslate2", tmp_path / "out")
    model, other = (
        small_corpus.load(where, data_bin=data, source_parser=f"stanza:en:{stanza_models}")
        for where, data in ((path, small_corpus.data), (tmp_path / "out", None))
    )
    sources, targets = small_corpus.lines("test.en"), small_corpus.lines("test.de")
    aligned = model.align(sources, targets), other.align(sources, targets)
    for one, two in zip(*aligned, strict=True):
        np.testing.assert_allclose(two.attention, one.attention, atol=1e-5)
    other.parser = lambda words: [None] * len(words)
    for one, two in zip(aligned[0], other.align(sources, targets), strict=True):
        assert not np.allclose(one.attention, two.attention, atol=1e-4)
    found = other.translate(["the dog", ""], decoding=Decoding(max_len=2))
    assert [each.unparsed for each in found] == [True, False]


@pytest.mark.parametrize(
    ("format", "arch", "options", "reason"),
    [
        ("ctranslate2", "transformer_lpsi", {}, "LPSI"),
        (
            "fairseq",
            "syntax_transformer",
            {"positions": "alibi"},
            "fairseq's Transformer does not support --positions alibi",
        ),
    ],
)
def test_what_cannot_be_exported_is_refused(small_corpus, tmp_path, format, arch, options, reason):
    path = small_corpus.checkpoint(arch, **options)
    with pytest.raises(DataError, match=f"^{path}: cannot be exported: .*{reason}"):
        small_corpus.export(path, format, tmp_path / "out")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("format", "options"),
    [
        ("fairseq", {"positions": "none"}),
        ("ctranslate2", {"layernorm_embedding": True, **PRE_NORM}),
        ("ctranslate2", {"decoder_learned_pos": True, "encoder_learned_pos": True}),
        ("ctranslate2", {"activation_fn": "gelu", "no_scale_embedding": True}),
        ("ctranslate2", UNSHARED),
        ("transformers", UNSHARED),
        ("transformers", {"share_all_embeddings": False, "share_decoder_input_output_embed": True}),
    ],
)
def test_what_a_format_has_scores_the_same(small_corpus, tmp_path, format, options):
    path = small_corpus.checkpoint("transformer_dbsa", **options)
    said = small_corpus.export(path, format, tmp_path / "out")
    difference = said.removeprefix("12 sentences have the same scores to ")
    assert float(difference.removesuffix(" nats per token")) < 1e-6


def test_an_export_that_scores_otherwise_is_not_kept(small_corpus, tmp_path, monkeypatch):
    truth = check.target_scores
    monkeypatch.setattr(check, "target_scores", lambda *args: [x + 1 for x in truth(*args)])
    with pytest.raises(DataError, match="the exported model differs from the checkpoint"):
        small_corpus.export(small_corpus.trained(), "ctranslate2", tmp_path / "out")
    assert not [*tmp_path.iterdir()]


def test_what_a_killed_export_left_is_removed(small_corpus, tmp_path):
    def begin() -> None:
        with making(tmp_path / "out") as folder:
            (folder / "model.bin").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    assert fork(begin) == -signal.SIGKILL
    assert len([*tmp_path.iterdir()]) == 1
    small_corpus.export(small_corpus.trained(), "fairseq", tmp_path / "out")
    assert [*tmp_path.iterdir()] == [tmp_path / "out"]


def test_int8_is_near_and_small(small_corpus, tmp_path):
    path, sizes = small_corpus.checkpoint("transformer_dbsa"), []
    for quantization in (None, "int8"):
        folder = tmp_path / str(quantization)
        small_corpus.export(path, "ctranslate2", folder, quantization=quantization)
        sizes.append((folder / "model.bin").stat().st_size)
    whole, small = sizes
    assert small < 0.8 * whole
    with pytest.raises(
        DataError, match="--quantization int9: --format ctranslate2 supports int8, int8_float32, "
    ):
        small_corpus.export(path, "ctranslate2", tmp_path / "x", quantization="int9")
    with pytest.raises(DataError, match="--quantization int8: --format fairseq supports none"):
        small_corpus.export(path, "fairseq", tmp_path / "x", quantization="int8")


def test_a_folder_that_is_there_is_left_alone(small_corpus, tmp_path):
    with pytest.raises(DataError, match="already exists"):
        export("no.pt", small_corpus.data, "fairseq", tmp_path)
