import gzip
import json
import re
import shlex
import sys
from base64 import b64decode
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from sacrebleu.metrics.bleu import BLEU
from scipy.stats import binomtest

from lab.tests.printed.making import line
from lab.tests.report.corpus import LONG, SCRIPT, SOURCE, TARGET, TRANSLATED, write, write_corpus
from syncattn_fairseq.data.doctor import Finding
from syncattn_lab.cli import score, show
from syncattn_lab.evaluation.findings_file import store_findings
from tests.checkpoints import make_checkpoint
from tests.cli.errors import read_error
from tests.parsing.chain import CONLLU

LOG = "x | INFO | train_inner | epoch 001: 5 / 9 loss=2.5, sync_loss=0.5, num_updates=5, lr=1\n"


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    folder = tmp_path_factory.mktemp("report")
    return folder, write_corpus(folder)


@pytest.fixture(scope="module")
def page(arguments: tuple[Path, list[str]]) -> str:
    folder, named = arguments
    (folder / "log").write_text(LOG)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        options = ["--log", "LPSI", "log", "--title", f"Of {SCRIPT}", "--html", "r.html"]
        assert show.main([*named, *options]) == 0
    return (folder / "r.html").read_text(encoding="utf-8")


def content(page: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what the page's script reads."""
    packed = re.search(r'id="data">([A-Za-z0-9+/=]*)</script>', page)
    assert packed is not None
    head, *details = gzip.decompress(b64decode(packed[1])).decode().split("\n")
    return json.loads(head), list(map(json.loads, details))


def table(page: str, heading: str) -> list[list[str]]:
    """Return the text of the cells of the table below a heading."""
    body = page.split(f"<h2>{heading}</h2>")[1].split("</table>")[0]
    rows = re.split("<tr[^>]*>", body)[1:]
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]


def test_numbers_are_those_of_syncattn_score_and_of_sacrebleu(page, arguments, monkeypatch):
    folder, named = arguments
    monkeypatch.chdir(folder)
    command = [*named, "--baseline", "Plain", "--by-length", "--json", "scores.json"]
    assert score.main(command) == 0
    systems = json.loads((folder / "scores.json").read_text(encoding="utf-8"))["systems"]
    head, _ = content(page)
    assert head["scores"] == systems
    references = [" ".join(line.split()) for line in TARGET]
    translations = [TRANSLATED.get(("parser", n), line) for n, line in enumerate(references)]
    bleu = BLEU().corpus_score(translations, [references]).score
    plain, parser = systems["Plain"], systems[f"P {SCRIPT}"]
    assert parser["bleu"]["score"] == bleu < plain["bleu"]["score"]
    test = parser["significance"]
    [header, of_plain, of_parser, _] = table(page, "Scores")
    shown = {
        "BLEU": f"{bleu:.2f}",
        "± 95 %": f"{test['confidence']:.2f}",
        "difference": f"−{plain['bleu']['score'] - bleu:.2f}",
        "p": f"{test['p']:.3f}",
        "p Holm": f"{test['corrected']:.3f}",
        "verdict": "not known",
        "chrF": f"{parser['chrf']['score']:.2f}",
        "RIBES": f"{parser['ribes']['score']:.2f}",
        "UAS source": f"{100 * parser['source_attachment']['uas']:.2f}",
        "UAS target": f"{100 * parser['target_attachment']['uas']:.2f}",
        "AER": f"{100 * parser['alignment']['aer']:.2f}",
    }
    assert dict(zip(header[1:], of_parser[1:], strict=True)) == shown
    assert dict(zip(header, of_plain, strict=True))["difference"] == "–", "the baseline"
    assert parser["source_detail"]["by_label"].keys() == {SCRIPT}
    assert plain["layer_alignment"].keys() == {"1", "2", "10"}
    trees = systems["LPSI"]["source_brackets"]["1"]
    assert trees["sentence"]["sentences"] == 2
    found = [trees["evalb"][name] for name in ("precision", "recall", "f1")]
    assert found[0] < found[1]
    percents = [f"{100 * value:.2f}" for value in (*found, trees["sentence"]["f1"])]
    assert table(page, "Induced trees")[1:] == [["LPSI", "source", "1", *percents]]


