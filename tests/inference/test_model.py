import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import syncattn_fairseq
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.cli import translate
from syncattn_fairseq.inference import Decoding
from tests.checkpoints import Corpus, change_checkpoint
from tests.importing import run_program


@pytest.fixture(scope="module")
def path(small_corpus: Corpus) -> Path:
    return small_corpus.trained()


@pytest.fixture(scope="module")
def model(small_corpus: Corpus, path: Path) -> Any:
    return small_corpus.load(path)


@pytest.fixture
def command(small_corpus: Corpus, path: Path) -> list[str]:
    options = [f"--path={path}", f"--data-bin={small_corpus.data}"]
    return [*options, f"--subwords={small_corpus.subwords}", "--device=cpu"]


def test_what_is_learned_comes_out_in_order(small_corpus, model):
    sources = small_corpus.learned()
    sources = ["", *reversed(sources), ""]
    gold = dict(zip(small_corpus.lines("test.en"), small_corpus.lines("test.de"), strict=True))
    found = model.translate(sources)
    assert found[0] == found[-1] == ""
    right = sum(
        gold[source] == line for source, line in zip(sources[1:-1], found[1:-1], strict=True)
    )
    assert right >= 3  # most of them by heart
    assert found == [line for source in sources for line in model.translate([source])]
    assert found[1].sentence.pieces and found[1].score < 0


def test_batches_change_nothing(small_corpus, model):
    sources, targets = small_corpus.lines("test.en"), small_corpus.lines("test.de")
    whole = model.parse(sources, targets), model.align(sources, targets)
    small = Decoding(batch_size=2)
    parts = (
        model.parse(sources, targets, decoding=small),
        model.align(sources, targets, decoding=small),
    )
    for one, two in zip(*(parses for parses, _ in (whole, parts)), strict=True):
        np.testing.assert_allclose(one.source.attention, two.source.attention, atol=1e-5)
        np.testing.assert_allclose(one.target.attention, two.target.attention, atol=1e-5)
    for one, two in zip(*(links for _, links in (whole, parts)), strict=True):
        np.testing.assert_allclose(one.attention, two.attention, atol=1e-5)
        assert one.source.words and str(one) == str(two)


def test_parses_are_of_the_words_that_went_in(small_corpus, model):
    sources, targets = small_corpus.lines("test.en"), small_corpus.lines("test.de")
    for source, target, pair in zip(sources, targets, model.parse(sources, targets), strict=True):
        assert pair.translation == target
        assert pair.source.sentence.words == source.split()
        assert len(pair.source.heads) == len(source.split())
        assert len(pair.target.tree) == len(target.split())
    assert model.parse([""])[0].source.heads == []


def test_words_stay_as_they_are(model):
    [pair] = model.parse(["a ẞß word"])
    assert pair.source.sentence.words == ["a", "ẞß", "word"], "one is unknown"
    [alignment] = model.align(["the a▁b"], ["der ▁"])  # but for the mark of pieces
    assert alignment.source.words == ["the", "a_b"] and alignment.target.words == ["der", "_"]


def test_a_layer_can_be_chosen(small_corpus, model):
    sources, targets = small_corpus.lines("test.en")[:2], small_corpus.lines("test.de")[:2]
    by_layer = [model.align(sources, targets, layer=n)[0].attention for n in (1, 2, 3)]
    default = model.align(sources, targets)[0].attention
    np.testing.assert_allclose(default, by_layer[1], atol=1e-6)  # the sync layer, 2 of 3
    assert not np.allclose(default, by_layer[2])
    with pytest.raises(DataError, match="no layer 4; the decoder has layers 1 to 3"):
        model.align(sources, targets, layer=4)


def test_distances_make_trees(small_corpus):
    path = small_corpus.checkpoint("transformer_lpsi", gate_temperature=2.0)
    [pair] = small_corpus.load(path).distances(["the dog sees a cat ."], ["der Hund sieht ."])
    assert [*pair.source.layers] == [1, 2]
    assert len(pair.source.layers[1]) == len(pair.source.sentence.pieces)
    assert len(pair.source.of_words()) == 6
    assert pair.source.temperature == pair.target.temperature == 2.0
    assert [*pair.target.tree(1).leaves()] == ["der", "Hund", "sieht", "."]
    assert str(pair.target.tree(1)).startswith("(X ")
    with pytest.raises(
        DataError, match="layer 3 has no syntactic distances; choose from the layers 1, 2"
    ):
        pair.source.tree(3)


