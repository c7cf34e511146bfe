from collections.abc import Iterator
from pathlib import Path

import pytest

from syncattn_lab.evaluation.contrastive import read_contrastive
from syncattn_lab.recipes.generate import main
from syncattn_lab.synthetic import generated_corpus
from syncattn_lab.synthetic.derivation import SentencePair

SIZES = {"train": 60, "valid": 20, "test": 10}
SIDE_FILES = ("{}", "heads.{}", "labels.{}", "trees.{}")


def write(folder: Path, status: int = 0, **sizes: int) -> None:
    options = [item for split, n in {**SIZES, **sizes}.items() for item in (f"--{split}", str(n))]
    assert main([str(folder), *options]) == status


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_files_go_together(tmp_path, capsys):
    folder = tmp_path / "new" / "corpus"
    write(folder)
    assert capsys.readouterr().out == f"{folder}: train 60, valid 20, test 10 pairs\n"
    assert len(list(folder.glob("[!.]*"))) == 3 * 11 + 1
    for split, size in SIZES.items():
        assert len(lines(folder / f"{split}.align")) == size
        for language in ("en", "de"):
            words, heads, labels, trees = (
                lines(folder / f"{split}.{name.format(language)}") for name in SIDE_FILES
            )
            assert len(words) == len(heads) == len(labels) == len(trees) == size
            blocks = (folder / f"{split}.{language}.conllu").read_text("utf-8").split("\n\n")
            assert blocks.pop() == "" and len(blocks) == size
            for number, block in enumerate(blocks):
                comments, rows = block.split("\n")[:2], block.split("\n")[2:]
                assert comments == [f"# sent_id = {number + 1}", f"# text = {words[number]}"]
                table = [row.split("\t") for row in rows]
                assert {len(row) for row in table} == {10}
                assert [row[0] for row in table] == [str(i + 1) for i in range(len(table))]
                assert " ".join(row[1] for row in table) == words[number]
                assert " ".join(row[6] for row in table) == heads[number]
                assert " ".join(row[7] for row in table) == labels[number]
    rows = zip(*(lines(folder / f"train.{name}") for name in ("align", "en", "de")), strict=True)
    for align, english, german in rows:
        links = [tuple(map(int, link.replace("?", "-").split("-"))) for link in align.split()]
        assert links == sorted(set(links))
        assert all(i < len(english.split()) and j < len(german.split()) for i, j in links)


def test_wrong_translations_go_with_the_test_split(tmp_path):
    write(tmp_path)
    pairs = read_contrastive(tmp_path / "test.contrast.tsv")
    texts = [*zip(lines(tmp_path / "test.en"), lines(tmp_path / "test.de"), strict=True)]
    assert {(pair.source, pair.right) for pair in pairs} == {*texts}
    assert {pair.kind for pair in pairs} == {"agreement", "order", "attachment"}
    assert all(pair.distance for pair in pairs)


def test_splits_are_disjoint(tmp_path):
    write(tmp_path, train=3000)
    texts = [sentence for split in SIZES for sentence in lines(tmp_path / f"{split}.en")]
    assert len(set(texts)) == len(texts) == 3030


def test_test_set_does_not_depend_on_the_training_set(tmp_path):
    write(tmp_path / "small")
    write(tmp_path / "large", train=100)
    for name in ("test.de", "valid.de"):
        assert lines(tmp_path / "small" / name) == lines(tmp_path / "large" / name)
    small, large = (lines(tmp_path / size / "train.de") for size in ("small", "large"))
    assert large[:60] == small


def test_failure_leaves_what_was_there(tmp_path, monkeypatch):
    write(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    generate = generated_corpus.generate

    def disk_full(n: int, seed: int) -> Iterator[SentencePair]:
        yield from generate(n - 5, seed)
        raise OSError("disk full")

    monkeypatch.setattr(generated_corpus, "generate", disk_full)
    write(tmp_path, 1, train=40)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_files_of_others_are_not_replaced(tmp_path, capsys):
    write(tmp_path / "ours")
    write(tmp_path / "ours", train=50)
    for folder in (tmp_path / "ours", tmp_path / "theirs"):
        folder.mkdir(exist_ok=True)
        (folder / "train.en").write_text("mine\n", "utf-8")
        before = {path: path.read_bytes() for path in folder.iterdir()}
        write(folder, 1, train=40)
        error = capsys.readouterr().err
        assert f"error: {folder}/train.en: already exists, and was not made by this" in error
        assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_bad_arguments_are_named(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([str(tmp_path), "--test", "0"])
    assert "argument --test: 0 is less than 1" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert main([str(tmp_path / "file")]) == 1
    assert capsys.readouterr().err.startswith("error: ")
