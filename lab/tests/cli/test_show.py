import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lab.tests.commands.parsing import refusal
from syncattn_lab.cli import show
from tests.checkpoints import Corpus, make_checkpoint
from tests.importing import in_a_process
from tests.parsing.chain import CONLLU

SENTENCE = "the dog sees a cat ."


def named(corpus: Corpus, folder: Path, arch: str, **options: Any) -> list[str]:
    path = make_checkpoint(corpus, folder / "model.pt", arch, **options)
    return [f"--path={path}", f"--data-bin={corpus.data}", f"--subwords={corpus.subwords}"]


@pytest.fixture
def shown(small_corpus: Corpus, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Any:
    """Return a function that makes a model and says what is shown of a sentence, by its titles."""

    def make(arch: str, *arguments: str, **options: Any) -> dict[str, str]:
        model = named(small_corpus, tmp_path, arch, **options)
        capfd.readouterr()
        status = show.main([SENTENCE, *model, *arguments])
        out, err = capfd.readouterr()
        assert (status, err) == (0, "")
        first, *blocks = out.split("\n\n")
        texts = {line[:13].strip(): line[13:] for line in first.splitlines()}
        return texts | {title: rest for title, _, rest in (b.partition("\n") for b in blocks)}

    return make


def check_links(found: dict[str, str]) -> None:
    links = found["translation, aligned"].strip().split("  ")
    assert [link.partition("–")[0] for link in links] == found["translation"].split()


def test_pascal_shows_links_of_what_it_read_with_a_parser(shown, tmp_path):
    program = tmp_path / "parser.py"
    program.write_text(CONLLU)
    parser = f"command:conllu:{shlex.join([sys.executable, str(program)])}"
    found = shown("transformer_pascal", f"--source-parser={parser}")
    assert list(found) == ["source", "translation", "translation, aligned"]
    assert found["source"] == SENTENCE
    check_links(found)


def test_pascal_reads_the_parse_beside_a_test_set(small_corpus, tmp_path, capfd):
    model = named(small_corpus, tmp_path, "transformer_pascal", max_target_positions=40)
    gold = str(small_corpus.folder / "words" / "test")
    assert show.main(["--gold", gold, *model]) == 0
    assert "reference, aligned" in capfd.readouterr().out
    assert show.main([SENTENCE, *model]) == 1
    assert "name a parser" in capfd.readouterr().err


def test_lisa_shows_how_it_parses_the_source(shown):
    found = shown("transformer_lisa", encoder_dependency_layer=1)
    assert list(found) == ["source", "translation", "source, parsed", "translation, aligned"]
    arcs = found["source, parsed"].splitlines()
    assert len(arcs) == 6
    for word, line in zip(SENTENCE.split(), arcs, strict=True):
        assert word in line and "✗" not in line
    check_links(found)


def test_a_layer_without_trees_shows_its_links(shown):
    found = shown("transformer_lpsi", "--layer=3", encoder_layers=3)
    assert list(found) == ["source", "translation", "translation, aligned"]
    check_links(found)


def test_the_reference_is_compared_with_its_own_parse(small_corpus, tmp_path, capfd):
    model = named(small_corpus, tmp_path, "transformer_dbsa")
    gold = f"--gold={small_corpus.folder / 'words' / 'test'}"
    assert show.main([gold, *model, "--number", "1", "2", "3"]) == 0
    blocks = capfd.readouterr().out.split("reference, parsed\n")[1:]
    gold_lines = (small_corpus.lines(f"test.{name}")[:3] for name in ("de", "heads.de"))
    later = 0
    for block, text, parse in zip(blocks, *gold_lines, strict=True):
        words, heads = text.split(), [*map(int, parse.split())]
        arcs = block.split("\n\n")[0].splitlines()
        for number, (head, line) in enumerate(zip(heads, arcs, strict=True), 1):
            assert line.endswith(": …") == (head > number)
            later += head > number
            right = words[head - 1] if head else "(root)"
            assert "✗" not in line or line.endswith(f"✗ {right}")
    assert later


def test_the_tree_of_the_reference_has_its_words(small_corpus, tmp_path, capfd):
    model = named(small_corpus, tmp_path, "transformer_lpsi")
    assert show.main([f"--gold={small_corpus.folder / 'words' / 'test'}", *model]) == 0
    out = capfd.readouterr().out
    for title, language in (("source", "en"), ("reference", "de")):
        tree = out.split(f"{title}, induced tree\n")[1].split("\n\n")[0]
        words = small_corpus.lines(f"test.{language}")[0]
        assert re.sub("[()]", "", tree).split() == words.split()
    assert show.main(["the \x1b[2J dog", *model]) == 0
    out = capfd.readouterr().out
    assert "\x1b" not in out and "the \\x1b[2J dog" in out, "no word is a command to a terminal"


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_standard_input_that_is_not_utf8_is_refused(locale):
    done = subprocess.run(
        [*in_a_process("syncattn_lab.cli.show"), "--path", "none.pt"],
        input=b"a b\na\xff b\n",
        capture_output=True,
        env={**os.environ, "LC_ALL": locale},
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"error: <stdin>:2: not UTF-8; convert the file to UTF-8\n"


def test_sentences_do_not_go_with_gold(capsys):
    assert show.main([SENTENCE, "--gold", "words/test", "--path", "none.pt"]) == 1
    assert capsys.readouterr().err == "error: --gold has the sentences; give no other sentences\n"


@pytest.mark.parametrize("command", ["show", "show --figure x.svg --kind parses"])
def test_the_options_of_the_quickstart_are_known(command):
    script = (Path(__file__).parents[3] / "scripts" / "quickstart.sh").read_text()
    [model] = re.findall(r"^model=\((.*)\)$", script, re.MULTILINE)
    assert model.count("--") == 4 and refusal(f"syncattn-{command} {model}") == ""
