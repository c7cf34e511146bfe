import codecs
import dataclasses
import gzip
import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.parsing.executors import Progress
from syncattn_fairseq.parsing.parse_corpus import ParsingPlan, convert_parsed, parse_corpus
from syncattn_fairseq.parsing.shards import Shard, ShardTask
from syncattn_fairseq.parsing.writer import ParseReport
from tests.parsing.chain import Chain, ChainSource

LINES = [f"line {'word ' * (number % 5)}".rstrip() for number in range(60)]
HEADS = [" ".join(map(str, range(len(line.split())))) for line in LINES]


class Run:
    """A text, its output, and what a call parses."""

    def __init__(self, folder: Path) -> None:
        self.text = folder / "text"
        self.text.write_text("".join(f"{line}\n" for line in LINES))
        self.outputs = {"heads": folder / "heads"}
        self.shards = folder / "heads.shards"
        self.source = ChainSource({"version": "1"})
        self.said: list[str] = []

    def heads(self) -> list[str]:
        return self.outputs["heads"].read_text().splitlines()

    def plan(self, max_words: int = 9, count: int = 6, min_parsed: float = 0.0) -> ParsingPlan:
        return ParsingPlan(self.text, self.outputs, self.source, max_words, count, min_parsed)

    def __call__(self, stop_after: int = 99, count: int = 6, max_words: int = 9) -> list[int]:
        """Parse; return the numbers of the shards that were parsed."""
        parsed: list[int] = []
        self.said = []

        def execute(task: ShardTask, shards: Sequence[Shard], progress: Progress) -> None:
            for shard in shards:
                if len(parsed) == stop_after:
                    raise DataError("stopped")
                task.parse(shard, Chain(), progress)
                parsed.append(shard.number)

        try:
            self.report, self.rate = parse_corpus(
                self.plan(max_words, count), execute, self.said.append
            )
        except DataError as error:
            if str(error) != "stopped":
                raise
        else:
            assert not self.shards.exists()
        return parsed


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_output_is_in_the_order_of_the_text(run):
    run.outputs["labels"] = run.text.with_name("labels")
    assert run() == [0, 1, 2, 3, 4, 5]
    assert run.heads() == HEADS
    assert run.outputs["labels"].read_text() == run.text.read_text().replace("line", "dep").replace(
        "word", "dep"
    )
    assert run.report == ParseReport(60, sum(len(line.split()) for line in LINES))
    assert run.rate > 0
    names = {path.name for path in run.text.parent.iterdir()}
    assert names == {"text", "heads", "labels", "heads.manifest.json"}


def test_finished_shards_are_not_parsed_again(run):
    assert run(stop_after=2) == [0, 1]
    assert not run.outputs["heads"].exists()
    assert run(stop_after=3) == [2, 3, 4]
    assert "2 of 6 shards are already finished" in run.said[-1]
    assert run() == [5]
    assert run.heads() == HEADS
    assert run.report.sentences == 60


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("report.json", ""),
        ("report.json", "[" * 100_000),
        ("report.json", '{"sentences": "x", "words": 1, "empty": {}, "failures": []}'),
        ("sums.json", "{}"),
        ("heads", "0\n"),
        ("heads", "\n" * 10),  # as many lines
        ("labels", "\n" * 10),
        ("heads", None),
    ],
)
def test_damaged_shards_are_parsed_again(run, name, content):
    run.outputs["labels"] = run.text.with_name("labels")
    assert run(stop_after=2) == [0, 1]
    if content is None:
        (run.shards / "00001" / name).unlink()
    else:
        (run.shards / "00001" / name).write_text(content)
    assert run() == [1, 2, 3, 4, 5]
    assert any("1 finished shards are parsed again: damaged" in said for said in run.said)
    assert run.heads() == HEADS