def test_every_sentence_is_there_as_it_is(page):
    head, details = content(page)
    assert [s["source"].split() for s in head["sentences"]] == [s.split() for s in SOURCE]
    assert [s["length"] for s in head["sentences"]] == [3, 3, 4, 3, LONG]
    other = ["translations"]
    assert [s["differ"] for s in head["sentences"]] == [other, [], [], other, []]
    dog, attack, flat, boy, long = details
    assert dog["source"]["heads"] == [0, 1, 2] and dog["systems"][1]["source"] == [0, 0, 0]
    assert dog["systems"][0]["source"] is None
    assert dog["sure"] == [[0, 0], [1, 1]] and dog["possible"] == [[2, 2]]
    assert dog["systems"][0]["links"]["1"] == [[2, 0], [2, 1], [2, 2]]
    assert flat["sure"] == [[3, 0]] and attack["sure"] == [], "no link is right there"
    assert dog["source"]["tree"]["nodes"] == [[0, 3, 2, None, "S", 1], [0, 2, 1, 0, "NP", 1]]
    # Distances 0, 0.4, 0.8: "the dog" and "barked", as in the gold tree.
    assert dog["systems"][2]["source_trees"]["1"]["nodes"][1] == [0, 2, 1, 0, "X", 1]
    assert boy["systems"][1]["target"] == [0, 1, 2], "of the reference"
    tree = flat["systems"][2]["source_trees"]["1"]["nodes"]
    assert [node[-1] for node in tree] == [1, 0, 0], "only the whole is in the flat gold tree"
    assert attack["source"]["labels"] == [SCRIPT] * 3
    assert long["source"]["heads"] is None and len(long["systems"][1]["source"]) == LONG


def test_what_was_found_in_the_text_is_a_table(arguments, tmp_path, monkeypatch):
    folder, named = arguments
    monkeypatch.chdir(folder)
    named = [*named, "--html", f"{tmp_path}/r.html", "--examined", f"{tmp_path}/found.json"]
    found = Finding("twice", "test", 3, 1200, f"a.en, which is {SCRIPT}", True, "give each its own")
    store_findings(tmp_path / "found.json", [found])
    assert show.main(named) == 0
    [_, row] = table((tmp_path / "r.html").read_text(encoding="utf-8"), "The text")
    escaped = SCRIPT.replace("<", "&lt;").replace(">", "&gt;")
    assert row == [
        *("the same file is given twice", "test", "3", "1,200", "0.25 %"),
        f"a.en, which is {escaped}",
    ]
    store_findings(tmp_path / "found.json", [])
    assert show.main(named) == 0
    assert "no pair repeats" in (tmp_path / "r.html").read_text(encoding="utf-8")
    (tmp_path / "found.json").write_text("[1]")
    assert show.main(named) == 1


def test_a_page_says_nothing_of_a_text_that_was_not_examined(page):
    assert "<h2>The text</h2>" not in page


