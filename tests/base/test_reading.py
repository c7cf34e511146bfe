"""Files from others are opened in one way, which knows no endless files and does not wait."""

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from syncattn_fairseq.base import text as door
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import hash_file, open_file
from syncattn_fairseq.base.text import count_lines, read_file_lines
from tests.importing import ROOT

PLUGIN, LAB = "syncattn_fairseq", "lab/syncattn_lab"
ROOMS = [
    *(f"{PLUGIN}/{x}" for x in ("inference", "export", "checkpoints", "parsing")),
    *(f"{PLUGIN}/{x}" for x in ("data", "trees", "cli")),
    *(f"{LAB}/{x}" for x in ("evaluation", "printed", "recipes", "report", "cli", "synthetic")),
]
READS = {"read_text", "read_bytes", "fdopen", "memmap", "ZipFile"}
#: What reads none of others' files, or only ones that were looked at before.
ALLOWED = {
    f"{LAB}/report/page.py": {"read_text"},  # the page's parts, in this package
    f"{LAB}/report/idea_page.py": {"read_text"},  # the same
    f"{PLUGIN}/checkpoints/checkpoint_file.py": {"torch.load", "ZipFile"},  # after open_file
    f"{PLUGIN}/parsing/stanza_parser.py": {"torch.load"},  # of an open file
    f"{LAB}/recipes/archives.py": {"ZipFile"},  # of an open file
    f"{LAB}/recipes/processes.py": {"open"},  # for a program, which may read anything
    f"{PLUGIN}/cli/common.py": {"os.open", "fdopen"},  # /dev/null
}


def list_reads(tree: ast.AST) -> Iterator[str]:
    """Yield what opens a file otherwise than to write it."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        name = called.rpartition(".")[2]
        words = {ast.unparse(each).strip("'") for each in node.args}
        words |= {str(each.arg) for each in node.keywords}
        if called in ("torch.load", "os.open", "json.load", "np.load", "yaml.load"):
            yield called
        elif name in READS and isinstance(node.func, ast.Attribute):
            yield name
        elif name == "open" and not words & {"w", "wb", "a", "ab", "r+b"}:
            yield from ["open"] if called == "open" or words & {"r", "rb", "encoding"} else []


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_that_read_others_files_use_the_one_reader(room):
    for path in (ROOT / room).rglob("*.py"):
        name = path.relative_to(ROOT).as_posix()
        found = {*list_reads(ast.parse(path.read_text("utf-8")))}
        assert found <= ALLOWED.get(name, set()), name


@pytest.mark.parametrize(
    "line",
    [
        *("open(p)", "open(p, 'rb')", "p.open('rb')", "p.open(encoding='utf-8')"),
        *("p.read_text('utf-8')", "p.read_bytes()", "json.load(f)", "torch.load(p)"),
    ],
)
def test_other_ways_are_seen(line):
    assert [*list_reads(ast.parse(line))]
    assert not [*list_reads(ast.parse("open(p, 'w'); p.open('wb'); parser.open(); read_text(p)"))]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_never_ends_is_refused(tmp_path, make):
    path = tmp_path / "file"
    make(path)
    for read in (open_file, hash_file, lambda path: [*read_file_lines(path)]):
        with pytest.raises(DataError, match=f"^{path}: not a regular file$"):
            read(path)


def test_lines_that_never_end_are_not_counted(monkeypatch):
    monkeypatch.setattr(door, "MAX_LINE", 2**21)
    with pytest.raises(DataError, match=r"^/dev/zero:1: the line has more than 2,097,152 char"):
        count_lines(Path("/dev/zero"))


def test_lines_of_a_file_are_those_of_a_text(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"\xef\xbb\xbfa\rb\r\n\nc")
    assert [*read_file_lines(path)] == [*door.read_lines(path)] == ["a b", "", "c"]
    path.write_bytes(b"a\n\xff\n")
    with pytest.raises(DataError, match=":2: not UTF-8"):
        [*read_file_lines(path)]


@pytest.mark.parametrize("read", [door.read_lines, read_file_lines])
@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (
            "\ufeffthe man\n".encode("utf-16-le"),
            ":1: UTF-16, not UTF-8; convert it: iconv -f UTF-16",
        ),
        ("\ufeffthe man\n".encode("utf-16-be"), ":1: UTF-16, not"),
        ("the old man\n".encode("utf-16-le"), ":1: UTF-16, not"),
        ("the old man\n".encode("utf-16-be"), ":1: UTF-16, not"),
        (
            b'\xef\xbb\xbf<?xml version="1.0"?>\n',
            ":1: this is XML .such as TMX or XLIFF., not plain text; write",
        ),
        (b"<tmx version='1.4'>\n", ":1: this is XML"),
        (b"  <xliff>\n", ":1: this is XML"),
        (b"<!DOCTYPE refset>\n", ":1: this is XML"),
    ],
)
def test_what_is_another_kind_of_file_is_named(tmp_path, read, data, fault):
    path = tmp_path / "text"
    path.write_bytes(data)
    with pytest.raises(DataError, match=f"^{path}{fault}"):
        [*read(path)]


def test_text_that_only_mentions_xml_is_text(tmp_path):
    path = tmp_path / "text"
    lines = ["<b>a</b>", "<?xml version='1.0'?>", "<tmx>", "a\0b", "<doc>", "a tmx"]
    path.write_text("\n".join(lines))
    assert [*door.read_lines(path)] == [line.replace("\0", " ") for line in lines]
