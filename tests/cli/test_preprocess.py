"""`syncattn-preprocess`: text, heads and labels in one call, or one line on what is wrong."""

import bz2
import codecs
import gzip
import os
import shutil
import threading
from pathlib import Path

import pytest
from fairseq.data.indexed_dataset import MMapIndexedDataset

from syncattn_fairseq.cli import preprocess
from syncattn_fairseq.data import links as links_of_words
from syncattn_fairseq.data import preprocess_texts as preprocessing
from syncattn_fairseq.data.preparation import stored_schemes

FILES = {
    "bpe/train.en": "the ob@@ ser@@ ver sleeps\n\nshe r@@ uns\nhe sees\n",
    "bpe/train.de": "▁der ▁be ob achter ▁schläft\n▁\u00a0 ▁nichts\n▁sie ▁läuft\n▁er ▁ sieht\n",
    "bpe/valid.en": "she sleeps\n",
    "bpe/valid.de": "▁sie ▁schläft\n",
    "bpe/dev.en": "the ob@@ ser@@ ver\n",
    "bpe/dev.de": "▁der ▁be ob achter\n",
    "words/train.en": "the observer sleeps\n\nshe runs\nhe sees\n",
    "words/train.heads.en": "2 3 0\n\n\n2 0\n",
    "words/train.heads.de": "2 3 0\n0\n2 0\n2 0\n",
    "words/valid.heads.en": "2 0\n",
    "words/valid.heads.de": "2 0\n",
    "words/dev.heads.en": "2 0\n",
}
MARKS = {
    "train.heads.en-de.en": [[2, 3, -1, -1, 0], [], [-2, -2, -1], [2, 0]],
    "train.heads.en-de.de": [[2, 3, -1, -1, 0], [0, -1], [2, 0], [2, 0, -1]],
    "valid.heads.en-de.en": [[2, 0]],
    "valid.heads.en-de.de": [[2, 0]],
    "valid1.heads.en-de.en": [[2, 0, -1, -1]],
}
LABELS = {
    "words/train.labels.en": "det nsubj root\n\n\nnsubj root\n",
    "words/dev.labels.en": "det iobj\n",
    "words/train.labels.de": "det nsubj root\nroot\n\nb a\n",
    "words/valid.labels.de": "a b\n",
}
INDICES = {
    "train.labels.en-de.en": [[6, 4, -1, -1, 5], [], [-2, -2, -1], [4, 5]],
    "train.labels.en-de.de": [[7, 8, -1, -1, 4], [4, -1], [-2, -2], [6, 5, -1]],
    "valid.labels.en-de.de": [[5, 6]],
    "valid1.labels.en-de.en": [[6, 3, -1, -1]],
}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


def arguments(corpus: Path, *more: str) -> list[str]:
    return [
        *("--source-lang", "en", "--target-lang", "de", "--destdir", f"{corpus}/bin"),
        *("--trainpref", f"{corpus}/bpe/train", "--trainheads", f"{corpus}/words/train"),
        *("--validpref", f"{corpus}/bpe/valid,{corpus}/bpe/dev"),
        *("--validheads", f"{corpus}/words/valid,{corpus}/words/dev"),
        *more,
    ]


def later(folder: str, corpus: Path, *more: str) -> list[str]:
    """Arguments for a later test set, with the dictionaries of the first run."""
    made = corpus / "bin"
    return [
        *("--source-lang=en", "--target-lang=de", f"--destdir={corpus / folder}"),
        *(f"--testpref={corpus}/bpe/new", f"--testheads={corpus}/words/new"),
        *(f"--srcdict={made}/dict.en.txt", f"--tgtdict={made}/dict.de.txt", *more),
    ]