def written(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_ino, found.st_mtime_ns


def test_finished_output_is_left_alone(run):
    run()
    first = run.report
    before = written(run.outputs["heads"])
    assert run(count=3) == []
    assert run.said == [f"{run.outputs['heads']}: up to date, nothing to do"]
    assert (run.report, run.rate) == (first, 0)
    assert written(run.outputs["heads"]) == before


def test_shards_of_changed_or_otherwise_cut_lines_are_parsed_again(run):
    run(stop_after=4)
    data = run.text.read_text()
    run.text.write_text(data.replace("line", "LINE", 1))  # as long as before
    assert run(stop_after=2) == [0, 4]
    assert "1 finished shards are parsed again: the text has changed" in run.said[0]
    assert run(count=2) == [0, 1]
    assert "5 finished shards are parsed again: split differently" in run.said[0]
    assert run.heads() == HEADS
    run.text.write_text(data + "one\n")
    assert run() == [0, 1, 2, 3, 4, 5]
    assert "made again: the text has changed" in run.said[0]
    assert run.heads() == [*HEADS, "0"]


@pytest.mark.parametrize("stop_after", [3, 99])
def test_another_version_model_or_option_makes_everything_stale(run, stop_after):
    run(stop_after)
    run.source = ChainSource({"version": "2"})
    assert run(stop_after)[0] == 0
    assert "version was 1, is 2" in run.said[0]
    model = run.text.with_name("model")
    model.write_text("one")
    run.source = ChainSource({"version": "2"}, (model,))
    assert run(stop_after)[0] == 0
    assert "the parser's files have changed" in run.said[0]
    model = model.rename(model.with_name("moved"))
    run.source = ChainSource({"version": "2"}, (model,))
    assert 0 not in run(stop_after)
    run(stop_after)
    model.write_text("two")
    assert run(stop_after)[0] == 0
    run(stop_after)
    assert run(max_words=4) == [0, 1, 2, 3, 4, 5]
    assert "max_words was 9, is 4" in run.said[0]
    assert run.report.empty == {"more than 4 words": 12}


def test_more_kinds_of_output_are_noticed(run):
    run()
    run.outputs["conllu"] = run.text.with_name("conllu")
    assert run() == [0, 1, 2, 3, 4, 5]
    run.outputs["conllu"].unlink()
    assert run() == [0, 1, 2, 3, 4, 5]
    assert "made again: the output is missing or has been changed" in run.said[0]


def test_shards_without_a_record_are_not_trusted(run):
    run(stop_after=2)
    manifest = run.shards / "manifest.json"
    manifest.write_text(manifest.read_text()[:100])
    assert run() == [0, 1, 2, 3, 4, 5]
    shutil.copy(run.text, run.text.with_name("heads.manifest.json"))
    with pytest.raises(DataError, match="already exists"):
        run()
    run.outputs["heads"].unlink()
    assert run() == [0, 1, 2, 3, 4, 5]


def test_what_was_not_made_here_is_not_overwritten(run):
    theirs, ours = run.text.with_name("labels"), run.outputs["heads"]
    run()
    theirs.write_text("mine\n")
    made = ours.read_text()
    run.outputs["labels"] = theirs
    message = f"{theirs}: already exists, and this command did not make"
    with pytest.raises(DataError, match=message):
        run()
    assert (theirs.read_text(), ours.read_text()) == ("mine\n", made)
    assert not run.shards.exists()
    del run.outputs["labels"]
    assert run() == []
    ours.write_text("corrected by hand\n")
    with pytest.raises(DataError, match="heads: already exists.*has changed since"):
        run()
    assert ours.read_text() == "corrected by hand\n"
    ours.unlink()
    assert run() == [0, 1, 2, 3, 4, 5]
    assert ours.read_text() == made
    parsed = run.text.with_name("parsed")
    parsed.write_text("")
    with pytest.raises(DataError, match="heads: already exists"):
        convert_parsed(run.text, parsed, "conllu", run.outputs)
    ours.unlink()
    convert_parsed(run.text, parsed, "conllu", run.outputs)
    assert ours.read_text() == "\n" * len(LINES)


def test_unfinished_work_overwrites_no_other_file(run):
    run(stop_after=2)
    theirs = run.text.with_name("gold.labels")
    theirs.write_text("mine\n")
    run.outputs["labels"] = theirs
    with pytest.raises(DataError, match="gold.labels: already exists"):
        run()
    assert theirs.read_text() == "mine\n"
    del run.outputs["labels"]
    assert run() == [2, 3, 4, 5]


def test_output_of_ours_is_made_again_after_a_stop(run):
    run()
    run.source = ChainSource({"version": "2"})
    run(stop_after=2)
    assert run() == [2, 3, 4, 5]
    run.text.write_text("another text\n")
    assert run(stop_after=0) == []  # and is at it from here on
    assert run() == [0]
    assert run.outputs["heads"].read_text() == "0 1\n"


def test_what_a_merge_that_was_stopped_has_written_is_ours(run, monkeypatch):
    run.outputs["labels"] = run.text.with_name("labels")
    heads = run.outputs["heads"]
    replace = os.replace

    def stop_after_labels(source: Path, target: Path) -> None:
        replace(source, target)
        if target.name == "labels":
            raise DataError("stopped")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", stop_after_labels)
        run()
    assert not heads.exists()
    heads.write_text("mine\n")
    with pytest.raises(DataError, match="heads: already exists"):
        run()
    heads.unlink()
    run.source = ChainSource({"version": "2"})
    assert run(stop_after=2) == [0, 1]
    assert run() == [2, 3, 4, 5]
    assert heads.read_text().splitlines() == HEADS


def test_a_folder_that_is_missing_is_told_before_anything_is_parsed(run):
    run.outputs["labels"] = run.text.parent / "nowhere" / "labels"
    with pytest.raises(DataError, match="nowhere: no such folder"):
        parse_corpus(run.plan(), lambda *_: None)
    assert [path.name for path in run.text.parent.iterdir()] == ["text"]


@pytest.mark.parametrize("kind", ["gzip", "marked", "pipe"])
def test_a_text_of_another_kind_is_copied_first(run, kind):
    content = run.text.read_bytes()
    kinds = {"gzip": gzip.compress(content), "marked": codecs.BOM_UTF8 + content, "pipe": content}

    def again(**options: int) -> list[int]:
        with ExitStack() as stack:
            if kind == "pipe":
                process = stack.enter_context(subprocess.Popen(["cat", plain], stdout=-1))
                run.text = Path(f"/dev/fd/{process.stdout.fileno()}")  # type: ignore[union-attr]
            return run(**options)

    plain = run.text.with_name("plain")
    plain.write_bytes(content)
    run.text.write_bytes(kinds[kind])
    assert again(stop_after=2) == [0, 1]
    assert (run.shards / "text").read_bytes() == content
    assert again() == [2, 3, 4, 5]
    assert run.heads() == HEADS
    assert again() == []  # up to date
    run.text = plain
    assert run() == []  # the same text
    assert {path.name for path in plain.parent.iterdir()} >= {"heads", "heads.manifest.json"}


@pytest.mark.parametrize(
    ("content", "fault"), [(b"", ".*is empty"), (b"one\ntwo\nz\xfcrich\nfour\n", "3: not UTF-8")]
)
def test_what_is_no_text_leaves_nothing(run, content, fault):
    for data in (content, gzip.compress(content)):
        run.text.write_bytes(data)
        with pytest.raises(DataError, match=f"^{run.text}:{fault}"):
            run(count=2)
        assert list(run.text.parent.iterdir()) == [run.text]


def test_parses_of_a_pipe(run):
    parsed = run.text.with_name("parsed")
    parsed.write_text("1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n\n")
    with subprocess.Popen(["echo", "a"], stdout=subprocess.PIPE) as process:
        text = Path(f"/dev/fd/{process.stdout.fileno()}")  # type: ignore[union-attr]
        convert_parsed(text, parsed, "conllu", run.outputs)
    assert run.outputs["heads"].read_text() == "0\n"


def test_failures_have_the_numbers_of_their_lines(run):
    lines = [*LINES, "fail one", *LINES, "fail two"]
    run.text.write_text("".join(f"{line}\n" for line in lines))
    run()
    assert run.report.failures == [(61, "cannot parse one"), (122, "cannot parse two")]
    assert run.report.summarise().endswith(" words, 2 without a parse (parser failed: 2)")


def test_parses_of_a_file_are_those_that_were_written(run):
    lines = ["", *LINES, "fail here", "\u2028", "last"]
    run.text.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    run.outputs |= {kind: run.text.with_name(kind) for kind in ("labels", "conllu")}
    run()
    again = {kind: run.text.with_name(f"{kind}.again") for kind in run.outputs}
    report, rate = convert_parsed(run.text, run.outputs["conllu"], "conllu", again)
    for kind, path in run.outputs.items():
        assert again[kind].read_text() == path.read_text()
    assert (report.sentences, report.words) == (run.report.sentences, run.report.words)
    assert report.empty == {"empty line": 2, "left out by the parser": 1}
    assert rate > 0


def parse_all(task: ShardTask, shards: Sequence[Shard], progress: Progress) -> None:
    for shard in shards:
        task.parse(shard, Chain(), progress)


def test_two_at_once_do_not_touch_each_other(run):
    folder = run.text.parent
    run.outputs["labels"] = folder / "labels"
    refused = []

    def execute(*args: Any) -> None:
        for outputs, busy in (
            ({"heads": run.outputs["heads"]}, "heads"),
            ({**run.outputs, "heads": folder / "others"}, "labels"),
        ):
            with pytest.raises(DataError, match=f"/{busy}: another process is writing this file"):
                parse_corpus(dataclasses.replace(run.plan(), outputs=outputs), execute)
        refused.append(True)
        parse_all(*args)

    parse_corpus(run.plan(), execute)
    assert refused == [True]
    assert run.heads() == HEADS
    names = {path.name for path in folder.iterdir()}
    assert names == {"heads", "heads.manifest.json", "labels", "text"}


def test_parses_of_another_text_are_refused(run):
    parsed = run.text.with_name("parsed")
    parsed.write_text("".join(f"1\tother{n}\t_\t_\t_\t_\t0\troot\t_\t_\n\n" for n in range(60)))
    with pytest.raises(
        DataError,
        match=r"parsed: only 0 of 60 .*--min-parsed \(the other sentences without a parse: words",
    ):
        convert_parsed(run.text, parsed, "conllu", run.outputs, min_parsed=0.1)
    assert not run.outputs["heads"].exists()
    convert_parsed(run.text, parsed, "conllu", run.outputs)
    assert run.outputs["heads"].read_text() == "\n" * 60


def test_too_few_parses_are_not_written(run):
    def parse(min_parsed, say=lambda message: None):
        return parse_corpus(run.plan(max_words=2, min_parsed=min_parsed), parse_all, say)

    with pytest.raises(DataError, match="heads: only 24 of 60 sentences have a parse"):
        parse(min_parsed=0.5)
    assert not run.outputs["heads"].exists()
    said: list[str] = []
    report, _ = parse(min_parsed=0.4, say=said.append)
    assert report.empty.total() == 36 and "6 of 6 shards are already finished" in said[0]
    with pytest.raises(DataError, match="heads: only 24 of 60 sentences have a parse"):
        parse(min_parsed=0.5)
    assert run.outputs["heads"].exists() and not run.shards.exists()


@pytest.mark.parametrize("link", ["heads.shards", "heads.shards/00000", "heads.manifest.json"])
def test_a_strangers_link_leads_nowhere(run, link):
    elsewhere = run.text.with_name("elsewhere")
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("1")
    path = run.text.parent / link
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(elsewhere / "kept" if path.suffix == ".json" else elsewhere)
    with pytest.raises(DataError, match=f"^{path}: is a symbolic link where this command"):
        run()
    assert [(one.name, one.read_text()) for one in elsewhere.iterdir()] == [("kept", "1")]