@pytest.mark.parametrize(
    ("arch", "call", "sides"),
    [
        ("transformer_lpsi", "distances", [True, True]),
        ("transformer_syncattn", "parse", [True, True]),
        ("transformer_lisa", "parse", [True, False]),
        ("transformer_lisa", "distances", None),
        ("transformer_syncattn", "distances", None),
        ("transformer_lpsi", "parse", None),
    ],
)
def test_an_empty_sentence_has_what_others_have(small_corpus, arch, call, sides):
    model = small_corpus.load(small_corpus.checkpoint(arch))
    for sentences in ([""], ["the dog", ""]):
        if sides is None:
            lack = {"parse": "has no dependency heads", "distances": "measures no syntactic dist"}
            with pytest.raises(DataError, match=f"the model {lack[call]}"):
                getattr(model, call)(sentences)
            continue
        for pair in getattr(model, call)(sentences):
            assert [found is not None for found in (pair.source, pair.target)] == sides
        assert not pair.source.sentence.pieces
        assert not (pair.source.tree() if call == "distances" else pair.source.tree)


def test_what_is_no_list_of_texts_is_refused(model):
    for wrong in ("the dog", ["the dog", None]):
        with pytest.raises(TypeError, match="expected a list of sentences, got "):
            model.translate(wrong)
        with pytest.raises(TypeError, match="expected a list of translations, got "):
            model.parse(["the dog", "a cat"], wrong)
    assert len(model.parse(iter(["the dog", "a cat"]))) == 2


def test_half_of_a_character_is_refused(model):
    """Texts of web clients are cut in the middle of an emoji."""
    half = "the \ud83d dog"
    for sentences, translations, place in (
        (["a cat", half], None, "sentence 2"),
        (["a cat"], [half], "translation 1"),
    ):
        with pytest.raises(DataError, match=f"^{place}: not UTF-8: .*'the .ud83d dog'; give whole"):
            model.align(sentences, translations)
    with pytest.raises(DataError, match="^sentence 1: not UTF-8"):
        model.source_segmenter([half])


@pytest.mark.parametrize("name", ["beam", "batch_size", "max_len", "max_source"])
@pytest.mark.parametrize("value", [0, -1, "5", 2.0, True, 10**9])
def test_impossible_sizes_are_refused(name, value):
    fault = f"^{name} {value!r}: give a whole number from 1 to 999,999,999$"
    with pytest.raises(DataError, match=fault):
        Decoding(**{name: value})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1", None, True, 11, -1e300])
def test_impossible_penalties_are_refused(value):
    fault = f"^length_penalty {re.escape(repr(value))}: give a number from -10 to 10$"
    with pytest.raises(DataError, match=fault):
        Decoding(length_penalty=value)


def test_numbers_that_nobody_can_read_are_not_shown():
    for name in ("beam", "length_penalty"):
        with pytest.raises(DataError, match=f"^{name} of thousands of digits: give a "):
            Decoding(**{name: 10**5000})


def test_a_long_source_stops_the_search_or_stays_empty():
    with pytest.raises(DataError, match="^too_long 'skip': choose one of stop, empty$"):
        Decoding(too_long="skip")


