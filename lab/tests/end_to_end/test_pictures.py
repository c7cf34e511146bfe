"""Sentences in a terminal and in figures, by the real commands."""

import json
import re
from pathlib import Path

from lab.tests.cli.test_show_page import content
from tests.end_to_end.commands import run, train
from tests.end_to_end.corpora import TEST


def named(model: Path, data: Path, text: Path) -> list[object]:
    return ["--path", model, "--data-bin", data, "--subwords", text / "bpe.model"]


def _force(data: Path, text: Path, model: Path) -> str:
    """Return what the model finds in the references, as JSON lines."""
    words = text / "words"
    given = "--input", words / "test.en", "--force", words / "test.de"
    return run("syncattn-translate", *named(model, data, text), *given, "--tokenised", "--jsonl")


def test_show_and_draw_a_sentence_with_gold(data, text, syncattn, tmp_path):
    model = syncattn / "checkpoint_best.pt"
    common = [*named(model, data, text), "--gold", text / "words" / "test", "--number"]
    shown = run("syncattn-show", *common, 2, 3)
    source = (text / "words" / "test.en").read_text().splitlines()
    blocks = shown.split("source       ")[1:]
    assert [block.splitlines()[0] for block in blocks] == source[1:3]

    lines = _force(data, text, model).splitlines()
    heads = json.loads(lines[1])["source"]["heads"]
    words = source[1].split()
    parsed = blocks[0].split("source, parsed\n")[1].split("\n\n")[0].splitlines()
    gold = (text / "words" / "test.heads.en").read_text().splitlines()[1].split()
    for word, head, right, line in zip(words, heads, gold, parsed, strict=True):
        name = words[head - 1] if head else "(root)"
        assert re.search(rf"[▸─ ] {re.escape(word)} .*: {re.escape(name)}(  ✗|$)", line), line
        assert ("✗" in line) == (head != int(right))
    assert "reference, aligned" in blocks[0]

    for kind in ("parses", "attention", "alignment"):
        picture = tmp_path / f"{kind}.svg"
        assert f"{kind} of: {source[1]}" in run(
            "syncattn-show", *common, 2, "--figure", picture, "--kind", kind
        )
        svg = picture.read_text("utf-8")
        assert all(f">{word}</text>" in svg for word in words)
    assert svg.count('aria-roledescription="square"') >= len(words) // 2


def test_distances_of_a_model_without_parses(data, text, tmp_path):
    train(data, tmp_path, "transformer_lpsi", "--max-update=2", "--disable-validation")
    model = named(tmp_path / "checkpoint_last.pt", data, text)
    shown = run("syncattn-show", "the dog sees a cat .", *model)
    assert "parsed" not in shown
    [tree] = re.findall(r"source, induced tree\n(.*)", shown)
    assert re.sub("[()]", "", tree) == "the dog sees a cat ."
    picture = tmp_path / "d.svg"
    drawn = ["syncattn-show", *model, "--figure", picture]
    run(*drawn, "the dog sees a cat .", "--kind", "distances")
    assert "Source: gates" in picture.read_text("utf-8")
    failed = run(*drawn, "the dog", fails=True)
    assert "the model has no dependency heads" in failed


def test_matrices_in_the_report(data, text, syncattn, tmp_path):
    model, words = syncattn / "checkpoint_best.pt", text / "words"
    decoded = tmp_path / "decoded"
    decoded.write_text(_force(data, text, model))
    page = tmp_path / "r.html"
    run(
        "syncattn-show",
        *("--system", "SyncAttn", decoded, decoded, "--references", words / "test.de"),
        *("--tokenize=none", "--source-heads", words / "test.heads.en"),
        *("--target-heads", words / "test.heads.de", "--alignments", words / "test.align"),
        *("--attention", "SyncAttn", model, "--data-bin", data, "--subwords", text / "bpe.model"),
        *("--html", page),
    )
    head, details = content(page.read_text("utf-8"))
    assert len(details) == len(head["sentences"]) == TEST
    assert all("matrices" in detail["systems"][0] for detail in details)
    encoder, cross, decoder, carried = details[0]["systems"][0]["matrices"]
    assert [m["title"][0] for m in (encoder, cross, decoder, carried)] == ["E", "C", "D", "C"]
    heads = details[0]["source"]["heads"]
    assert encoder["gold"] == [[i, head - 1 if head else i] for i, head in enumerate(heads)]
    for row in cross["values"]:
        assert 0 <= sum(row) <= 100 + len(row)
    for i, row in enumerate(decoder["values"]):
        assert not any(row[i + 1 :]), "a decoder sees no future"