class Scripts(HTMLParser):
    """Collects what a browser would run or fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str | None] = []
        self.handlers: list[str] = []
        self.addresses: list[str | None] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        if tag == "script":
            self.scripts.append(named.get("type"))
        self.handlers += [name for name in named if name.startswith("on")]
        self.addresses += [named[name] for name in ("src", "href") if name in named]


def test_nothing_of_the_data_is_markup(page):
    found = Scripts()
    found.feed(page)
    assert found.scripts == ["text/plain", None, None], "the data, the libraries and ours"
    assert found.handlers == [] and found.addresses == ["data:,"]
    assert "alert(1)" in page and SCRIPT not in page
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy[1] and "script-src 'unsafe" not in policy[1]


def test_curves_and_charts(page):
    head, _ = content(page)
    titles = re.findall(r"<figcaption><b>(.*?)</b>", page)
    groups = ["By label of the source word", "By arc from the source word to its parent"]
    groups += ["By depth of the source word in its tree", "By words in the source"]
    assert titles == [
        *groups,
        *("BLEU by length", "AER by layer", "UAS source by distance to the parent"),
        *("UAS target by distance to the parent", "UAS source by label", "Training loss"),
        "Training: synchronisation loss",
    ]
    assert len(head["overview"]) == len(titles)
    aer, distance = (head["overview"][i]["datasets"]["rows"] for i in (5, 6))
    scores = head["scores"]["Plain"]["layer_alignment"]
    assert [(row["part"], row["value"]) for row in aer if row["system"] == "Plain"] == [
        (layer, round(100 * alignment["aer"], 2)) for layer, alignment in scores.items()
    ]
    interval = [(row["low"], row["high"]) for row in aer if row["system"] == "Plain"]
    assert interval == [
        tuple(round(100 * (a["aer"] + sign * a["margin"]), 2) for sign in (-1, 1))
        for a in scores.values()
    ]
    root = next(row for row in distance if row["n"] == "4 words")
    share = binomtest(round(4 * root["value"] / 100), 4).proportion_ci(method="wilson")
    assert (root["low"], root["high"]) == pytest.approx([100 * x for x in share], abs=0.02)
    by_distance = head["scores"][f"P {SCRIPT}"]["source_detail"]["by_distance"]
    assert [(row["part"], row["value"]) for row in distance] == [
        (part, round(100 * score["uas"], 2))
        for part, score in by_distance.items()
        if score["counted"]
    ]
    [point] = head["overview"][-1]["datasets"]["rows"]
    assert point == {
        **{"system": "LPSI", "update": 5, "value": 0.5, "lowest": 0.5, "highest": 0.5, "seeds": 1}
    }
    [length] = [chart for chart in head["overview"] if "BLEU, difference" in str(chart)]
    rows = length["datasets"]["rows"]
    assert {row["system"] for row in rows} == {f"P {SCRIPT}", "LPSI"}, "not the baseline"
    buckets = (head["scores"][name]["bleu_by_length"] for name in (f"P {SCRIPT}", "Plain"))
    difference = [
        ours["bleu"] - theirs["bleu"]
        for ours, theirs in zip(*(b.values() for b in buckets), strict=True)
    ]
    assert [row["value"] for row in rows if row["system"] != "LPSI"] == [
        round(d, 2) for d in difference
    ]


def answers(page: str) -> dict[str, str]:
    """Return what the page begins with, by the question."""
    said = page.split('<dl id="answers">')[1].split("</dl>")[0]
    return dict(re.findall(r'<dt>(.*?)</dt><dd dir="auto">(.*?)</dd>', said))


def test_the_page_begins_in_words(page):
    said = answers(page)
    questions = ["Which is better?", "How sure?", "What is missing?", "Do they parse?"]
    assert [*said] == questions, "and not where: no group has enough sentences"
    parser = "P &lt;script&gt;alert(1)&lt;/script&gt;"
    assert said["Which is better?"].startswith(
        "It is not known which is better. Both differences to the baseline, Plain, may be chance: "
    )
    assert said["Which is better?"].endswith("The translations of 2 of 5 sentences differ.")
    assert "5 sentences and one training of each system were compared;" in said["How sure?"]
    assert said["What is missing?"] == (
        f"Exactly as the reference: 4 (Plain), 3 ({parser}), 3 (LPSI) of 5 translations. "
        "Reference words missing: 2, 2, 5 of 68. These counts are not tested."
    )
    assert said["Do they parse?"] == (
        f"Attention finds the parents of 31 % ({parser}) of the source’s words; 90 % ({parser}) of "
        "those words of the reference (91 % of all) whose parent is before them or the root."
    )


def test_marks_are_those_of_a_slow_loop(page):
    head, details = content(page)
    for summary, detail in zip(head["sentences"], details, strict=True):
        reference = Counter(re.findall(r"\w+|[^\w\s]", summary["reference"]))
        for text, counts, (pieces, _) in zip(
            summary["translations"], summary["counts"], detail["marked"], strict=True
        ):
            ours = Counter(re.findall(r"\w+|[^\w\s]", text))
            assert counts["missing"] == (reference - ours).total()
            assert counts["added"] == (ours - reference).total()
            assert (pieces is None) == (" ".join(summary["reference"].split()) == text)


def test_the_same_twice(page, arguments, monkeypatch):
    folder, named = arguments
    monkeypatch.chdir(folder)
    options = ["--log", "LPSI", "log", "--title", f"Of {SCRIPT}", "--html", "again.html"]
    assert show.main([*named, *options]) == 0
    assert (folder / "again.html").read_text(encoding="utf-8") == page


def test_plain_text_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("ref", "a", "b"):
        Path(name).write_text("eins\nzwei\n")
    named = ["--references", "ref", "--system", "A", "a", "--system", "B", "b"]
    assert show.main([*named, "--html", "r.html"]) == 0
    assert "r.html: 2 sentences, 2 systems" in capsys.readouterr().out
    head, details = content(Path("r.html").read_text(encoding="utf-8"))
    assert head["sentences"][0]["translations"] == ["eins", "eins"]
    assert details[0]["source"]["words"] == []
    assert details[0]["sure"] is details[0]["possible"] is None, "no gold"
    page = Path("r.html").read_text(encoding="utf-8")
    assert ">Sentences (2)<" in page
    shown = ["system", "BLEU", "± 95 %", "difference", "p", "verdict", "chrF", "RIBES"]
    assert table(page, "Scores")[0] == shown, "no column of dashes"
    assert "B has as much BLEU as A" in page
    assert "The translations of 0 of 2 sentences differ." in page
    assert "Where?" not in page and '<h1 dir="auto">A, B on ref</h1>' in page


@pytest.fixture(scope="module")
def single(small_corpus, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A system that lost a word of each sentence of a small corpus, with gold."""
    folder = tmp_path_factory.mktemp("single")
    words = small_corpus.folder / "words"
    references = small_corpus.lines("test.de")
    write(folder / "lost", [" ".join(line.split()[:1] + line.split()[2:]) for line in references])
    arguments = ["--references", f"{words}/test.de", "--source", f"{words}/test.en"]
    arguments += ["--alignments", f"{words}/test.align", "--tokenize", "none"]
    for kind in ("heads", "labels"):
        arguments += [f"--source-{kind}", f"{words}/test.{kind}.en"]
    return folder, [*arguments, "--system", "A", f"{folder}/lost", "--html", f"{folder}/r.html"]


