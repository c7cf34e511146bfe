"""`syncattn-bpe`: pieces join to exactly the words they were cut from."""

import io
import os
import random
import subprocess
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.cli import bpe
from syncattn_fairseq.data.pieces import apply_pieces, draw_lines, open_pieces
from syncattn_fairseq.data.words import count_subwords, join_subwords
from tests.cli.errors import read_error
from tests.importing import in_a_process

NAMES = [a + b + c for a in ("ba", "den", "mu") for b in ("ra", "te", "no") for c in ("l", "um")]
TEXT = f"{' '.join(NAMES)}\n\nder alte baum steht\na\u3000b c\u00a0d @@ x@@ baum\n" * 9


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bpe")
    (folder / "text").write_text(TEXT, encoding="utf-8")
    learn = ["learn", "--input", f"{folder}/text", "--vocab-size", "60", "--model", f"{folder}/m"]
    assert bpe.main(learn) == 0
    return folder / "m.model"


# Anything a line can hold: no line ends, no surrogates, no word mark.
letters = st.characters(exclude_categories=["Cs"], exclude_characters="\r\n ▁")
words = st.text(st.sampled_from("abdemnrtu@\u3000\u00a0\t猫") | letters, min_size=1, max_size=6)


@given(st.lists(words, max_size=6))
def test_join_undoes_apply(model, sentence):
    pieces = apply_pieces(open_pieces(model), " ".join(sentence))
    assert join_subwords(pieces, "sentencepiece") == sentence
    assert len(count_subwords(pieces, "sentencepiece")) == len(sentence)
    assert all(" " not in piece for piece in pieces)


def test_vocabulary_is_learnt(model, tmp_path, capfd):
    (tmp_path / "text").write_text(TEXT, encoding="utf-8")
    learn = ["learn", "--input", f"{tmp_path}/text", "--vocab-size", "60"]
    assert bpe.main([*learn, "--model", f"{tmp_path}/m"]) == 0
    assert capfd.readouterr().out == f"{tmp_path}/m.model: 60 subwords\n"
    assert (tmp_path / "m.model").read_bytes() == model.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"text", "m.model"}
    pieces = apply_pieces(open_pieces(model), "baum alte ☃☃")
    assert pieces[0] == "▁baum"
    assert pieces[-1] == "☃☃"


def test_apply_through_pipes_and_files(model, tmp_path, capfd):
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes("  der   baum ☃\n\nalte\r\nmann".encode())
    arguments = ["apply", "--model", str(model)]
    capfd.readouterr()
    assert bpe.main([*arguments, "--input", str(source), "--output", str(target)]) == 0
    assert capfd.readouterr().out == f"{target}: 4 lines\n"
    lines = target.read_text(encoding="utf-8").split("\n")
    assert [join_subwords(line.split(" "), "sentencepiece") for line in lines] == [
        ["der", "baum", "☃"], [""], ["alte"], ["mann"], [""],
    ]  # fmt: skip
    piped = subprocess.run(
        [*in_a_process("syncattn_fairseq.cli.bpe"), *arguments],
        input=source.read_bytes(),
        capture_output=True,
        check=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    assert piped.stdout == target.read_bytes()
    assert piped.stderr == b""


def test_a_model_that_writes_line_ends_is_refused(tmp_path, capsys):
    rules, model, written = tmp_path / "rules.tsv", tmp_path / "evil.model", io.BytesIO()
    rules.write_text(f"{ord('e'):x}\t{ord(chr(10)):x}\n")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the tree", "these trees here"] * 9),
        model_writer=written,
        vocab_size=20,
        model_type="bpe",
        normalization_rule_tsv=str(rules),
        hard_vocab_limit=False,
        minloglevel=3,
    )
    model.write_bytes(written.getvalue())
    text, output = tmp_path / "text", tmp_path / "output"
    text.write_text("the tree\n")
    files = ["--input", str(text), "--output", str(output)]
    assert bpe.main(["apply", "--model", str(model), *files]) == 1
    assert "has subwords with spaces or line ends" in capsys.readouterr().err
    assert not output.exists()


def test_processes_write_the_same(model, tmp_path):
    rng = random.Random(1)
    lines = [" ".join(rng.choices([*NAMES, "☃"], k=rng.randrange(9))) for _ in range(2500)]
    source, outputs = tmp_path / "in", [tmp_path / "1", tmp_path / "3"]
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    arguments = ["apply", "--model", str(model), "--input", str(source)]
    for output in outputs:
        assert bpe.main([*arguments, "--output", str(output), "--workers", output.name]) == 0
    one, three = (output.read_bytes() for output in outputs)
    assert one == three and one.count(b"\n") == 2500


