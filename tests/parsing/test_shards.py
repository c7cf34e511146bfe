from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import BadParse, DataError
from syncattn_fairseq.base.text import clean_line, read_lines
from syncattn_fairseq.parsing.parser import Parse, Sentences
from syncattn_fairseq.parsing.shards import Shard, ShardTask, plan_shards
from tests.parsing.chain import Chain, ChainSource

# Whatever ends a line somewhere, and what does not end one here.
TEXTS = st.text(st.sampled_from("ab \t\n\r\v\f\x1c\x85\u2028\x00é"), min_size=1, max_size=40)


@given(TEXTS, st.integers(1, 9))
@example("\r\n\n\r\r\n", 3)
@example("no end of line", 9)
def test_shards_are_the_lines_of_the_text(text, count):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "text"
        path.write_bytes(text.encode())
        shards, _ = plan_shards(path, count)
        expected = list(read_lines(path))
        assert [line for shard in shards for line in shard.read(path)] == expected
    assert len(shards) <= count
    assert [shard.number for shard in shards] == list(range(len(shards)))
    line = 1
    for shard in shards:
        assert shard.first_line == line and shard.lines > 0
        line += shard.lines
    assert sum(shard.words for shard in shards) == sum(len(line.split()) for line in expected)


def test_shards_are_of_like_size(tmp_path):
    (tmp_path / "text").write_text("eight b\n" * 1000)
    shards, _ = plan_shards(tmp_path / "text", 7)
    assert {shard.lines for shard in shards} == {142, 143}


LINES = {
    "a b": "0 1",
    "": "",
    " \t": "",
    "c": "0",
    "x fail here": "",
    "a b c d e f": "",
    "c\x01 d": "0 1",
    "e \x1c f": "0 1",  # white space, as every other character that ends lines elsewhere
    "g\u2028h\x85i": "0 1 2",
    "j cycle": "",
    "k\u00a0l": "0 1",
}


def test_each_line_has_its_parse_or_a_reason(tmp_path):
    text = tmp_path / "text"
    text.write_bytes("".join(f"{line}\n" for line in LINES).encode())
    [shard], _ = plan_shards(text, 1)
    task = ShardTask(text, tmp_path, ChainSource(), 5, ("heads", "labels", "conllu"))
    seen: list[int] = []
    task.parse(shard, Chain(), seen.append)
    assert sum(seen) == shard.words == sum(len(clean_line(line).split()) for line in LINES)
    folder = shard.folder(tmp_path)
    assert (folder / "heads").read_text().split("\n") == [*LINES.values(), ""]
    labels = [" ".join("dep" for _ in heads.split()) for heads in LINES.values()]
    assert (folder / "labels").read_text().split("\n") == [*labels, ""]
    report = task.report(shard)
    assert (report.sentences, report.words) == (len(LINES), shard.words)
    assert report.empty == {
        "empty line": 2,
        "parser failed": 1,
        "more than 5 words": 1,
        "no root": 1,
    }
    assert report.failures == [(5, "cannot parse here")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["00000", "text"]


@pytest.fixture
def one(tmp_path: Path) -> tuple[ShardTask, Shard]:
    """A task, and the only shard of its text."""
    (tmp_path / "text").write_text("a b\nc\n")
    [shard], _ = plan_shards(tmp_path / "text", 1)
    return ShardTask(tmp_path / "text", tmp_path, ChainSource(), 5, ("heads",)), shard


def test_half_a_shard_is_never_there(one, tmp_path):
    class Broken(Chain):
        def analyse(self, sentences: Sentences) -> Iterator[tuple[int, Parse | BadParse]]:
            yield from islice(super().analyse(sentences), 1)
            raise DataError("out of order")

    task, shard = one
    with pytest.raises(DataError, match="out of order"):
        task.parse(shard, Broken())
    assert list(tmp_path.iterdir()) == [task.text]


def test_a_preempted_job_is_submitted_again_as_it_was(one, tmp_path):
    task, shard = one
    again = task.checkpoint([shard])
    again.dump(tmp_path / "again.pkl")
    type(again).load(tmp_path / "again.pkl").result()
    assert (shard.folder(tmp_path) / "heads").read_text() == "0 1\n0\n"


def test_a_job_that_starts_again_when_all_is_done_does_nothing(one, tmp_path):
    task, shard = one
    task([shard])
    before = (shard.folder(tmp_path) / "heads").stat()
    no_parser = replace(task, source=None)
    no_parser([shard])
    assert (shard.folder(tmp_path) / "heads").stat() == before