def test_a_page_of_one_system_says_whether_it_is_good(single, small_corpus, capsys):
    folder, arguments = single
    assert show.main([*arguments, "--examined", str(small_corpus.data)]) == 0
    out = capsys.readouterr().out
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert '<h1 dir="auto">A on test.de</h1>' in page
    questions = ["Is it good?", "Where is it weak?", "What is missing?", "Is the corpus sound?"]
    assert [*answers(page)] == questions
    said = [line.partition("? ")[0] + "?" for line in out.splitlines()]
    assert said[-4:] == questions
    references = small_corpus.lines("test.de")
    sources = small_corpus.lines("test.en")
    bleu = BLEU(tokenize="none", force=True).corpus_score(sources, [references]).score
    rows = {row[0]: row for row in table(page, "Scores")}
    assert [*rows] == ["system", "A", "the source itself", "a translation word by word"]
    assert rows["the source itself"][1:3] == [f"{bleu:.2f}", "–"]
    assert float(rows["the source itself"][1]) < float(rows["a translation word by word"][1])
    assert f"For comparison, the source itself has {bleu:.1f} BLEU" in page
    for absent in ("p Holm", "better, worse", "translations differ", 'id="of"', "farthest apart"):
        assert absent not in page.split("<script")[0], "there is nothing to compare"
    assert "role-legend" not in page and "The worst translations" in page


def test_words_that_are_marked_are_those_of_a_slow_loop(single, small_corpus):
    folder, arguments = single
    assert show.main(arguments) == 0
    head, details = content((folder / "r.html").read_text(encoding="utf-8"))
    links = small_corpus.lines("test.align")
    lines = zip(small_corpus.lines("test.en"), small_corpus.lines("test.de"), links, strict=True)
    for detail, summary, (source, target, linked) in zip(
        details, head["sentences"], lines, strict=True
    ):
        [[pieces, untranslated]] = detail["marked"]
        lost = target.split()[1]
        assert [text.strip() for kind, text, *_ in pieces if kind == "-"] == [lost]
        assert summary["counts"] == [
            {"added": 0, "missing": 1, "moved": 0, "untranslated": len(untranslated.split())}
        ]
        assert lost != target.split()[0], "so it is clear which word is missing"
        places: dict[int, set[int]] = {}
        for link in filter(lambda link: "?" not in link, linked.split()):
            i, j = map(int, link.split("-"))
            places.setdefault(i, set()).add(j)
        words = source.split()
        gone = [words[i] for i, found in sorted(places.items()) if found == {1}]
        assert untranslated.split() == gone
        named = " ".join(words[i] for i, found in sorted(places.items()) if 1 in found)
        [noted] = [note for kind, _, *note in pieces if kind == "-"]
        assert noted == ([named] if named else [])


