"""``syncattn-score --by``: words in groups, from files."""

import json
import shlex
from pathlib import Path

import pytest

from lab.tests.printed.making import line
from syncattn_lab.cli.score import main
from tests.cli.errors import read_error


def conllu(*sentences):
    """Sentences of ``WORD/TAG/PARENT/LABEL``, as CoNLL-U."""
    lines = []
    for sentence in sentences:
        for number, word in enumerate(sentence.split(), 1):
            form, tag, head, label = word.split("/")
            lines.append(f"{number}\t{form}\t_\t{tag}\t_\t_\t{head}\t{label}\t_\t_\n")
        lines.append("\n")
    return "".join(lines)


ROOT = "sleeps/VERB/0/root"
FILES = {
    "ref": "der Hund schläft\ndie alte Katze schläft\n",
    "one": "der Hund schläft\ndie Katze schläft .\n",
    "two": "das Hund schläft\ndie alte Katze ist\n",
    "source": "the dog sleeps\nthe old cat sleeps\n",
    "heads": "2 3 0\n3 3 4 0\n",
    "labels": "det nsubj root\ndet amod nsubj root\n",
    "conllu": conllu(
        f"the/DET/2/det dog/NOUN/3/nsubj {ROOT}",
        f"the/DET/3/det old/ADJ/3/amod cat/NOUN/4/nsubj {ROOT}",
    ),
    "align": "0-0 1-1 2-2 2?0\n0-0 1-1 2-2 3-3\n",
    "one.align": "0-0 1-1 2-2\n0-0 2-1 3-2\n",
    "train.de": "der Hund schläft\nder Hund bellt\ndie Katze schläft\n",
    "train.en": "the dog sleeps\nthe cat barks\n",
    "forced": line("der Hund schläft", source="the dog sleeps", links=[(0, 0), (1, 1)], forced=True)
    + line("die alte Katze schläft", source="the old cat sleeps", links=[(2, 2)], forced=True),
}
BASE = shlex.split("--references ref --tokenize none --json - --system One one")
PARSED = shlex.split("--source source --source-heads heads --source-labels labels")


def run(capsys, arguments):
    """Return the groups, by kind, measure, group and system."""
    assert main([*BASE, *shlex.split(arguments)]) == 0
    out, err = capsys.readouterr()
    assert not err
    words = json.loads(out)["words"]
    found = {
        (score["kind"], score["measure"], score["group"], score["system"]): score
        for score in words["groups"]
    }
    return {key: (score["right"], score["total"]) for key, score in found.items()}, words


def select(found, kind, measure="recall", system="One"):
    return {
        group: value
        for (one, name, group, of), value in found.items()
        if (one, name, of) == (kind, measure, system)
    }


def test_groups_by_labels_and_parts_of_speech(files, capsys):
    found, words = run(
        capsys, "--alignments align --source-parses conllu --by label,pos --system Two two"
    )
    assert words["alignment"] == "align, sure links" and words["left_out"] == 0
    assert select(found, "label") == {
        "det": (2, 2),
        "nsubj": (2, 2),
        "root": (2, 2),
        "amod": (0, 1),
    }
    labels = select(found, "label", system="Two")
    assert labels == {"det": (1, 2), "nsubj": (2, 2), "root": (1, 2), "amod": (1, 1)}
    assert select(found, "pos") == {"DET": (2, 2), "NOUN": (2, 2), "VERB": (2, 2), "ADJ": (0, 1)}
    assert select(found, "all", "precision") == {"all": (6, 7)}
    assert not select(found, "label", "precision")


def test_heads_and_labels_serve_as_parses(files, capsys):
    parsed = shlex.join(PARSED)
    found, _ = run(capsys, f"{parsed} --links one.align --by label,arc,depth")
    assert select(found, "arc") == {
        "root": (2, 2),
        "1": (2, 3),
        "2": (1, 1),
        "parent to the right": (3, 4),
    }
    assert select(found, "link") == {"no link": (1, 1)}
    assert select(found, "depth")["2"] == (2, 2)


def test_precision_by_label_needs_links_of_the_translations(files, capsys):
    found, _ = run(
        capsys,
        "--alignments align --source-parses conllu --by label --translation-links One one.align",
    )
    precision = select(found, "label", "precision")
    assert precision == {"det": (2, 2), "nsubj": (2, 2), "root": (2, 2)}
    assert select(found, "link", "precision") == {"no link": (0, 1)}


def test_what_needs_no_parse_needs_none(files, capsys):
    found, words = run(capsys, "--source source --target-training train.de --by frequency,length")
    assert words["alignment"] == ""
    assert select(found, "frequency") == {"0": (0, 1), "1-9": (6, 6)}
    assert select(found, "frequency", "precision") == {"0": (0, 1), "1-9": (6, 6)}
    assert select(found, "length") == {"1-10": (6, 7)}