def write(corpus: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = corpus / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")


def read(folder: Path) -> dict[str, list[list[int]]]:
    """Read the marks that were written, and check that the text beside them is as long."""
    found = {}
    for index in sorted([*folder.glob("*.heads.*.idx"), *folder.glob("*.labels.*.idx")]):
        marks = MMapIndexedDataset(str(index.with_suffix("")))
        split, _, side = index.stem.split(".", 2)
        text = MMapIndexedDataset(str(folder / f"{split}.{side}"))
        assert (text.sizes == marks.sizes + 1).all()
        found[index.stem] = [marks[number].tolist() for number in range(len(marks))]
    return found


def refuse(corpus: Path, capfd: pytest.CaptureFixture[str], *more: str) -> str:
    """Return the line of a run that writes nothing."""
    assert preprocess.main(arguments(corpus, *more)) == 1
    error = capfd.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1
    assert not (corpus / "bin").exists()
    return error


def test_the_command_writes_text_and_heads(corpus, capsys):
    assert preprocess.main(arguments(corpus, "--joined-dictionary", "--workers", "2")) == 0
    assert read(corpus / "bin") == MARKS
    assert not [path for path in (corpus / "bin").iterdir() if path.suffix == ".tmp"]
    lines = capsys.readouterr().out.splitlines()
    assert {"subwords of en: subword_nmt", "subwords of de: sentencepiece"} <= set(lines)
    assert (
        f"valid1 de: binarised without heads, since there is no {corpus}/words/dev.heads.de"
        in lines
    )
    assert (
        f"{corpus}/bin/train.heads.en-de.en: 4 sentences, 7 words, 10 subwords, "
        "1 without parse, 0 parses dropped" in lines
    )


BREAKS: dict[str, tuple[dict[str, str | bytes | None], str]] = {
    "root": ({"words/valid.heads.de": "2 1\n"}, "words/valid.heads.de:1: 0 words have head 0"),
    "format": ({"words/dev.heads.en": "two 0\n"}, "dev.heads.en:1: expected one integer per word"),
    "sides": ({"bpe/valid.de": "▁a\n▁b\n"}, "valid.de:1: the file has 2 lines, but"),
    "subwords": ({"bpe/dev.en": "the ob@@ ▁server\n"}, "choose one with --subword-marks"),
    "CR": (
        {"bpe/dev.en": b"the ob@@\rserver\n"},
        "dev.en:1: the line has the character U+000D inside",
    ),
    "CR CR": (
        {"bpe/train.de": b"a\n\r\r\n\n\n"},
        "train.de:2: the line has the character U+000D inside",
    ),
    "control": (
        {"bpe/dev.de": "the ob@@\x01server\n"},
        "dev.de:1: the line has the character U+0001",
    ),
    "unseen": (
        {"bpe/train.en": "a\n\u200b\n"},
        "train.en:2: the line has only invisible characters",
    ),
    "symbol": (
        {"bpe/dev.de": "a </s> b\n"},
        "dev.de:1: the line has the word </s>, which is a special",
    ),
    "utf-8": ({"bpe/dev.en": b"the \xff\n"}, "dev.en:1: not UTF-8"),
    "no text": ({"bpe/dev.de": None}, "bpe/dev.de: no such file; check --validpref"),
    "no heads": ({"words/dev.heads.en": None}, "words/dev.align: no such file"),
    "lines of labels": (
        {"words/train.labels.de": "a b c\n"},
        "train.labels.de:1: the file has 1 lines",
    ),
    "utf-8 of labels": ({"words/train.labels.en": b"\n\n\xff\n\n"}, "train.labels.en:3: not UTF-8"),
    "no dictionary": (
        {"words/valid.labels.en": "a b\n"},
        "valid.labels.en: these labels need a dictionary; name the dictionary with --srclabeldict",
    ),
    "no dictionary of the target": ({"words/valid.labels.de": "a b\n"}, "with --tgtlabeldict"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_fault_stops_before_anything_is_written(corpus, capfd, name):
    changes, message = BREAKS[name]
    for path, content in changes.items():
        if content is None:
            (corpus / path).unlink()
        else:
            (corpus / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message in refuse(corpus, capfd)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--validheads a", "--validpref names 2 prefixes, but --validheads 1"),
        ("--testheads a", "--testheads needs --testpref"),
        ("--dataset-impl raw", "--dataset-impl: heads and labels need the value mmap"),
        ("--trainheads= --validheads=", "; for text without parses, use fairseq-preprocess"),
        ("--srclabeldict d", "--srclabeldict: found no labels for en"),
        ("--srcdict {0}/d --tgtdict {0}/d --joined-dictionary", "cannot use both"),
        ("--add heads.en heads.fr", "--add heads.fr: no such file; check --trainheads"),
        ("--workers=0", "--workers 0: give 1 or more"),
        ("--workers=-1", "--workers -1: give 1 or more"),
    ],
)
def test_options_that_do_not_fit(corpus, capfd, more, message):
    write(corpus, {"d": "a 1\n"})
    assert message in refuse(corpus, capfd, *more.format(corpus).split())


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "marked", "pipe"])
def test_heads_and_words_of_all_kinds(corpus, kind):
    write(corpus, LABELS)
    writers = []
    for path in (corpus / "words").iterdir():
        content = path.read_bytes()
        path.unlink()
        match kind:
            case "gzip":
                path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(content))
            case "bzip2":
                path.with_name(f"{path.name}.bz2").write_bytes(bz2.compress(content))
            case "marked":
                path.write_bytes(codecs.BOM_UTF8 + content)
            case "pipe":
                os.mkfifo(path)
                writers.append(
                    threading.Thread(target=path.write_bytes, args=(content,), daemon=True)
                )
                writers[-1].start()
    assert preprocess.main(arguments(corpus)) == 0
    assert read(corpus / "bin") == {**MARKS, **INDICES}
    for writer in writers:
        writer.join(timeout=30)
        assert not writer.is_alive()