def test_only_the_first_sentences_are_shown_and_no_picture_of_long_ones(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    texts = ["w " * words for words in (250, 251, 3)]
    Path("ref").write_text("".join(f"{text}\n" for text in texts))
    Path("beam").write_text("".join(f"{text}\n" for text in texts))
    heads = ([0] * len(text.split()) for text in texts)
    forced = [
        line(text, source=text, source_heads=each, forced=True)
        for text, each in zip(texts, heads, strict=True)
    ]
    Path("forced").write_text("".join(forced))
    named = ["--references=ref", "--system", "A", "beam", "forced", "--html=r.html"]
    assert show.main([*named, "--sentences=2", "--tokenize=none"]) == 0
    assert "r.html: 2 of 3 sentences, 1 system, " in capsys.readouterr().out
    page = Path("r.html").read_text(encoding="utf-8")
    assert ">Sentences (2 of 3)<" in page
    head, [drawn, long] = content(page)
    assert len(head["sentences"]) == 2 and head["scores"]["A"]["sentences"] == 3
    lengths = head["scores"]["A"]["bleu_by_length"].values()
    assert sum(bucket["sentences"] for bucket in lengths) == 3, "also of forced output"
    assert len(drawn["systems"][0]["source"]) == 250 and "long" not in drawn
    assert (
        long == {"long": 251, "marked": [[None, ""]]}
        and len(head["sentences"][1]["source"].split()) == 251
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--log", "C", "log"], "--log C: no --system has this name"),
        (["--log", "A", "a"], "a: the log has no losses"),
        (["--target-trees", "empty"], "--target-trees: has 0 lines, but there are 1 references"),
    ],
)
def test_one_line_says_what_is_wrong(tmp_path, monkeypatch, capsys, options, message):
    monkeypatch.chdir(tmp_path)
    for name in ("ref", "a"):
        Path(name).write_text("eins\n")
    Path("empty").touch()
    named = ["--references", "ref", "--system", "A", "a", "--html", "r.html"]
    assert message in read_error(capsys, show.main([*named, *options]))
    assert not Path("r.html").exists()


HTML = ["--references=ref", "--system", "A", "a", "--html=r.html"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([*HTML, "--by-length"], "unrecognized arguments: --by-length"),
        ([*HTML, "--parts=a:1"], "unrecognized arguments: --parts=a:1"),
        ([*HTML, "--compound-split=de"], "unrecognized arguments: --compound-split=de"),
        ([*HTML, "a sentence"], "sentence does not go with --html"),
        ([*HTML, "--analyses=a"], "--analyses does not go with --html"),
        ([*HTML, "--kind=parents"], "--kind does not go with --html"),
        (["--html=r.html"], "--html needs --system and --references"),
        (["a sentence", "--title=x"], "--title goes with --html FILE"),
        (["a sentence", "--tokenize=zh"], "--tokenize goes with --html FILE"),
        (["a sentence", "--translation=b"], "--translation goes with --figure FILE"),
    ],
)
def test_an_option_of_something_else_is_refused(tmp_path, monkeypatch, capsys, options, message):
    monkeypatch.chdir(tmp_path)
    for name in ("ref", "a"):
        Path(name).write_text("eins\n")
    with pytest.raises(SystemExit):
        show.main(options)
    assert message in capsys.readouterr().err


