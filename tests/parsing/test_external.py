import shlex
import signal
import sys
from pathlib import Path

import pytest

from syncattn_fairseq.base.errors import BadParse, DataError
from syncattn_fairseq.parsing.external import Command, Eda, ExternalParser
from syncattn_fairseq.parsing.parsed_file import DROPPED
from syncattn_fairseq.parsing.parser import FAILED, Parse
from tests import japanese
from tests.parsing.chain import CONLLU


@pytest.fixture
def program(tmp_path: Path) -> str:
    script = tmp_path / "chain's program.py"
    script.write_text(CONLLU)
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(script))}"


def chain(words: list[str]) -> Parse:
    return Parse(list(range(len(words))), ["dep"] * len(words))


def outcomes(command: Command, sentences: list[list[str]]) -> list[Parse | BadParse]:
    found = dict(ExternalParser(command).analyse(sentences))
    return [found[index] for index in range(len(sentences))]


def test_many_sentences_go_through_one_process(program):
    sentences = [["word", str(i), "ä\u200bö", "\x80"] for i in range(5_000)]
    assert outcomes(Command.from_user(program, "conllu"), sentences) == list(map(chain, sentences))


@pytest.mark.parametrize("half", ["", "print('1\\tcra'), sys.stdout.flush(), "])  # a line
def test_where_the_command_breaks_off_only_that_sentence_is_lost(tmp_path, half):
    script = tmp_path / "program.py"
    script.write_text(CONLLU.replace("sys.exit", f"{half}sys.exit"))
    sentences = [["a"], ["b", "crash", "here"], ["c", "d"], ["crash", "there"], ["e"]]
    found = outcomes(Command.from_user(f"{sys.executable} {script}", "conllu"), sentences)
    for index, name in ((1, "here"), (3, "there")):
        fault = found[index]
        assert isinstance(fault, BadParse) and fault.reason == FAILED
        assert f"status 1: cannot parse {name}" in str(fault)
    assert [found[i] for i in (0, 2, 4)] == [chain(sentences[i]) for i in (0, 2, 4)]


def test_a_command_that_has_more_to_say_is_not_waited_for():
    """What it writes after the fault does not fit into a pipe."""

    def stop(*_: object) -> None:
        raise TimeoutError

    program = "echo no columns; echo; yes | head -c 1000000"
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(30)
    try:
        with pytest.raises(DataError, match="output of the parser:1: "):
            outcomes(Command.from_user(program, "conllu"), [["word"]])
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_a_sentence_that_is_left_out_gets_no_other_s_parse(program):
    sentences = [["a"], ["silence", "b"], ["c", "d"]]
    found = outcomes(Command.from_user(program, "conllu"), sentences)
    assert isinstance(found[1], BadParse) and found[1].reason == DROPPED
    assert (found[0], found[2]) == (chain(["a"]), chain(["c", "d"]))


def test_words_with_white_space_have_no_parse(program):
    sentences = [["New\u00a0York", "sleeps"], ["a", "b"], ["a b", "\u3000"]]
    parser = ExternalParser(Command.from_user(program, "conllu"))
    assert parser(sentences) == [None, chain(["a", "b"]), None]
    assert parser(sentences[:1]) == [None]


@pytest.mark.parametrize(
    ("command", "sentences", "message"),
    [
        ("cat /no/such/file", 200, "status 1: cat: /no/such/file: No such file"),
        ("cat", 20_000, "output of the parser:1: "),  # another format
        ("udpipe-2000 -p", 1, r"^udpipe-2000 -p: .*127: .*udpipe-2000.*not found;"),
    ],
)
def test_what_is_wrong_with_a_command_is_one_line(command, sentences, message):
    with pytest.raises(DataError, match=message):
        outcomes(Command.from_user(command, "conllu"), [["not", "parsed"]] * sentences)


def test_program_and_files_of_a_command_are_known(program, tmp_path):
    files = Command.from_user(program, "conllu").files()
    assert files == [Path(sys.executable), tmp_path / "chain's program.py"]
    assert Command.from_user("udpipe-2000 --parse", "conllu").files() == []
    with pytest.raises(DataError, match="No closing quotation"):
        Command.from_user("udpipe 'model", "conllu")


def test_a_command_may_be_any_that_the_shell_runs(program, tmp_path):
    script = tmp_path / "chain's program.py"
    for command in (f"LC_ALL=C {program}", f"cd .. && {program}", f"set -e; {program}"):
        made = Command.from_user(command, "conllu")
        assert script in made.files()
        assert outcomes(made, [["a", "b"]]) == [chain(["a", "b"])]


def test_eda_gets_the_words_with_the_tags_of_kytea(tmp_path, monkeypatch):
    model = japanese.install(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    command = Eda.from_model(str(model))
    assert [path.name for path in command.files()] == ["kytea", "eda", "model.etm"]
    sentences = [["猫", "が", "いる"], ["はい"]]
    found = outcomes(command, sentences)
    assert [parse.heads for parse in found if isinstance(parse, Parse)] == [[2, 3, 0], [0]]


def test_missing_programs_say_where_they_are_from(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataError, match="kytea: no such program; install KyTea, http://www.phon"):
        Eda.from_model("model").files()
    (tmp_path / "kytea").touch(0o755)
    with pytest.raises(DataError, match="eda: no such program; install EDA, http://plata"):
        Eda.from_model("model").files()