@pytest.mark.parametrize("kind", ["gzip", "marked", "pipe"])
@pytest.mark.parametrize("name", ["bpe/train.en", "bpe/dev.de", "d"])
@pytest.mark.parametrize("more", [[], ["--dict-only"]])
def test_what_fairseq_itself_reads_is_plain_text(corpus, capfd, kind, name, more):
    write(corpus, {"d": "a 1\n"})
    path = corpus / name
    content = path.read_bytes()
    path.unlink()
    if kind == "gzip":
        path = path.with_name(f"{path.name}.gz")
        path.write_bytes(gzip.compress(content))
    elif kind == "marked":
        path.write_bytes(codecs.BOM_UTF8 + content)
    else:
        os.mkfifo(path)
    error = refuse(corpus, capfd, *more, *([f"--srcdict={path}"] if name == "d" else []))
    assert error.startswith(
        f"error: {path}: is compressed, a pipe, or begins with a byte order mark"
    )


def test_what_is_read_is_not_replaced(corpus, capsys):
    made = corpus / "bin" / "train.heads.en-de.en.idx"
    made.parent.mkdir()
    heads = corpus / "words" / "train.heads.en"
    made.symlink_to(heads)
    assert preprocess.main(arguments(corpus)) == 1
    error = capsys.readouterr().err
    assert error.splitlines()[-1].startswith(f"error: {made}: this output is also an input")
    assert made.is_symlink() and list(made.parent.iterdir()) == [made]
    assert heads.read_text() == FILES["words/train.heads.en"]


def test_drop_and_run_again(corpus, capsys):
    heads = corpus / "words" / "train.heads.en"
    heads.write_text("2 3 0\n\n0 0\n3 0\n")
    assert preprocess.main(arguments(corpus, "--on-bad-parse", "drop")) == 0
    without = [[2, 3, -1, -1, 0], [], [-2, -2, -1], [-2, -2]]
    assert read(corpus / "bin") == {**MARKS, "train.heads.en-de.en": without}
    assert "2 parses dropped (1 several roots, 1 head out of range)" in capsys.readouterr().out

    # fairseq refuses to replace a dictionary: what was written stays as it was.
    heads.write_text(FILES["words/train.heads.en"])
    assert preprocess.main(arguments(corpus)) == 1
    assert "bin/dict.en.txt: exists already" in capsys.readouterr().err
    assert read(corpus / "bin")["train.heads.en-de.en"] == without

    # With its own dictionaries it does: no heads of the first run stay beside the new text.
    heads.unlink()
    more = [f"--srcdict={corpus}/bin/dict.en.txt", f"--tgtdict={corpus}/bin/dict.de.txt"]
    assert preprocess.main(arguments(corpus, *more)) == 0
    assert read(corpus / "bin") == {k: v for k, v in MARKS.items() if k != "train.heads.en-de.en"}
    assert not list((corpus / "bin").glob("train.heads.en-de.en.*"))


