import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from syncattn_fairseq.base.text import clean_line
from syncattn_fairseq.cli.parse import main
from syncattn_fairseq.data.parses import read_heads
from syncattn_fairseq.parsing.parsers import open_parser
from tests.parsing.chain import CONLLU


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def arguments(stanza_models: Path, *more: str) -> list[str]:
    stanza = ["--parser=stanza", "--lang=en", f"--stanza-dir={stanza_models}"]
    return [*stanza, "--input=train.en", "--output=train.heads.en", *more]


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    with pytest.raises(SystemExit):
        main(["--input=text", "--output=heads", *argv])
    return capsys.readouterr().err


def test_heads_labels_and_conllu_of_a_text(folder, stanza_models, capsys):
    lines = (stanza_models / "valid.en").read_text().splitlines()
    bad = ["", " \u00a0 ", "w " * 31, "the \x00 man", "the old\u2028man\x85sleeps\x1c.", "\x00"]
    lines = [*bad, *lines, *bad, *lines]
    (folder / "train.en").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    argv = arguments(stanza_models, "--labels=l", "--conllu=c", "--max-words=30", "--shards=3")
    assert main(argv) == 0
    words = [clean_line(line).split() for line in lines]
    expected = open_parser(f"stanza:en:{stanza_models}")(words)
    for i in (0, 1, 2, 5):
        expected[i] = expected[i + 16] = None
    assert expected[4] is not None and len(expected[4].heads) == 5
    assert list(read_heads("train.heads.en")) == [found and found.heads for found in expected]
    labels = [line.split() or None for line in Path("l").read_text().splitlines()]
    assert labels == [found and found.labels for found in expected]
    tables = [block.splitlines() for block in Path("c").read_text().split("\n\n")[:-1]]
    parsed = [number for number, found in enumerate(expected, 1) if found is not None]
    assert [int(table[0].removeprefix("# sent_id = ")) for table in tables] == parsed
    for number, (_, text, *rows) in zip(parsed, tables, strict=True):
        assert text == f"# text = {' '.join(words[number - 1])}"
        columns = list(zip(*(row.split("\t") for row in rows), strict=True))
        assert columns[1] == tuple(words[number - 1])
        assert [int(head) for head in columns[6]] == expected[number - 1].heads
        assert "DET" in columns[3] or len(rows) < 5
    told = capsys.readouterr().out.splitlines()
    count = sum(map(len, words))
    assert told[-1].startswith(
        f"train.heads.en: {len(lines)} sentences, {count} words, 8 without a parse "
        "(empty line: 6, more than 30 words: 2), "
    )
    assert told[-1].endswith(" words/s")
    assert main(argv) == 0
    assert "train.heads.en: up to date, nothing to do\n" in capsys.readouterr().out


def descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [number for child in map(int, children) for number in (child, *descendants(child))]


def run_and_be_killed(argv: list[str], finished: int) -> None:
    """Run the command in a process, which is killed when that many shards are finished."""
    process = multiprocessing.get_context("spawn").Process(target=main, args=(argv,))
    process.start()
    while len(list(Path("train.heads.en.shards").glob("0*"))) < finished:
        assert process.is_alive()
        time.sleep(0.01)
    assert process.pid is not None
    started = descendants(process.pid)
    assert len(started) > 2
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    deadline = time.monotonic() + 600  # for a slow machine; they end at once
    while any(Path(f"/proc/{child}").exists() for child in started):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_after_a_kill_only_what_is_missing_is_parsed(folder, capsys):
    Path("train.en").write_text("the man sleeps\n" * 300)
    sleep = "    __import__('time').sleep(0.005)\n    print(f"
    Path("program.py").write_text(CONLLU.replace("    print(f", sleep))
    argv = ["--input=train.en", "--output=train.heads.en", "--labels=labels", "--shards=12"]
    argv += ["--parser=command", f"--command={sys.executable} program.py", "--format=conllu"]
    assert main(argv) == 0
    expected = {name: (folder / name).read_bytes() for name in ("train.heads.en", "labels")}
    for name in (*expected, "train.heads.en.manifest.json"):
        (folder / name).unlink()

    run_and_be_killed([*argv, "--workers=2"], 2)
    assert not any((folder / name).exists() for name in expected)
    kept = sorted((folder / "train.heads.en.shards").glob("0*"))
    assert 2 <= len(kept) < 12
    capsys.readouterr()
    assert main(argv) == 0
    assert f"{len(kept)} of 12 shards are already finished" in capsys.readouterr().out
    assert all((folder / name).read_bytes() == text for name, text in expected.items())
    assert not (folder / "train.heads.en.shards").exists()


def test_models_can_be_named_and_missing_ones_are_told(folder, stanza_models, capsys):
    (folder / "train.en").write_text("the man sleeps .\n")
    files = [f"--tagger={stanza_models}/en_tagger.pt", f"--depparse={stanza_models}/en_parser.pt"]
    named = ["--lang=xx", "--input=train.en", "--output=heads", *files]
    assert main(named) == 0
    assert main(arguments(stanza_models)) == 0
    assert Path("heads").read_text() == Path("train.heads.en").read_text()
    assert main([*named, "--tagger=nowhere.pt"]) == 1
    assert capsys.readouterr().err == "error: nowhere.pt: no such file or directory\n"
    assert main(["--lang=en", "--stanza-dir=.", "--input=train.en", "--output=other"]) == 1
    assert "no Stanza models for 'en'" in capsys.readouterr().err
    assert not list(folder.glob("other*"))
    assert main(["--lang=en", "--tagger=file", "--input=text", "--output=heads"]) == 1
    assert capsys.readouterr().err.startswith("error: give --stanza-dir, or both --tagger and")


def test_options_that_do_not_go_together_are_refused(capsys):
    assert "--parser stanza needs --lang" in refused(capsys)
    assert "--parser eda needs --model" in refused(capsys, "--parser=eda")
    assert "--parser command needs --command" in refused(capsys, "--parser=command")
    assert "--parsed needs --format" in refused(capsys, "--parsed=file")
    assert "--lang does not go with --parsed" in refused(
        capsys, "--parsed=file", "--format=eda", "--lang=ja"
    )
    parsed = ["--parsed=file", "--format=eda"]
    for option in ("--shards=2", "--workers=1", "--max-words=9", "--executor=slurm"):
        message = f"{option.partition('=')[0]} does not go with --parsed"
        assert message in refused(capsys, *parsed, option)
    assert "--slurm does not go with --parsed" in refused(capsys, *parsed, "--slurm", "time=3")
    assert "--model does not go with --parser stanza" in refused(capsys, "--lang=en", "--model=m")
    assert "--slurm needs --executor slurm" in refused(capsys, "--lang=en", "--slurm", "time=3")
    assert "'bison' is not one of " in refused(capsys, "--parser=bison")
    assert "--min-parsed: 1.5 is not between 0 and 1" in refused(capsys, "--min-parsed=1.5")
