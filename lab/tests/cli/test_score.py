import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import syncattn_fairseq
from lab.tests.printed.making import line
from syncattn_lab.cli.score import main
from syncattn_lab.synthetic.generated_corpus import generate
from tests.cli.errors import read_error
from tests.importing import in_a_process

DOG = {"source_heads": [2, 1], "target_heads": [0, 0], "forced": True}
FILES = {
    "ref": "der Hund\nja\n",
    "heads.en": "2 0\n0\n",
    "heads.de": "2 0\n\n",
    "align": "1-1 2-2\n1?1\n",
    "beam": "S-1\tyes\nH-1\t-1\tja\nS-0\tthe dog\nH-0\t-1\td@@ er Hund\n",
    "plain": "der Hund\nnein\n",
    "source": "the dog\nyes , it does so when it wants to do so\n",
    "forced": line("d@@ er Hund", source="the d@@ og", **DOG, links=[(0, 0), (0, 1), (2, 2)])
    + line("ja", source="yes", source_heads=[0], target_heads=[0], links=[(0, 0)]),
}


SYSTEMS = shlex.split("--system Ours beam forced --system Plain plain --references ref")
PLAIN = shlex.split("--system Plain plain --references ref")
GOLD = shlex.split("--source-heads heads.en --target-heads heads.de --alignments align --one-based")


UNUSED = (
    "warning: --source-heads is not used for Plain: printed no parses; --target-heads is not used "
    "for Plain: printed no parses in forced output; --alignments is not used for Plain: printed no "
    "links in forced output\n"
)


def test_compound_split(files, capsys):
    pytest.importorskip("sacremoses")
    assert main([*PLAIN, "--compound-split", "de", "--json", "numbers"]) == 0
    output = capsys.readouterr().out
    assert "BLEU, compounds split" in output and "not to be compared" in output
    numbers = json.loads(Path("numbers").read_text())["systems"]["Plain"]
    assert "split-compounds" in numbers["compound_split_bleu"]["signature"]


def test_table_of_the_real_command(files):
    command = [*in_a_process("syncattn_lab.cli.score"), *SYSTEMS, *GOLD]
    environment = os.environ | {"PYTHONPATH": str(Path(syncattn_fairseq.__file__).parents[1])}
    environment.pop("SACREBLEU_SEED", None)
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert (result.returncode, result.stderr) == (0, UNUSED)
    lines = result.stdout.splitlines()
    assert " ".join(lines[0].split()) == (
        "system BLEU chrF RIBES UAS source UAS target AER length sentences"
    )
    # UAS source 2 of 3, target 1 of 1; |A| = 3, |S| = 2, every sure link is found, none is wrong.
    assert lines[1].split() == [
        *("Ours", "0.00", "100.00", "100.00", "66.67", "100.00", "0.00", "100.0", "2")
    ]
    assert lines[2].split()[4:7] == ["–", "–", "–"]
    assert len({len(line) for line in lines[:3]}) == 1
    assert lines[4].startswith("length: ") and lines[5].startswith("BLEU nrefs:1|")
    assert lines[6].startswith("chrF nrefs:1|") and "|nc:6|" in lines[6]
    assert lines[7] == "RIBES nrefs:1|case:mixed|alpha:0.25|beta:0.1|tok:13a"
    assert "50.0 % of the words" in lines[8]