@pytest.mark.parametrize("option", ["srcdict", "tgtdict"])
@pytest.mark.parametrize("more", [[], ["--dict-only"]])
@pytest.mark.parametrize(
    ("content", "message"),
    [(b"a 1\n\xff 1\n", ":2: not UTF-8"), (b"a b\n", ": Incorrect dictionary format")],
)
def test_a_dictionary_that_is_none(corpus, capfd, option, more, content, message):
    (corpus / "d").write_bytes(content)
    error = refuse(corpus, capfd, f"--{option}={corpus}/d", *more)
    assert error.startswith(f"error: {corpus}/d{message}")


def test_no_temporary_folder_is_named(corpus, capsys, caplog):
    caplog.set_level("INFO")
    assert preprocess.main(arguments(corpus)) == 0
    said = caplog.text + "".join(capsys.readouterr())
    assert "Wrote preprocessed data" not in said and "Dictionary: " in said
    assert f"{corpus}/bin: the binarised text and its dictionaries\n" in said


def test_words_for_unknown_ones_are_counted(corpus, capsys):
    write(corpus, {"bpe/dev.en": "the <unk>\r\n"})
    assert preprocess.main(arguments(corpus)) == 0
    assert (
        f"{corpus}/bpe/dev.en: 1 lines have <unk>, which fairseq reads" in capsys.readouterr().out
    )


def test_what_is_wrong_with_the_texts_is_said(corpus, capsys):
    texts = {
        "train.en": "the ob@@ ser@@ ver sees six of the old men to@@ day\nb\n",
        "train.de": "▁der ▁x\n▁e\n",
        "valid.en": "The observer sees six of the old men today\n",
        "valid.de": "▁y\n",
        "dev.en": "c\n",
        "dev.de": "▁d\n",
    }
    write(corpus, {f"bpe/{name}": text for name, text in texts.items()})
    write(corpus, {"bpe/train.heads.de": "2 0\n0\n"})
    named = ["--source-lang=en", "--target-lang=de", f"--destdir={corpus}/bin"]
    named += [f"--trainpref={corpus}/bpe/train", f"--validpref={corpus}/bpe/dev,{corpus}/bpe/valid"]
    assert preprocess.main(named) == 0
    [warning] = capsys.readouterr().err.splitlines()
    assert warning.startswith(
        "warning: valid1: validation sentences are in the training text (1 of"
    )
    assert f"{corpus}/bpe/valid.en:1, which is {corpus}/bpe/train.en:1" in warning
    assert preprocess.main([*named, "--add", "heads.de"]) == 0
    assert "warning: " not in capsys.readouterr().err, "it was said before"


def test_only_dictionaries(corpus, capsys):
    handlers = [*preprocessing.preprocess.logger.handlers]  # of tests that call fairseq's command
    assert preprocess.main(arguments(corpus, "--dict-only")) == 0
    names = {path.name for path in (corpus / "bin").iterdir()}
    assert names == {"dict.en.txt", "dict.de.txt", "preprocess.log"}
    assert preprocess.main(arguments(corpus, "--dict-only")) == 1
    told = f"error: {corpus}/bin/dict.en.txt: exists already; choose another --destdir or remove it"
    assert capsys.readouterr().err.splitlines()[-1] == told
    assert preprocessing.preprocess.logger.handlers == handlers, "no log stays open"