def test_attention_of_a_model_that_reads_parses(small_corpus, tmp_path):
    model = make_checkpoint(small_corpus, tmp_path / "model.pt", "transformer_pascal")
    texts = zip(small_corpus.lines("test.de"), small_corpus.lines("test.en"), strict=True)
    decoded = "".join(line(target, source=source) for target, source in texts)
    (tmp_path / "decoded").write_text(decoded)
    (tmp_path / "parser.py").write_text(CONLLU)
    parser = shlex.join([sys.executable, f"{tmp_path}/parser.py"])
    arguments = ["--references", str(small_corpus.folder / "words" / "test.de")]
    arguments += ["--system", "P", *[f"{tmp_path}/decoded"] * 2]
    arguments += ["--tokenize", "none"]
    arguments += ["--attention", "P", str(model), "--data-bin", str(small_corpus.data)]
    arguments += ["--subwords", str(small_corpus.subwords)]
    arguments += ["--html", f"{tmp_path}/r.html"]
    assert show.main(arguments) == 1
    assert show.main([*arguments, "--source-parser", f"command:conllu:{parser}"]) == 0
    _, details = content((tmp_path / "r.html").read_text(encoding="utf-8"))
    [matrix] = details[0]["systems"][0]["matrices"]
    assert matrix["title"].startswith("C: ")


def test_an_unknown_subword_that_was_printed_is_no_text(small_corpus, tmp_path, capsys):
    texts = [small_corpus.lines(f"test.{side}")[:3] for side in ("en", "de")]
    printed = []
    for n, (source, target) in enumerate(zip(*texts, strict=True)):
        shown = [" ".join(f"▁{word}" for word in side.split()) for side in (source, target)]
        if n != 1:
            shown = [f"▁ <unk> x {side}" for side in shown]
        printed += [f"S-{n}\t{shown[0]}", f"T-{n}\t{shown[1].replace('<unk>', '<<unk>>')}"]
        printed += [f"{letter}-{n}\t-1\t{shown[1]}" for letter in "HD"]
    (tmp_path / "decoded").write_text("\n".join(printed) + "\n")
    (tmp_path / "references").write_text("\n".join(texts[1]) + "\n")
    arguments = ["--references", f"{tmp_path}/references", "--tokenize", "none"]
    arguments += ["--system", "A", *[f"{tmp_path}/decoded"] * 2]
    arguments += ["--attention", "A", str(small_corpus.trained())]
    arguments += ["--data-bin", str(small_corpus.data), "--subwords", str(small_corpus.subwords)]
    assert show.main([*arguments, "--html", f"{tmp_path}/r.html"]) == 0
    assert "not in the model's dictionary" not in capsys.readouterr().err
    _, details = content((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert [bool(detail["systems"][0].get("matrices")) for detail in details] == [
        False,
        True,
        False,
    ]


def test_sentences_of_raw_text_are_shown_as_they_are(tmp_path, monkeypatch):
    """Their words have the places that gold has, and links, too."""
    monkeypatch.chdir(tmp_path)
    english, german = "The re-run ended.", "Es ist's."
    (tmp_path / "ref").write_text(f"{german}\n")
    (tmp_path / "src").write_text(f"{english}\n")
    (tmp_path / "heads").write_text("2 3 0 3\n")
    (tmp_path / "spans").write_text("0-3 4-10 11-16 16-17\n")
    pieces = "▁The ▁re - run ▁ended .", "▁Es ▁ist 's ."
    found = {"source_heads": [2, 5, 4, 5, 0, 5], "links": [(0, 0), (3, 1)], "forced": True}
    (tmp_path / "forced").write_text(line(pieces[1], source=pieces[0], scheme="raw:uax29", **found))
    options = ["--references", "ref", "--source", "src", "--system", "A", "ref", "forced"]
    options += ["--source-heads", "heads", "--source-spans", "spans", "--html", "r.html"]
    assert show.main(options) == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    head, [detail] = content(page)
    assert head["sentences"][0]["source"] == detail["source"]["text"] == english
    assert detail["source"]["words"] == ["The", "re-run", "ended", "."]
    assert detail["source"]["spans"] == [[0, 3], [4, 10], [11, 16], [16, 17]]
    assert detail["source"]["heads"] == detail["systems"][0]["source"] == [2, 3, 0, 3]
    assert detail["target"]["text"] == german
    assert detail["target"]["words"] == ["Es", "ist's", "."]
    assert detail["target"]["spans"] == [[0, 2], [3, 8], [8, 9]]
    assert detail["systems"][0]["links"][""] == [[0, 0], [1, 1]]
    assert table(page, "Scores")[1][4] == "100.00"