def test_the_files_that_are_made_are_named(files, capsys):
    assert main([*PLAIN, "--json", "n", "--latex", "t.tex", "--text", "text"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("system ") and "t.tex" not in out
    assert err == "n: all numbers\ntext: the translations\nt.tex: a table for LaTeX\n"
    assert main([*PLAIN, "--json", "-", "--text", "/dev/null"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) and not err


@pytest.mark.parametrize("bad", ["text", "latex", "json"])
def test_all_files_are_made_or_none(files, capsys, bad):
    (files / "new").mkdir()
    places = {**dict.fromkeys(("text", "latex", "json"), "new"), bad: "nowhere"}
    assert "nowhere" in read_error(
        capsys, main([*PLAIN, *(f"--{kind}={place}/x.{kind}" for kind, place in places.items())])
    )
    assert not list((files / "new").iterdir())


def test_json_of_everything(files, capsys):
    command = [*SYSTEMS, *GOLD, "--baseline", "Plain", "--by-length", "--json"]
    assert main([*command, "scores.json"]) == 0
    assert capsys.readouterr().out.startswith("system")
    assert main([*command, "-"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert written == json.loads((files / "scores.json").read_text(encoding="utf-8"))
    ours, plain = written["systems"].values()
    assert ours["source_attachment"]["uas"] == pytest.approx(2 / 3)
    assert ours["target_attachment"]["coverage"] == 0.5
    assert ours["alignment"] == {"aer": 0, "precision": 1, "recall": 1, "margin": 0}
    assert plain["alignment"] is plain["target_detail"] is plain["source_attachment"] is None
    assert ours["ribes"]["score"] == 100
    assert ours["significance"]["baseline"] == "Plain"
    assert ours["significance"].keys() == {
        *("baseline", "difference", "confidence", "p", "corrected", "verdict", "signature"),
        "interval",
    }
    assert plain["significance"]["p"] is None
    assert plain["bleu_by_length"] == {"1-10": {"sentences": 2, "bleu": 0, "interval": None}}

    assert main([*SYSTEMS, "--by-length", "--source", "source", "--json", "-"]) == 0
    systems = json.loads(capsys.readouterr().out)["systems"]
    assert list(systems["Ours"]["bleu_by_length"]) == ["1-10", "11-20"]
    assert systems["Ours"]["significance"] is None


def test_attachment_is_beside_parses_without_syntax(files, capsys):
    (files / "train.de").write_text("d@@ er Hund\nd@@ er K@@ ater\nja\n", encoding="utf-8")
    (files / "train.heads").write_text("2 0\n2 0\n\n", encoding="utf-8")
    counts = ["--target-counts", "train.de", "train.heads"]
    assert main([*SYSTEMS, *GOLD, *counts]) == 0
    out = capsys.readouterr().out
    # Of "der Hund ja", one word counts: "Hund", the root. Both after "der" were roots.
    assert "every parent is so many words farther on): best offset " in out
    assert "words farther on): best offset root 100.0, counts 100.0, random trees " in out
    assert main([*SYSTEMS, *GOLD, *counts, "--json", "-"]) == 0
    ours, plain = json.loads(capsys.readouterr().out)["systems"].values()
    assert [*ours["source_baselines"]] == ["best offset +1", "random trees"]
    assert ours["target_baselines"]["counts"]["uas"] == 1
    assert plain["source_baselines"] == plain["target_baselines"] == {}


def test_the_table_of_counts_sees_no_more_and_no_less_than_the_rows(files, capsys):
    """After "der", two of three words have their parent just before them, but "Hund" is a root."""
    text = "d@@ er Hund\nd@@ er Kater\nd@@ er Kater\n"
    (files / "train.de").write_text(text, encoding="utf-8")
    (files / "train.heads").write_text("2 0\n0 1\n0 1\n", encoding="utf-8")
    counts = ["--target-counts", "train.de", "train.heads", "--json", "-"]
    for rows, uas in (
        ([], 0),
        (["--target-rows", "predicted"], 0),
        (["--target-rows", "input"], 1),
    ):
        assert main([*SYSTEMS, *GOLD, *counts, *rows]) == 0
        ours, _ = json.loads(capsys.readouterr().out)["systems"].values()
        assert ours["target_baselines"]["counts"]["uas"] == uas


def test_counts_that_do_not_fit(files, capsys):
    (files / "train.heads").write_text("2 0\n0\n0\n", encoding="utf-8")
    said = read_error(capsys, main([*SYSTEMS, "--source-counts", "source", "train.heads"]))
    assert "--source-counts needs --source-heads, with which" in said
    said = read_error(capsys, main([*SYSTEMS, *GOLD, "--source-counts", "source", "train.heads"]))
    assert "train.heads: has 3 lines, but source has 2" in said
    said = read_error(capsys, main([*SYSTEMS, *GOLD, "--source-counts", "source", "heads.en"]))
    assert "heads.en:2: 11 words, but 1 heads" in said


def test_detokenize(files, capsys):
    (files / "beam").write_text("der Hund bellt laut , ja .\n", encoding="utf-8")
    (files / "ref").write_text("der Hund bellt laut, ja.\n", encoding="utf-8")
    arguments = shlex.split("--system Ours beam --references ref --json -")
    assert main([*arguments, "--detokenize", "moses:de"]) == 0
    assert json.loads(capsys.readouterr().out)["systems"]["Ours"]["chrf"]["score"] == 100
    with pytest.raises(SystemExit):
        main([*arguments, "--detokenize", "moses:xx"])
    error = capsys.readouterr().err
    assert (
        "the Moses tokenizer does not know the language 'xx'; give one of as bn" in error
        and error.count("\n") == 1
    )


TOKENISED, PLAIN_TEXT = "der Hund bellt laut , ja .\n", "der Hund bellt laut, ja.\n"


@pytest.mark.parametrize(("words", "said"), [("a b c d e", ""), ("a b c d e f", "150 %")])
def test_translations_that_are_far_too_long_are_noticed(files, capsys, words, said):
    (files / "plain").write_text(f"{words}\n", encoding="utf-8")
    (files / "ref").write_text("a b c d\n", encoding="utf-8")
    assert main([*PLAIN, "--tokenize", "none", "--json", "-"]) == 0
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("reference", "output", "warned"),
    [
        (TOKENISED, PLAIN_TEXT, True),
        (TOKENISED, TOKENISED, False),
        (PLAIN_TEXT, PLAIN_TEXT, False),
        (PLAIN_TEXT, TOKENISED, False),  # sacreBLEU warns of that where there are enough lines
        (TOKENISED, "der Hund bellt\n", False),
        (TOKENISED, "Hr. Hund , ja\n", False),
    ],
)
def test_tokenised_references_of_plain_text_are_noticed(files, capsys, reference, output, warned):
    (files / "plain").write_text(output, encoding="utf-8")
    (files / "ref").write_text(reference, encoding="utf-8")
    assert main([*PLAIN, "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert "Plain" in json.loads(out)["systems"]
    assert err.startswith("warning: system Plain: its text is not tokenised") == warned
    assert (err == "") != warned


def test_references_of_another_text_are_noticed(files, capsys):
    text = [f"der Hund {n} bellt laut über den Zaun in der Straße ." for n in range(20)]
    other = [f"quite unlike {n} would it be to go away" for n in range(20)]
    (files / "ref").write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    command = [*PLAIN, "--tokenize=none", "--json=-"]
    nearly = [*text[:-1], "der Hund"]
    for lines, warned in ((other, True), (nearly, False), ([""] * 20, True)):
        (files / "plain").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        assert main(command) == 0
        err = capsys.readouterr().err
        assert err.startswith("warning: system Plain: BLEU is 0.") == warned, err
        assert err.count("\n") == warned and ("as low as for a wrong text" in err) == warned
    # Short sentences without four words have no BLEU, but they are right.
    (files / "ref").write_text("ja gerne\nnein danke\n", encoding="utf-8")
    (files / "plain").write_text("ja gerne\nnein danke\n", encoding="utf-8")
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["systems"]["Plain"]["bleu"]["score"] == 0 and err == ""


def test_a_file_that_is_given_twice_is_noticed(files, capsys):
    for arguments, said in (
        (["--system", "A", "ref"], "ref: the same file is given as --references and as --system A"),
        (["--system", "A", "plain", "--source", "ref"], "as --references and as --source"),
        (["--system", "A", "plain", "--system", "B", "./plain"], "--system A and as --system B"),
        (["--system", "A", "plain", "--source", "source"], ""),
    ):
        assert main([*arguments, "--references=ref", "--tokenize=none", "--json=-"]) == 0
        err = capsys.readouterr().err
        assert (said in err and err.count("\n") == 1) if said else err == ""


def test_swapped_sides_are_noticed(files, capsys):
    pairs = [*generate(40, seed=1)]
    texts = {"source": [" ".join(p.source.words) for p in pairs]}
    texts["ref"] = [" ".join(p.target.words) for p in pairs]
    texts["good"] = [f"{line} ja" for line in texts["ref"]]
    texts["swapped"] = [f"{line} yes" for line in texts["source"]]
    for name, lines in [*texts.items(), ("same", texts["ref"]), ("copied", texts["source"])]:
        (files / name).write_text("".join(f"{line}\n" for line in lines))
    printed = zip(texts["source"], texts["swapped"], strict=True)
    shown = "".join(f"S-{n}\t{a}\nH-{n}\t-1\t{b}\n" for n, (a, b) in enumerate(printed))
    (files / "printed").write_text(shown)
    like_source = (
        "the translations read like the source, and not like the references; check that source"
    )
    for name, said, source in (
        ("good", "", True),
        ("same", "the translations are the same as the references; check that", True),
        ("same", "the translations are the same as the references; check that", False),
        ("copied", "the translations are the same as the source; check that", True),
        ("swapped", like_source, True),
        ("printed", like_source, False),
    ):
        arguments = ["--system", "A", name, "--references=ref", "--tokenize=none", "--json=-"]
        assert main([*arguments, *(["--source=source"] if source else [])]) == 0
        lines = capsys.readouterr().err.splitlines()
        assert [line for line in lines if "BLEU is" not in line] == (
            [next(line for line in lines if said in line)] if said else []
        )


def test_forced_output_in_the_place_of_translations_is_noticed(files, capsys):
    forced = "T-0\tder <<unk>>\nH-0\t-1\tder <unk>\nT-1\tja\nH-1\t-1\tja\n"
    command = ["--system", "Ours", "beam", "--references", "ref", "--tokenize=none", "--json=-"]
    for printed, warned in ((forced, True), (forced.replace("\tja\nH", "\tnein\nH"), False)):
        (files / "beam").write_text(printed, encoding="utf-8")
        assert main(command) == 0
        err = capsys.readouterr().err
        assert ("Ours: the translations are the references, as in forced" in err) == warned


def test_gold_that_is_compared_with_nothing_is_named(files, capsys):
    for option in ("--source-heads", "--target-heads"):
        error = read_error(capsys, main([*PLAIN, option, "heads.en", "--json", "scores"]))
        assert f"{option} is not used for Plain: printed no parses" in error
    assert not (files / "scores").exists()


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\n", "\x1b", "\x85"])
def test_a_name_must_fit_into_a_line(files, capsys, character):
    command = ["--system", f"a{character}b", "plain", "--references", "ref", "--tokenize=none"]
    assert main(command) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: --system 'a\\") and err.count("\n") == 1 and err.isascii()
    command[1] = "名前\u3000b"
    assert main([*command, "--json=-"]) == 0


OUT_OF_RANGE = (
    "heads:1: a head is out of range; write 0 for the root, and k for the k-th of the 2 words"
)


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({"ref": "ja\n"}, SYSTEMS, "system Ours: 2 translations, but 1 references"),
        ({"beam": "H-0\t-1\tja\n"}, SYSTEMS, "system Ours: 1 translations, but 2 references"),
        ({}, SYSTEMS[:4] + SYSTEMS, "--system Ours: give each name once"),
        ({}, ["--system", "Ours", "--references", "ref"], "--system Ours: give each name once"),
        (
            {"beam": FILES["plain"], "forced": line("ja", source="a")},
            SYSTEMS,
            "system Ours: the forced output has 1 sentences, but there are 2 references",
        ),
        ({"align": "1-1 x\n\n"}, SYSTEMS + GOLD, "align:1: 'x' is not a link"),
        ({"align": "\n0-1\n"}, SYSTEMS + GOLD[:-1], "sentence 2: gold link 0-1, counted from 0, "),
        ({"heads.de": "2 0 0\n\n"}, SYSTEMS + GOLD, "target: sentence 1: 2 heads, 3 gold heads"),
        ({}, [*SYSTEMS, "--source-heads", "none.there"], "none.there"),
        ({}, [*SYSTEMS, "--baseline", "Old"], "no system is named Old; choose one of Ours, Plain"),
        ({}, [*PLAIN, "--by-length"], "no output has the source"),
        (
            {"ref": "", "plain": ""},
            PLAIN,
            "plain: the file is empty; give translations, one on each line",
        ),
        ({}, [*PLAIN, "--tokenize", "ko-mecab"], "--tokenize ko-mecab: "),
        (
            {},
            [*PLAIN, "--compound-split", "xx"],
            "the Moses tokenizer does not know the language 'xx'",
        ),
        *(
            ({"heads": "7 7\n0\n"}, [*SYSTEMS, f"--{side}-heads", "heads"], OUT_OF_RANGE)
            for side in ("source", "target")
        ),
        *(
            (
                {"gold": "\n\n\n"},
                [*PLAIN, option, "gold"],
                f"{option}: has 3 lines, but there are 2 refer",
            )
            for option in (
                *("--alignments", "--source", "--source-heads", "--target-heads"),
                *("--source-labels", "--target-labels", "--source-trees", "--target-trees"),
            )
        ),
    ],
)
def test_one_line_says_what_is_wrong(files, capsys, monkeypatch, change, arguments, message):
    if "--compound-split" in arguments:
        pytest.importorskip("sacremoses")
    monkeypatch.setitem(sys.modules, "mecab_ko", None)  # of a tokenizer; it is not installed
    for name, text in change.items():
        (files / name).write_text(text, encoding="utf-8")
    assert message in read_error(capsys, main([*arguments, "--json", "scores.json"]))
    assert not (files / "scores.json").exists()


def test_latex(files, capsys):
    systems = shlex.split("--system A_1 beam forced --system Plain plain --references ref")
    assert main([*systems, *GOLD, "--baseline", "Plain", "--latex", "t.tex", "--json", "n"]) == 0
    table = (files / "t.tex").read_text(encoding="utf-8").splitlines()
    numbers = json.loads((files / "n").read_text(encoding="utf-8"))["systems"]
    assert [line for line in table if "&" in line] == [
        r"system & BLEU & chrF & RIBES & UAS source & UAS target & AER \\",
        r"A\_1 & 0.00 & 100.00 & 100.00 & 66.67 & 100.00 & 0.00 \\",
        rf"Plain & 0.00 & {numbers['Plain']['chrf']['score']:.2f} & 50.00 & -- & -- & -- \\",
    ]
    assert r"\begin{tabular}{lrrrrrr}" in table and table[0].startswith("% BLEU nrefs:1|")

    assert main([*PLAIN, "--latex", "t.tex"]) == 0
    assert r"system & BLEU & chrF & RIBES \\" in (files / "t.tex").read_text(encoding="utf-8")


def test_latex_marks_what_differs_by_more_than_chance(files):
    text = "".join(f"der Hund sah {n} andere Hunde .\n" for n in range(40))
    (files / "ref").write_text(text, encoding="utf-8")
    (files / "old").write_text(text.replace("sah", "sieht"), encoding="utf-8")
    (files / "new").write_text(text, encoding="utf-8")
    command = shlex.split("--system Old old --system New new --references ref --tokenize none")
    assert main([*command, "--baseline", "Old", "--latex", "t.tex"]) == 0
    rows = [line for line in (files / "t.tex").read_text("utf-8").splitlines() if "&" in line]
    assert [row.split(" & ")[1][-17:] for row in rows[2:]] == [r"\rlap{$^\dagger$}"]
    assert not [row for row in rows[:2] if "dagger" in row]
    assert main([*command, "--baseline", "New", "--latex", "t.tex"]) == 0
    rows = [line for line in (files / "t.tex").read_text("utf-8").splitlines() if "&" in line]
    assert [r"\rlap{$^\ddagger$}" in row for row in rows] == [False, True, False]


def test_parts_layers_and_trees(files, capsys):
    (files / "labels.en").write_text("det root\nroot\n", encoding="utf-8")
    (files / "trees.de").write_text("(NP (DT der) (NN Hund))\n\n", encoding="utf-8")
    first = {(1, 0): [(0, 0), (0, 1), (2, 2)], (2, 0): [(2, 0), (2, 1), (2, 2)]}
    dog = {"links": first[1, 0], "layer_links": first, "target_distances": {1: [0.1, 0.2, 0.3]}}
    yes = {"links": [(0, 0)], "layer_links": {(1, 0): [(0, 0)], (2, 0): [(0, 0)]}}
    yes |= {"source_heads": [0], "target_heads": [0], "target_distances": {1: [0.1]}}
    lines = line("d@@ er Hund", source="the d@@ og", **DOG, **dog) + line("ja", source="yes", **yes)
    (files / "forced").write_text(lines, encoding="utf-8")
    gold = [*GOLD, "--source-labels", "labels.en", "--target-trees", "trees.de"]
    assert main([*SYSTEMS, *gold, "--json", "-"]) == 0
    ours = json.loads(capsys.readouterr().out)["systems"]["Ours"]
    detail = ours["source_detail"]
    # The heads of "the dog" are 2 0, predicted are 2 1; "yes" is 0.
    assert {k: v["uas"] for k, v in detail["by_distance"].items()} == {"root": 0.5, "1": 1.0}
    assert {k: v["uas"] for k, v in detail["by_label"].items()} == {"root": 0.5, "det": 1.0}
    assert ours["target_detail"]["by_label"] is None
    assert ours["layer_alignment"]["1"] == ours["alignment"]
    # "Hund-dog" is right, "der-dog" wrong: |A| = 3 with the possible one, |S| = 2.
    assert ours["layer_alignment"]["2"]["aer"] == pytest.approx(1 - 3 / 5)
    assert ours["target_brackets"]["1"]["evalb"]["f1"] == 1 and ours["source_brackets"] == {}


def test_bleu_of_several_test_sets_and_their_mean(files, capsys):
    Path("two").write_text("der Hund bellt sehr laut .\nja\nder Hund bellt laut .\n")
    Path("refs").write_text("der Hund bellt sehr laut .\nja\nder Hund bellt .\n")
    options = shlex.split("--references refs --system A two --tokenize none --json numbers")
    assert main([*options, "--parts", "one:2,two:1"]) == 0
    output = capsys.readouterr().out
    found = json.loads(Path("numbers").read_text())["systems"]["A"]["bleu_by_part"]
    assert list(found) == ["one", "two", "mean"]
    assert found["one"] == pytest.approx(100) and 0 < found["two"] < 100
    assert found["mean"] == pytest.approx((found["one"] + found["two"]) / 2)
    assert "BLEU of each test set, and its mean" in output
    assert main([*options, "--parts", "a:1,b:1,c:1"]) == 0
    three = json.loads(Path("numbers").read_text())["systems"]["A"]["bleu_by_part"]
    assert three["c"] == pytest.approx(found["two"]) and three["a"] == pytest.approx(100)
    assert main([*options, "--parts", "one:2,two:2"]) == 1
    assert (
        "--parts: the parts have 4 sentences, but the references have 3" in capsys.readouterr().err
    )
    with pytest.raises(SystemExit):
        main([*options, "--parts", "one"])


def test_words_are_cut_anew_on_both_sides(files, capsys):
    Path("words").write_text("京都 の 寺 です\n")
    Path("raw").write_text("京 都の 寺です\n")
    options = shlex.split("--references raw --system A words --tokenize none --json numbers")
    assert main([*options, "--words-by", "sed 's/./& /g'"]) == 0
    score = json.loads(Path("numbers").read_text())["systems"]["A"]
    assert score["bleu"]["score"] == pytest.approx(100)
    assert score["ribes"]["score"] == pytest.approx(100)
    for command, message in (
        ("no-such-program", "--words-by no-such-program: No such file"),
        ("false", "--words-by false: ended with status 1"),
        ("sed 1d", "--words-by sed 1d: ended with status 0: wrote 0 lines for 1 sentences"),
        ("kytea '", "--words-by kytea ': No closing quotation"),
        ("", "--words-by: the command is empty"),
        (r"printf '\377\n'", "the program's output is not UTF-8"),
        (r"sh -c 'printf \\377 >&2; exit 3'", "ended with status 3: \ufffd"),
    ):
        capsys.readouterr()
        assert main([*options, "--words-by", command]) == 1
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1


def test_scores_of_other_programs(files, capsys):
    count = len(Path("ref").read_text().splitlines())
    for name, value in (("a", 0.25), ("b", 0.75)):
        Path(name).write_text(f"{value}\n" * count)
    comet = ["--sentence-scores", "COMET", "Plain", "a", "--sentence-scores", "COMET", "Ours", "b"]
    command = [*SYSTEMS, *GOLD, *comet]
    assert main([*command, "--baseline=Plain", "--json=scores.json"]) == 0
    assert "\nsystem   COMET  " in capsys.readouterr().out
    systems = json.loads(Path("scores.json").read_text())["systems"]
    assert systems["Ours"]["sentence_scores"]["COMET"]["difference"] == 0.5
    assert systems["Plain"]["sentence_scores"]["COMET"]["mean"] == 0.25
    for wrong, message in (
        (["COMET", "Other", "a"], "--sentence-scores Other: no --system has this name"),
        (
            ["COMET", "Ours", "b"],
            "--sentence-scores COMET Ours: is given twice; give each measure of a system once",
        ),
        (
            ["BLEURT", "Ours", "short"],
            f"short: has 1 scores, but there are {count} references; give one score for each "
            "sentence",
        ),
    ):
        Path("short").write_text("1\n")
        assert main([*command, "--sentence-scores", *wrong]) == 1
        assert capsys.readouterr().err == f"error: {message}\n"


def test_parses_of_raw_sentences_are_scored_in_the_words_of_gold(raw_corpus, tmp_path, monkeypatch):
    """The same heads, and so many right, as of the pieces of the gold words."""
    from syncattn_fairseq.cli.translate import main as translate
    from syncattn_fairseq.data.parses import read_heads, read_spans
    from syncattn_fairseq.data.words import split_units

    monkeypatch.chdir(tmp_path)
    words = raw_corpus.folder / "words"
    (tmp_path / "ref").write_text((words / "test.de").read_text())
    # Two gold words are one, and one is two, in the first sentence.
    spans = [*read_spans(words / "test.spans.en")]
    heads = [*read_heads(words / "test.heads.en")]
    begin, end = spans[0][0]
    spans[0][:1] = [(begin, begin + 1), (begin + 1, end)]
    heads[0] = [head and head + 1 for head in [0, *heads[0]]]
    heads[0][0] = 2
    lines = [" ".join(f"{a}-{b}" for a, b in each) + "\n" for each in spans]
    Path("spans").write_text("".join(lines))
    Path("heads").write_text("".join(" ".join(map(str, each)) + "\n" for each in heads))
    common = ["--path", str(raw_corpus.trained()), "--data-bin", str(raw_corpus.data)]
    common += ["--subwords", str(raw_corpus.subwords), "--device", "cpu"]
    arguments = ["--input", str(words / "test.en"), "--force", "ref", "--jsonl"]
    with open("forced", "w") as file, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", file)
        assert translate([*common, *arguments]) == 0
    counts = [str(words.parent / "pieces/train.en"), str(words / "train.heads.en")]
    more = [str(words / "train.spans.en"), str(words / "train.en")]
    scored = ["--references", "ref", "--source", str(words / "test.en"), "--json", "numbers"]
    scored += ["--source-heads", "heads", "--source-spans", "spans"]
    scored += ["--system", "A", "ref", "forced", "--source-counts", *counts]
    assert main([*scored, *more]) == 0
    found = json.loads(Path("numbers").read_text())["systems"]["A"]
    assert "counts" in found["source_baselines"]
    texts = raw_corpus.lines("test.en")
    model = raw_corpus.load(raw_corpus.trained())
    right = total = 0
    for text, pair, places, gold in zip(texts, model.parse(texts), spans, heads, strict=True):
        units = split_units(pair.source.sentence.pieces, "raw:uax29", places, text)
        unit_of = [sum(units.starts[: n + 1]) for n in range(len(units.starts))]
        truth = units.map_heads(gold)
        for unit, head in enumerate(truth, 1):
            last = len(unit_of) - 1 - unit_of[::-1].index(unit)
            guess = unit_of[pair.source.piece_heads[last]]
            right += head == (0 if guess == unit else guess)
            total += 1
    attachment = found["source_attachment"]
    assert attachment["counted"] == total == sum(map(len, heads)) - 1
    assert attachment["uas"] == pytest.approx(right / total)
    assert main([*scored, more[0]]) == 1
    assert main([option for option in [*scored, *more] if option not in scored[2:4]]) == 1


def test_what_lacks_for_gold_of_raw_sentences_is_said(files, capsys):
    Path("spans").write_text("0-1\n0-1\n")
    said = read_error(capsys, main([*SYSTEMS, *GOLD[:2], "--source-spans", "spans"]))
    assert "--source-spans needs --source, the text that the spans" in said
    said = read_error(capsys, main([*SYSTEMS, *GOLD[:2], "--source-counts", "ref", "ref", "ref"]))
    assert "--source-counts: give PIECES HEADS, or PIECES HEADS SPANS TEXT" in said