def test_labels_beside_heads(corpus, capsys):
    write(corpus, LABELS)
    assert preprocess.main(arguments(corpus)) == 0
    assert read(corpus / "bin") == {**MARKS, **INDICES}
    assert (corpus / "bin/dict.labels.en.txt").read_text() == "nsubj 2\nroot 2\ndet 1\n"
    assert (corpus / "bin/dict.labels.de.txt").read_text() == "root 2\na 1\nb 1\ndet 1\nnsubj 1\n"
    lines = capsys.readouterr().out.splitlines()
    assert (
        f"valid en: binarised without labels, since there is no {corpus}/words/valid.labels.en"
        in lines
    )
    assert (
        f"{corpus}/bin/valid1.labels.en-de.en: 1 sentences, 2 words, 4 subwords, "
        "0 without parse, 0 parses dropped, 1 unknown labels" in lines
    )


def test_labels_without_heads(corpus):
    for heads in (corpus / "words").glob("*.heads.*"):
        heads.unlink()
    write(corpus, LABELS)
    assert preprocess.main(arguments(corpus)) == 0
    assert read(corpus / "bin") == INDICES


def test_what_is_added_changes_nothing_else(corpus):
    assert preprocess.main(arguments(corpus)) == 0
    before = {path.name: path.read_bytes() for path in (corpus / "bin").iterdir()}
    write(corpus, LABELS)
    for heads in (corpus / "words").glob("*.heads.*"):
        heads.write_text("0\n")  # not read
    assert preprocess.main(arguments(corpus, "--add", "labels.de")) == 0
    german = {name: marks for name, marks in INDICES.items() if name.endswith(".de")}
    assert read(corpus / "bin") == {**MARKS, **german}
    after = {path.name: path.read_bytes() for path in (corpus / "bin").iterdir()}
    changed = {name for name in before if after[name] != before[name]}
    assert changed == {"fingerprint.json"}


LINKS = {"words/train.align": "1-2 2-2 0?0\n\n0-1\n1-1\n", "words/valid.align": "0-1\n"}


def test_links_of_words_become_links_of_their_subwords(corpus, capfd):
    write(corpus, LINKS)
    made = {
        "train": [[1, 4, 2, 4, 3, 4, 4, 4], [], [0, 1], [1, 1, 1, 2]],
        "valid": [[0, 1]],
    }
    for more in ((), ("--add", "align")):
        assert preprocess.main(arguments(corpus, *more)) == 0
        for split, links in made.items():
            dataset = MMapIndexedDataset(f"{corpus}/bin/{split}.align.en-de")
            assert [dataset[number].tolist() for number in range(len(dataset))] == links
        assert not (corpus / "bin/valid1.align.en-de.idx").exists()
    assert "train.align.en-de: the links of" in capfd.readouterr().out


def test_links_can_be_without_heads(corpus):
    for heads in (corpus / "words").glob("*.heads.*"):
        heads.unlink()
    write(corpus, LINKS | {"words/dev.align": "0-0\n"})
    assert preprocess.main(arguments(corpus)) == 0
    names = {path.name for path in (corpus / "bin").glob("*.align.*")}
    splits = ("train", "valid", "valid1")
    assert names == {f"{s}.align.en-de.{kind}" for s in splits for kind in ("bin", "idx")}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            "0-0\n\n\n0:1\n",
            "train.align:4: '0:1' is not a link between two words; write 3-4 (a sure link), 3?4",
        ),
        ("26 2 1\n\n\n\n", "train.align:1: these are links in the format numbered (.wa)"),
        ("0-0\n\n2-0\n\n", "train.align:3: the link 2-0 is not between the 2 words of the source"),
        ("0-0\n", "train.align:1: the file has 1 lines, but"),
    ],
)
def test_links_that_do_not_fit_are_refused(corpus, capfd, lines, message):
    write(corpus, {"words/train.align": lines})
    assert message in refuse(corpus, capfd)