def test_the_mark_of_pieces_is_replaced_and_counted(model, tmp_path, capfd):
    source, plain = tmp_path / "in", tmp_path / "plain"
    source.write_text("a▁b ▁\nbaum\nder ▁baum\n", encoding="utf-8")
    plain.write_text("a_b _\nbaum\nder _baum\n", encoding="utf-8")
    for text in (source, plain):
        arguments = ["--input", str(text), "--output", f"{text}.bpe"]
        assert bpe.main(["apply", "--model", str(model), *arguments]) == 0
        arguments = ["--input", str(text), "--vocab-size", "20", "--model", f"{text}"]
        assert bpe.main(["learn", *arguments]) == 0
    for suffix in (".bpe", ".model"):
        assert Path(f"{source}{suffix}").read_bytes() == Path(f"{plain}{suffix}").read_bytes()
    assert (
        capfd.readouterr().err
        == f"{source}: 2 lines contain the character U+2581, which subwords show as _\n"
    )


@pytest.mark.parametrize(
    ("text", "size", "message"),
    [
        ("\n\n", "9", "no words to learn from"),
        ("a b\n", "500", "Vocabulary size too high"),
        ("a b c d e f\n", "5", "Vocabulary size is smaller than required_chars"),
    ],
)
def test_learn_refuses(tmp_path, capfd, text, size, message):
    (tmp_path / "text").write_text(text, encoding="utf-8")
    arguments = ["learn", "--input", f"{tmp_path}/text", "--model", f"{tmp_path}/m"]
    assert message in read_error(capfd, bpe.main([*arguments, "--vocab-size", size]))
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


def test_a_long_text_is_sampled_and_that_is_said(tmp_path, capfd):
    (tmp_path / "a").write_text(TEXT, encoding="utf-8")
    (tmp_path / "b").write_text(TEXT.replace("baum", "haus"), encoding="utf-8")
    learn = ["learn", "--input", f"{tmp_path}/a", f"{tmp_path}/b", "--vocab-size", "50"]
    assert bpe.main([*learn, "--model", f"{tmp_path}/m", "--max-lines", "40"]) == 0
    told = f"{tmp_path}/m.model: 50 subwords, learnt from 40 of 72 lines, drawn with seed 1\n"
    assert capfd.readouterr().out == told
    both = [line for name in "ab" for line in (tmp_path / name).read_text("utf-8").splitlines()]
    sample = [*draw_lines(both, len(both), 40)]
    assert len(sample) == 40 and sample == [*draw_lines(both, len(both), 40)]
    (tmp_path / "c").write_text("\n".join(sample) + "\n", encoding="utf-8")
    learn = ["learn", "--input", f"{tmp_path}/c", "--vocab-size", "50"]
    for lines in ("40", "41"):
        assert bpe.main([*learn, "--model", f"{tmp_path}/c", "--max-lines", lines]) == 0
        assert (tmp_path / "c.model").read_bytes() == (tmp_path / "m.model").read_bytes()
    assert capfd.readouterr().out == f"{tmp_path}/c.model: 50 subwords\n" * 2


@given(st.integers(0, 30), st.integers(0, 30))
def test_a_sample_has_as_many_lines_as_it_should(total, number):
    lines = [*map(str, range(total))]
    drawn = [*draw_lines(lines, total, min(number, total))]
    assert len(drawn) == min(number, total) and drawn == sorted({*drawn}, key=int)


@pytest.mark.parametrize("folder", [".", ".."])
def test_a_model_is_not_a_folder(folder, capfd):
    assert bpe.main(["learn", "--input", "a", "--model", folder, "--vocab-size", "9"]) == 1
    error = (
        f"error: {folder}: is a folder; give the beginning of a file's name in this folder, "
        "such as bpe\n"
    )
    assert capfd.readouterr().err == error


@pytest.mark.parametrize("workers", ["1", "2"])
def test_apply_refuses_and_leaves_no_output(workers, model, tmp_path, capfd):
    (tmp_path / "good").write_bytes(b"a\nb\n")
    (tmp_path / "text").write_bytes(b"a\nb\xff\n")
    arguments = ["apply", "--input", f"{tmp_path}/good", f"{tmp_path}/text", "--output"]
    arguments += [f"{tmp_path}/out.good", f"{tmp_path}/out"]
    arguments += ["--workers", workers, "--model"]
    assert bpe.main([*arguments, str(model)]) == 1
    assert "text:2: not UTF-8" in capfd.readouterr().err
    assert bpe.main([*arguments, f"{tmp_path}/text"]) == 1
    assert "not a sentencepiece model" in capfd.readouterr().err
    assert bpe.main([*arguments, f"{tmp_path}/none.model"]) == 1
    out, err = capfd.readouterr()
    assert "No such file" in err and not out
    assert {path.name for path in tmp_path.iterdir()} == {"good", "text"}