def test_every_kind_that_the_files_allow(files, capsys):
    found, _ = run(capsys, "--source source --target-training train.de --by all")
    assert {kind for kind, *_ in found} == {"all", "frequency", "length"}
    everything = "--source-parses conllu --links align --target-training train.de"
    found, _ = run(capsys, f"{everything} --source-training train.en --by all")
    assert {kind for kind, *_ in found} == {
        *("all", "label", "pos", "arc", "depth", "frequency", "length", "unseen")
    }
    assert select(found, "unseen") == {"unseen": (0, 1), "seen": (6, 6)}


def test_links_are_those_of_a_model_if_there_are_no_others(files, capsys):
    """And words are those of its parses, split as the references are."""
    Path("raw").write_text("der Hund schläft.\ndie alte Katze schläft.\n", encoding="utf-8")
    model = line("der Hund schläft.", source="the dog sleeps.", links=[(2, 2)], forced=True)
    model += line("die alte Katze schläft.", source="the old cat sleeps.", links=[], forced=True)
    Path("raw.forced").write_text(model, encoding="utf-8")
    parses = conllu(f"the/DET/2/det dog/NOUN/3/nsubj {ROOT} ./PUNCT/3/punct", f"no/X/2/x {ROOT}")
    Path("raw.conllu").write_text(parses, encoding="utf-8")
    arguments = "--references raw --json - --system One raw raw.forced --source-parses raw.conllu"
    assert main([*shlex.split(arguments), "--by", "label"]) == 0
    words = json.loads(capsys.readouterr().out)["words"]
    assert words["alignment"] == "the attention of One" and words["left_out"] == 1
    labels = [score for score in words["groups"] if score["kind"] == "label"]
    # "schläft" and "." are one word of the model, whose link is of both.
    assert {s["group"]: s["total"] for s in labels} == {"root": 2, "punct": 2}
    assert [s["total"] for s in words["groups"] if s["kind"] == "link"] == [2]


def test_tables_are_text_or_markdown(files, capsys):
    command = [*BASE[:3], *shlex.split("none --system One one --system Two two --baseline One")]
    command += shlex.split("--alignments align --source-parses conllu --by label")
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    [start] = [n for n, text in enumerate(lines) if text.startswith("recall by label")]
    assert lines[start].split() == ["recall", "by", "label", "words", "system", "%"]
    assert lines[start + 1].split() == ["det", "2", "One", "100.00"]
    assert lines[start + 2].split() == ["2", "Two", "50.00"]
    assert any(text.startswith("label (dependency label): of the source ") for text in lines)
    assert not any("p Holm" in text for text in lines), "nothing is tested"
    assert main([*command, "--markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (
        "| recall by label | words | system | % |" in lines
        and "| det | 2 | One | 100.00 |" in lines
    )
    assert lines[0].startswith("| system | BLEU |")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--by label", "--by label needs --links and --source-labels"),
        ("--by frequency", "--by frequency needs --target-training"),
        ("--by all", "--by all: nothing is given to group words by; give --source"),
        ("--by unseen --source-training train.en", "--source-training needs --source"),
        ("--by length --source-parses heads", "heads:1: expected 10 columns"),
        ("--by label --source-parses short", "short: has 1 sentences, but there are 2 references"),
        (
            "--by label --source-parses conllu --links short.align",
            "short.align: has 1 lines, but there are 2 ref",
        ),
        (
            "--by label --source-parses conllu --links far.align",
            "far.align: sentence 1: link 0-9, counted from 0, lies outside the 3 source or",
        ),
        (
            "--source source --by label --source-parses other --links model",
            "model: the links do not fit the source and the references; check that they",
        ),
        (
            "--by label --source-parses conllu --links align --translation-links X align",
            "--translation-links X: no --system has this name",
        ),
        ("--by label --baseline X --source-parses conllu --links align", "no system is named X"),
    ],
)
def test_what_does_not_fit_is_a_line(files, capsys, arguments, message):
    Path("short").write_text(conllu(ROOT), encoding="utf-8")
    Path("short.align").write_text("0-0\n", encoding="utf-8")
    Path("far.align").write_text("0-9\n0-0\n", encoding="utf-8")
    model = line("ja", source="yes", links=[(0, 0)], forced=True)
    Path("model").write_text(2 * model, encoding="utf-8")
    Path("other").write_text(conllu(ROOT, ROOT), encoding="utf-8")
    source = "" if "source" in arguments or "all" in arguments else "--source source"
    assert message in read_error(capsys, main([*BASE, *shlex.split(f"{arguments} {source}")]))


def test_an_unknown_kind_is_refused(files, capsys):
    with pytest.raises(SystemExit):
        main([*BASE, "--by", "label,colour"])
    assert "choose all, or some of label, pos, arc" in capsys.readouterr().err