def test_training_links_that_count_from_one_are_refused_before_texts_are_binarised(
    corpus, capfd, monkeypatch
):
    """A few pairs can lack a 0 by chance."""
    write(corpus, {"words/train.align": "1-1:0.5\n\n\n1-1\n", "words/valid.align": "0-1\n"})
    assert preprocess.main(arguments(corpus)) == 0
    warning = "warning: {}: {} sentence pairs have links, but no link has the number 0"
    assert warning.format(f"{corpus}/words/train.align", 2) in capfd.readouterr().err
    shutil.rmtree(corpus / "bin")
    monkeypatch.setattr(links_of_words, "_MANY", 2)
    monkeypatch.setattr(preprocessing, "_binarise_texts", lambda args: pytest.fail("too late"))
    assert warning.format("train.align", 2)[9:] in refuse(corpus, capfd)


def test_parses_of_a_later_test_set_are_added_alone(corpus):
    write(corpus, LABELS)
    write(corpus, {"bpe/test.en": "a@@ b\nc\n", "bpe/test.de": "▁a\n▁b\n"})
    test = ["--testpref", f"{corpus}/bpe/test"]
    assert preprocess.main(arguments(corpus, *test)) == 0
    before = read(corpus / "bin")
    write(corpus, {"words/test.labels.en": "root\nnew\n", "words/test.heads.en": "0\n0\n"})
    test += [f"--testheads={corpus}/words/test", "--add", "heads.en", "labels.en"]
    made = {"test.heads.en-de.en": [[0, -1], [0]], "test.labels.en-de.en": [[5, -1], [3]]}
    alone = ["-s=en", "-t=de", f"--destdir={corpus}/bin", *test]
    for call in (alone, arguments(corpus, *test)):
        assert preprocess.main(call) == 0
        assert read(corpus / "bin") == {**before, **made}


@pytest.mark.parametrize("option", ["--srcdict", "--srclabeldict"])
@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("<s> 0 #fairseq:overwrite\na 3\n", "the dictionary has '<s>' twice"),
        ("a 3\na 2 #fairseq:overwrite\n", "the dictionary has 'a' twice"),
        ("a 3\na 2\n", "Duplicate word found when loading Dictionary: 'a'\n"),
    ],
)
def test_a_dictionary_that_training_could_not_load_is_refused(
    corpus, capsys, option, lines, message
):
    write(corpus, {**LABELS, "d": lines})
    assert preprocess.main(arguments(corpus, option, f"{corpus}/d")) == 1
    assert f"error: {corpus}/d: {message}" in capsys.readouterr().err
    assert not (corpus / "bin").exists()


def test_a_dictionary_of_labels_is_reused(corpus, capsys):
    write(corpus, LABELS)
    assert preprocess.main(arguments(corpus)) == 0
    made = corpus / "bin"

    write(corpus, {"words/new.labels.en": "root\n\n", "bpe/new.en": "a@@ b\nc\n"})
    write(corpus, {"bpe/new.de": "▁a\n▁b\n"})
    more = [f"--srclabeldict={made}/dict.labels.en.txt", "--subword-marks=subword_nmt"]
    assert preprocess.main(later("later", corpus, *more)) == 0
    assert read(corpus / "later") == {"test.labels.en-de.en": [[5, -1], [-2]]}
    copy = corpus / "later/dict.labels.en.txt"
    assert copy.read_bytes() == (made / "dict.labels.en.txt").read_bytes()

    # It is not replaced by another, and what was written stays as it was.
    capsys.readouterr()
    more = [f"--srcdict={made}/dict.en.txt", f"--tgtdict={made}/dict.de.txt"]
    assert preprocess.main(arguments(corpus, *more)) == 1
    error = capsys.readouterr().err
    assert (
        "bin/dict.labels.en.txt: exists already; reuse this dictionary with --srclabeldict" in error
    )
    assert read(made) == {**MARKS, **INDICES}

    # No labels of the first run stay beside a new text without.
    (corpus / "words/train.labels.en").unlink()
    more += [
        f"--{side}labeldict={made}/dict.labels.{x}.txt"
        for side, x in (("src", "en"), ("tgt", "de"))
    ]
    assert preprocess.main(arguments(corpus, *more)) == 0
    kept = {name: rows for name, rows in INDICES.items() if name != "train.labels.en-de.en"}
    assert read(made) == {**MARKS, **kept}