@pytest.fixture
def own_plugin(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a plugin, where we are, and ``model.pt``, which was trained with it."""
    monkeypatch.chdir(tmp_path)
    train_with(path, Path("own_plugin_of_a_test"))
    return tmp_path


def train_with(path: Path, plugin: Path, code: str = "") -> None:
    """Write a plugin, and ``model.pt`` as if that had been trained with it."""
    state = torch.load(path, weights_only=False)
    state["cfg"]["common"]["user_dir"] = str(plugin)
    torch.save(state, "model.pt")
    plugin.mkdir(parents=True)
    (plugin / "__init__.py").write_text(code)


def test_a_plugin_is_imported_if_the_caller_names_it(small_corpus, own_plugin):
    with pytest.raises(DataError, match=r"model.pt: .* plugin 'own_plugin_of_a_test', which"):
        small_corpus.load("model.pt")
    assert "own_plugin_of_a_test" not in sys.modules
    for missing, reason in (
        ("nowhere", "^--user-dir nowhere: "),
        (Path("model.pt"), "^--user-dir model.pt: "),
        (own_plugin, r"--user-dir .*: has no __init__\.py"),
    ):
        with pytest.raises(DataError, match=reason):
            small_corpus.load("model.pt", user_dir=missing)
    (own_plugin / "own_plugin_of_a_test").rename(own_plugin / "moved_plugin_of_a_test")
    small_corpus.load("model.pt", user_dir=own_plugin / "moved_plugin_of_a_test")
    assert "moved_plugin_of_a_test" in sys.modules
    sys.modules["own_plugin_of_a_test"] = sys.modules.pop("moved_plugin_of_a_test")
    try:  # as if a program had imported it itself
        small_corpus.load("model.pt")
    finally:
        del sys.modules["own_plugin_of_a_test"]


def test_this_package_is_no_foreign_plugin(small_corpus, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train_with(path, Path("nowhere/syncattn_fairseq"), "raise SystemExit('imported')\n")
    small_corpus.load("model.pt")


def test_an_ensemble_agrees_with_itself(small_corpus, path, model):
    both, sources = small_corpus.load(f"{path}:{path}"), small_corpus.learned()
    assert both.translate(sources) == model.translate(sources)


def test_a_model_that_reads_parses_needs_a_parser(small_corpus, caplog):
    pascal = small_corpus.checkpoint("transformer_pascal")
    with pytest.raises(DataError, match="name a parser, as in source_parser='stanza:en'"):
        small_corpus.load(pascal).translate(["the dog"])
    with pytest.raises(DataError, match="'nobody' is not a parser"):
        small_corpus.load(pascal, source_parser="nobody")
    model = small_corpus.load(pascal, source_parser="random:1")
    sources = ["the dog", "the " * 501]  # more words than are parsed
    translations = model.translate(sources, decoding=Decoding(max_len=2))
    assert [each.unparsed for each in translations] == [False, True]
    assert (
        "sentence 2: translated without a parse, although the model reads parses: 1 of 2"
        in caplog.text
    )


def test_a_parser_parses_what_the_model_reads(small_corpus, stanza_models):
    path = small_corpus.checkpoint("transformer_sh", source_label_dim=8, pascal_layers="1")
    reading = small_corpus.load(path, source_parser=f"stanza:en:{stanza_models}")
    sources, targets = small_corpus.lines("test.en"), small_corpus.lines("test.de")
    with_parses = reading.align(sources, targets)
    reading.task.input_parses.parser = lambda words: [None] * len(words)
    for one, other in zip(with_parses, reading.align(sources, targets), strict=True):
        assert not np.allclose(one.attention, other.attention, atol=1e-4)


def test_one_head_aligns(small_corpus, model):
    sources, targets = small_corpus.lines("test.en")[:3], small_corpus.lines("test.de")[:3]
    for layer in (None, 1):
        means = model.align(sources, targets, layer=layer)
        heads = [model.align(sources, targets, layer=layer, head=n) for n in range(1, 5)]
        for mean, *alone in zip(means, *heads, strict=True):
            parts = np.stack([alignment.attention for alignment in alone])
            np.testing.assert_allclose(parts.mean(0), mean.attention, atol=1e-6)
            assert not np.allclose(parts[0], parts[1], atol=1e-3)
        for mean, again in zip(means, model.align(sources, targets, layer=layer), strict=True):
            np.testing.assert_array_equal(mean.attention, again.attention)
    with pytest.raises(DataError, match="a decoder layer has the heads 1 to 4"):
        model.align(sources, targets, head=5)
    with pytest.raises(DataError, match="^sentence 1: 2000 subwords, but the model reads at most"):
        model.align(["a " * 2000], ["a"], head=1)


def test_subwords_are_marked_as_was_stored_beside_the_data(small_corpus, own_data, tmp_path):
    """Words may begin as sentencepiece's pieces do; what the corpus says of itself counts."""
    path = small_corpus.checkpoint("transformer_dbsa")
    path = change_checkpoint(path, tmp_path / "earlier.pt", task_state={})
    (own_data / "subwords.json").write_text('{"de": "none", "en": "none"}\n', encoding="utf-8")
    (own_data / "fingerprint.json").unlink()
    model = small_corpus.load(path, data_bin=own_data, subwords=None)
    [alignment] = model.align(["▁the ▁dog s"], ["▁der ▁H und"])
    assert alignment.source.words == ["▁the", "▁dog", "s"]
    assert alignment.attention.shape == (3, 3)
    with pytest.raises(DataError, match="sentencepiece, but the text of en marks them as none"):
        small_corpus.load(path, data_bin=own_data)


def test_what_is_wrong_is_one_line(small_corpus, path, model, tmp_path):
    def fails(reason: str, *args: Any, **options: Any) -> None:
        with pytest.raises((DataError, OSError), match=reason) as failed:
            syncattn_fairseq.load(*args, **options)
        assert "\n" not in str(failed.value)

    data, subwords = small_corpus.data, small_corpus.subwords
    fails("No such file", tmp_path / "none.pt", data)
    fails("not a model", tmp_path)
    fails("PyTorch cannot load the file", subwords, data)
    fails("no dictionaries", path, tmp_path)
    fails("none: no such folder", path, tmp_path / "none")
    state = torch.load(path, weights_only=False)
    state["cfg"]["task"]["source_lang"] = None
    torch.save(state, tmp_path / "unnamed.pt")
    for dictionary in data.glob("dict.??.txt"):
        shutil.copy(dictionary, tmp_path)
    fails("the checkpoint does not name its languages", tmp_path / "unnamed.pt", tmp_path)
    fails("its folder has no subword model; name the", path, data)
    fails("not a sentencepiece model", path, data, subwords=_file(tmp_path, b"\nnothing"))
    codes = _file(tmp_path, b"#version: 0.2\ne r\n")
    fails("marks subwords as subword_nmt", path, data, subwords=codes)
    fails("3 subword models", path, data, subwords=[subwords] * 3)
    for device in ("gpu", "cuda:99", "meta"):
        fails(f"^device {device}: PyTorch cannot use it", "none.pt", data, device=device)
    with pytest.raises(DataError, match="1 translations for 2 sentences"):
        model.align(["a", "b"], ["c"])
    with pytest.raises(DataError, match="the model reads at most 1023"):
        model.translate(["word " * 1100])


def _file(folder: Path, content: bytes) -> Path:
    path = folder / "file"
    path.write_bytes(content)
    return path


def test_the_command_prints_translations_and_nothing_else(
    small_corpus, command, model, tmp_path, capfd
):
    text = tmp_path / "text"
    sources = [*small_corpus.learned(), ""]
    text.write_text("\n".join(sources) + "\n", encoding="utf-8")
    command.append(f"--input={text}")
    translations = model.translate(sources)
    parses, links = model.parse(sources, translations), model.align(sources, translations)
    of_a_head = model.align(sources, translations, head=2)
    of_a_layer = model.align(sources, translations, layer=1)
    for other in (of_a_head, of_a_layer):
        assert [str(found) for found in other] != [str(found) for found in links]
    capfd.readouterr()

    assert translate.main(command) == 0
    out, warning = capfd.readouterr()
    assert out == "".join(f"{line}\n" for line in translations)
    assert warning.startswith("warning: 4 subwords of the text are not in the model's dictionary")
    for options, alignments in (
        ("--alignments --batch-size=2", links),
        ("--alignments --alignment-head=2", of_a_head),
        ("--alignments --alignment-layer=1", of_a_layer),
    ):
        assert translate.main([*command, *options.split()]) == 0
        rows = zip(translations, alignments, strict=True)
        assert capfd.readouterr().out == "".join(f"{line}\t{found}\n" for line, found in rows)

    assert translate.main([*command, "--parses"]) == 0
    printed = capfd.readouterr().out
    for side in ("source", "translation"):
        assert printed.count(f"# side = {side}\n") == len(sources)
    assert printed.startswith("# side = source\n" + parses[0].source.conllu())

    assert translate.main([*command[:2], f"--input={text}"]) == 1
    assert capfd.readouterr().err.startswith("error: the model reads and writes subwords")


def test_text_in_subwords_names_its_line(command, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(translate, "_LINES", 20)
    text = tmp_path / "l.en"
    text.write_text("the man\n" * 21 + "▁the ▁man\n", encoding="utf-8")
    assert translate.main([*command, f"--input={text}", "--max-len=1", "--beam=1"]) == 1
    assert (
        f"error: {text}:22: the text is in subwords already ('▁the ▁man'); "
        in capfd.readouterr().err
    )


def test_a_line_that_is_too_long_stops_no_others(small_corpus, command, model, tmp_path, capfd):
    text = tmp_path / "l.en"
    sources = small_corpus.learned()[:3]
    lines = [*sources[:2], "the " * 1100, sources[2], "the " * 1024]
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command.append(f"--input={text}")
    expected = [f"{line}\n" for line in model.translate(sources)]
    reason = f"error: {text}:3: 1100 subwords, but the model reads at most 1023; "

    assert translate.main(command) == 1
    output = capfd.readouterr()
    assert output.out == "".join(expected[:2])
    assert output.err.splitlines()[-1] == f"{reason}split the line, or use --too-long empty"

    assert translate.main([*command, "--too-long=empty", "--max-len=2"]) == 1
    output = capfd.readouterr()
    assert [bool(line) for line in output.out.split("\n")[:-1]] == [True, True, False, True, False]
    cut, _, error = output.err.splitlines(keepends=True)
    assert cut.startswith(f"warning: {text}:1: the search reached the largest number of subwords")
    assert cut.endswith("3 of 5 lines; this is the first of them\n")
    assert error == f"{reason}2 of 5 lines have no translation, of which this is the first\n"


@pytest.mark.parametrize(
    ("option", "attribute", "value"), [("beam", "beam", 1), ("lenpen", "length_penalty", -3.0)]
)
def test_the_command_hands_on_how_to_search(
    small_corpus, command, model, capfd, option, attribute, value
):
    command.append(f"--input={small_corpus.folder / 'words' / 'test.en'}")
    usual = model.translate(small_corpus.lines("test.en"))
    search = Decoding(**{attribute: value})
    expected = model.translate(small_corpus.lines("test.en"), decoding=search)
    assert expected != usual
    capfd.readouterr()
    assert translate.main([*command, f"--{option}={value}"]) == 0
    assert capfd.readouterr().out.splitlines() == expected


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--lenpen=nan", "--lenpen: 'nan' is not a number"),
        ("--lenpen=inf", "--lenpen: 'inf' is not a number"),
        ("--alignment-layer=99", "--alignment-layer needs --alignments"),
        ("--alignment-head=1", "--alignment-head needs --alignments or --jsonl"),
        ("--every-layer", "--every-layer needs --jsonl"),
        ("--force=f", "--force needs --jsonl, and --input FILE with as many lines"),
    ],
)
def test_the_command_refuses_options(capsys, option, message):
    with pytest.raises(SystemExit):
        translate.main(["--path=none.pt", option])
    assert message in capsys.readouterr().err


SHIPPED = """
import sys
import syncattn_fairseq
from syncattn_fairseq.inference import Decoding
path, data, subwords = sys.argv[1:]
model = syncattn_fairseq.load(path, data, subwords)
for found in model.translate(["the dog", "the dog sees a cat . " * 7], decoding=Decoding(beam=1)):
    print(len(found.sentence.pieces), found.cut)
print(model.info()["longest_translation"])
"""


def test_the_limit_that_is_shipped(small_corpus):
    """Other tests have a lower one; see conftest.py."""
    path = small_corpus.checkpoint("transformer_syncattn")
    done = run_program(SHIPPED, str(path), str(small_corpus.data), str(small_corpus.subwords))
    assert done.stdout.splitlines() == ["200 True", "256 True", "1000"], done.stderr
