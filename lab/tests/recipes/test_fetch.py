import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.tests.recipes.server import Server, serve
from syncattn_lab.recipes.fetch import main
from tests.cli.errors import read_error

CONTENT = b"content\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "a.txt").write_bytes(CONTENT)
    with serve(tmp_path / "web") as server:
        yield server


def test_what_came_is_told_so_that_it_can_be_noted(server, tmp_path, capsys):
    there, source = ["--directory", str(tmp_path / "here")], f"{server.url}/a.txt"
    path = tmp_path / "here" / "b"
    assert main([*there, "--name", "b", source]) == 0
    assert capsys.readouterr().out == f"{path}: 8 bytes, SHA-256 {SHA256}\n"
    assert path.read_bytes() == CONTENT
    assert main([*there, "--sha256", SHA256, "--size", "8", source]) == 0
    assert capsys.readouterr().out == f"{path.with_name('a.txt')}: 8 bytes\n"
    assert "MD5" in read_error(capsys, main([*there, "--md5", "0" * 32, source]))
    assert main([*there, "--md5", hashlib.md5(CONTENT).hexdigest().upper(), source]) == 0


def test_a_licensed_file_is_asked_for_and_not_fetched(tmp_path, capsys):
    arguments = ["--directory", str(tmp_path), "--licence", "Write to them.", "a.tgz"]
    assert main(arguments) == 1
    assert capsys.readouterr().err == (
        f"error: {tmp_path / 'a.tgz'}: missing; it needs a signed licence, so "
        "put it there yourself: Write to them.\n"
    )
    (tmp_path / "a.tgz").write_bytes(CONTENT)
    assert main(arguments) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'a.tgz'}: 8 bytes, SHA-256 {SHA256}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--sha256", "0" * 63, "http://127.0.0.1/a"],
        ["--md5", "0" * 31, "http://127.0.0.1/a"],
        ["--size", "0", "http://127.0.0.1/a"],
        ["--licence", "Write to them.", "--name", "b", "a"],
        [],
    ],
)
def test_wrong_arguments(tmp_path, arguments):
    with pytest.raises(SystemExit):
        main(["--directory", str(tmp_path), *arguments])