def test_labels_are_dropped_apart_from_heads(corpus):
    write(corpus, {"words/train.labels.en": "det nsubj\n\nnsubj nsubj\nnsubj root\n"})
    write(corpus, {"words/train.heads.en": "2 3 0\n\n\n0 0\n"})
    assert preprocess.main(arguments(corpus, "--on-bad-parse", "drop")) == 0
    found = read(corpus / "bin")
    assert found["train.heads.en-de.en"] == [[2, 3, -1, -1, 0], [], [-2, -2, -1], [-2, -2]]
    assert found["train.labels.en-de.en"] == [[-2, -2, -1, -1, -2], [], [4, 4, -1], [4, 5]]
    assert (corpus / "bin/dict.labels.en.txt").read_text() == "nsubj 3\nroot 1\n"


def test_how_subwords_are_marked_is_stored_for_printers_and_later_texts(corpus, capsys):
    """A word may end in @@ where words are whole."""
    write(corpus, {"bpe/train.en": "a @@ b\n\nc d\ne f\n", "words/train.heads.en": "2 3 0\n" * 4})
    write(corpus, {"words/train.heads.en": "2 3 0\n\n2 0\n2 0\n"})
    (corpus / "words/train.en").unlink()
    for name in ("train.en", "valid.en", "dev.en"):
        path = corpus / "bpe" / name
        path.write_text(path.read_text().replace("ob@@ ser@@ ver", "observer"))
    assert preprocess.main(arguments(corpus, "--subword-marks=none", "--on-bad-parse=drop")) == 0
    made = corpus / "bin"
    assert stored_schemes(made) == {"en": "none", "de": "none"}
    assert read(made)["train.heads.en-de.en"][0] == [2, 3, 0]

    write(corpus, {"bpe/new.en": "a @@ b\n", "bpe/new.de": "x\n", "words/new.heads.en": "2 3 0\n"})
    capsys.readouterr()
    assert preprocess.main(later("bin", corpus)) == 0
    assert read(made)["test.heads.en-de.en"] == [[2, 3, 0]]
    assert stored_schemes(made) == {"en": "none", "de": "none"}

    (made / "subwords.json").write_text('{"en": ["none"]}')
    assert preprocess.main(later("bin", corpus)) == 1
    assert "subwords.json: expected one of subword_nmt, " in capsys.readouterr().err


def test_how_subwords_are_marked_is_stored_without_any_text(corpus):
    assert preprocess.main(arguments(corpus)) == 0
    before = {path.name: path.read_bytes() for path in (corpus / "bin").iterdir()}
    marks = ["-s=en", "-t=de", f"--destdir={corpus}/bin", "--subword-marks=none"]
    assert preprocess.main(marks) == 0
    assert stored_schemes(corpus / "bin") == {"en": "none", "de": "none"}
    after = {path.name: path.read_bytes() for path in (corpus / "bin").iterdir()}
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"subwords.json", "fingerprint.json"}
    assert after["subwords.json"] == b'{"de": "none", "en": "none"}\n'


def test_too_few_parses_stop_before_anything_is_written(corpus, capfd):
    write(corpus, {"words/train.heads.en": "\n" * 4})
    error = refuse(corpus, capfd)
    assert "words/train.heads.en: only 0 of 3 sentences have a parse that fits" in error
    assert "--min-parsed" in error
    write(corpus, {"words/train.heads.en": "0\n\n2 0\n0\n"})  # one fits
    drop = "--on-bad-parse=drop"
    assert preprocess.main(arguments(corpus, drop, "--min-parsed=0.34")) == 1
    assert "only 1 of 3 sentences" in capfd.readouterr().err
    assert preprocess.main(arguments(corpus, drop, "--min-parsed=0.33")) == 0
