import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from fairseq.options import get_generation_parser
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_lab.recipes.stages import (
    Step,
    new_step,
    options,
    read_pipeline,
    split_commands,
    split_words,
)

WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)


def test_a_step_is_shown_as_a_line_of_bash():
    step = read_pipeline("kytea -out tok | sed 's/ | / /'", Path("a b"), Path("out"))
    assert step.commands == (("kytea", "-out", "tok"), ("sed", "s/ | / /"))
    assert str(step) == "kytea -out tok < 'a b' | sed 's/ | / /' > out"
    assert str(Step((("a", "$(b)"),))) == "a '$(b)'"
    assert str(replace(new_step("a"), output=Path("b"))) == "a > b"


@given(st.lists(WORDS, min_size=1, max_size=4))
def test_a_shell_reads_back_every_word(words):
    shown = str(new_step("printf", "%s\\0", *words))
    done = subprocess.run(["bash", "-c", shown], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == words


def test_words():
    assert split_words("--model \"a b\" '--x=y | z' #") == ["--model", "a b", "--x=y | z", "#"]
    assert split_words("") == []
    for bad in ("a 'b", "a |", "| b", "a | | b"):
        with pytest.raises(DataError, match="quotation|missing next to"):
            split_commands(bad)


def test_options():
    given = {"one_two": 3, "flag": True, "off": False, "many": [1, 2]}
    assert list(options(given)) == ["--one-two", "3", "--flag", "--many", "1,2"]
    # A value is no option of its own.
    given = {"remove_bpe": "--user-dir=x", "lenpen": -1, "many": ["--a", "b"]}
    words = list(options(given))
    assert words == ["--remove-bpe=--user-dir=x", "--lenpen=-1", "--many=--a,b"]
    parsed = get_generation_parser().parse_args(words[:2])
    assert (parsed.user_dir, parsed.post_process, parsed.lenpen) == (None, "--user-dir=x", -1)
