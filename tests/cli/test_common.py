"""What the commands share."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncattn_fairseq.cli import align, bpe, multitask, parse
from syncattn_fairseq.cli.common import check_outputs

TWICE = "is to be written twice; give each output a name of its own"


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        (bpe, "apply --model m --input a b --output o ./o"),
        (multitask, "tag --input a b --output o link"),
        (multitask, "mix --source a --target b --heads h --output o o"),
        (parse, "--input a --output o --labels o --lang en"),
        (parse, "--input a --output h --labels o --conllu o --parsed a --format conllu"),
        (align, "--forward s a --output s forward o --output s forward o"),
        (align, "--forward s a --output s forward o --json o"),
    ],
)
def test_one_name_for_two_outputs_is_refused_before_anything_is_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: object,
    argv: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "h", "o"):
        Path(name).write_text("1\n")
    Path("link").symlink_to("o")
    assert command.main(argv.split()) == 1  # type: ignore[attr-defined]
    assert capsys.readouterr().err == f"error: {tmp_path}/o: {TWICE}\n"
    assert Path("o").read_text() == "1\n" and len(list(tmp_path.iterdir())) == 5


def test_what_is_thrown_away_may_be_thrown_away_twice() -> None:
    check_outputs("/dev/null", Path("/dev/null"), None, None, "-", "-")
