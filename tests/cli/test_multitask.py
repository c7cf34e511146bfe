import os
import re
import subprocess
from pathlib import Path

import pytest
from fairseq.data import Dictionary
from fairseq_cli import preprocess

from syncattn_fairseq.cli import multitask
from syncattn_fairseq.data import task_mix
from syncattn_fairseq.data.task_mix import ParsedSource
from syncattn_fairseq.trees.brackets import read_trees
from tests.checkpoints import Corpus
from tests.importing import in_a_process


@pytest.fixture
def text(small_corpus: Corpus) -> Path:
    """A folder with words, trees, heads and labels, and with pieces."""
    return small_corpus.folder


def mix(text: Path, output: Path, *options: str) -> int:
    return multitask.main(
        ["mix", f"--source={text}/pieces/train.en", f"--target={text}/pieces/train.de", "--output"]
        + [f"{output}/train.en", f"{output}/train.de", *options]
    )


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_fairseq_binarises_the_mix_with_whole_tags_and_brackets(text, tmp_path, capsys):
    assert mix(text, tmp_path, f"--trees={text}/words/train.trees.en") == 0
    assert capsys.readouterr().out.splitlines() == [
        f"subwords of {text}/pieces/train.en: sentencepiece",
        f"{tmp_path}/train.en and {tmp_path}/train.de: 60 translations and as many parses, 0 of "
        "the parses repeated; "
        "0 sentences without parse, 0 parses dropped",
    ]
    sources, targets = lines(tmp_path / "train.en"), lines(tmp_path / "train.de")
    pieces = lines(text / "pieces/train.en")
    assert sorted(sources) == sorted(f"{tag} {line}" for line in pieces for tag in ("<PA>", "<TR>"))
    translations = dict(zip(pieces, lines(text / "pieces/train.de"), strict=True))
    trees = dict(zip(pieces, read_trees(text / "words/train.trees.en"), strict=True))
    for source, target in zip(sources, targets, strict=True):
        tag, _, sentence = source.partition(" ")
        if tag == "<TR>":
            assert target == translations[sentence]
            continue
        tree = trees[sentence]
        assert tree is not None
        assert len(re.findall(r"\([^ ]+\)", target)) == len(list(tree.leaves()))
        assert target.startswith(f"({tree.label} ")

    arguments = ["-s=en", "-t=de", "--joined-dictionary", f"--destdir={tmp_path}/bin"]
    options = preprocess.options.get_preprocessing_parser()
    preprocess.main(options.parse_args([*arguments, f"--trainpref={tmp_path}/train"]))
    dictionary = Dictionary.load(f"{tmp_path}/bin/dict.en.txt")
    used = {token for line in targets for token in line.split() if token[0] in "()"}
    assert {"(S", "(NP", "(NOUN)", ")"} <= used
    assert not {dictionary.index(token) for token in {"<TR>", "<PA>", *used}} & {dictionary.unk()}


def test_tag_through_files_and_pipes(text, tmp_path, capsys):
    source, output = text / "pieces/valid.en", tmp_path / "valid.en"
    capsys.readouterr()
    assert multitask.main(["tag", f"--input={source}", f"--output={output}"]) == 0
    assert capsys.readouterr().out == f"{output}: 12 lines\n"
    assert lines(output) == [f"<TR> {line}" for line in lines(source)]
    piped = subprocess.run(
        [*in_a_process("syncattn_fairseq.cli.multitask"), "tag"],
        input=source.read_bytes(),
        capture_output=True,
        check=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    assert piped.stdout == output.read_bytes()


def test_options_reach_the_mix(text, tmp_path):
    """What they do is tested beside the function."""
    heads, labels = tmp_path / "heads", text / "words/train.labels.en"
    heads.write_text("0 0\n" + "\n".join(lines(text / "words/train.heads.en")[1:]) + "\n")
    options = (f"--heads={heads}", f"--labels={labels}", "--words", "--on-bad-parse=drop")
    assert mix(text, tmp_path / "ours", *options, "--seed=2") == 0
    parses = (None, heads, labels, True, "drop")
    source = ParsedSource(text / "pieces/train.en", "sentencepiece", *parses)
    outputs = tmp_path / "theirs/train.en", tmp_path / "theirs/train.de"
    task_mix.mix(source, text / "pieces/train.de", outputs, seed=2)
    for output in outputs:
        assert lines(tmp_path / "ours" / output.name) == lines(output)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--trees={0}/words/train.heads.en"], "train.heads.en:1: the word '"),
        (["--trees={0}/words/train.trees.en", "--labels=x"], "--labels needs --heads"),
        (["--trees={0}/words/none"], "No such file"),
        (["--trees={0}/words/train.trees.en", "--subword-marks=none"], "but '▁"),
    ],
)
def test_what_does_not_go_together_is_named(text, tmp_path, capfd, options, message):
    assert mix(text, tmp_path / "new", *(option.format(text) for option in options)) == 1
    error = capfd.readouterr().err
    assert error.startswith("error: ") and message in error and error.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_tag_refuses_unequal_files(tmp_path, capsys):
    assert multitask.main(["tag", "--input", "a", "b", "--output", f"{tmp_path}/c"]) == 1
    assert "2 inputs, but 1 outputs" in capsys.readouterr().err


def test_places_of_words_need_heads_and_sentences(text, tmp_path, capsys):
    for given in (["--trees=a", "--spans=b", "--text=c"], ["--heads=a", "--spans=b"]):
        for name in "abc":
            (tmp_path / name).write_text("x\n")
        given = [option.replace("=", f"={tmp_path}/") for option in given]
        assert mix(text, tmp_path, *given) == 1
        assert "--spans needs --heads and --text" in capsys.readouterr().err
