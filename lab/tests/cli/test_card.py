import copy
import json
from pathlib import Path

import pytest
import yaml

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.cli import export as cli
from syncattn_fairseq.export.card import check_words, make_card, read_scores
from syncattn_lab.cli import score

FACTS = (("en", "de"), "ctranslate2", "model.pt", "the same scores", ["print(1)"], "int8")


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What syncattn-score says of two systems."""
    folder, good = tmp_path_factory.mktemp("scores"), "der Hund bellt laut\nja"
    texts = {"ref": good, "a": good, "b": "ein Hund\nja", "c": "0.5\n0.75"}
    for name, text in texts.items():
        (folder / name).write_text(f"{text}\n")
    ref, a, b, c = (str(folder / name) for name in texts)
    command = [f"--references={ref}", "--tokenize=none", "--system", "A", a, "--system", "B", b]
    comet = ["--sentence-scores", "COMET|x", "A", c]
    assert score.main([*command, *comet, "--baseline=B", f"--json={folder / 'scores.json'}"]) == 0
    return folder / "scores.json"


def test_a_card_is_read_by_hubs_and_by_people():
    _, head, text = make_card(*FACTS).split("---\n")
    assert yaml.safe_load(head) == {
        **{"language": ["en", "de"], "pipeline_tag": "translation"},
        **{"library_name": "ctranslate2", "tags": ["translation", "syncattn-fairseq"]},
    }
    assert text.startswith("\n# A translation model, en to de\n\nFor ctranslate2, weights in int8")
    assert "```python\nprint(1)\n```\n" in text and "## Scores" not in text
    assert "\nTrained on: not said.\nLicence: not said.\n" in text


def test_licence_and_data_are_what_somebody_says_and_the_checkpoint_has_no_path():
    facts = (*FACTS[:2], "/home/somebody/secret/model.pt", *FACTS[3:])
    _, head, text = make_card(*facts, licence="cc-by-4.0", trained_on="A <b>").split("---\n")
    assert yaml.safe_load(head)["license"] == "cc-by-4.0"
    assert "\nTrained on: A &lt;b>.\nLicence: cc-by-4.0.\n" in text
    assert " from `model.pt`." in text and "secret" not in text


@pytest.mark.parametrize(
    ("licence", "trained_on", "named"),
    [("two words", None, "--licence"), ("", None, "--licence"), ("mit\n", None, "--licence")]
    + [(None, words, "--trained-on") for words in ("", " ", "two\nlines")],
)
def test_other_licences_and_data_are_refused(licence, trained_on, named):
    with pytest.raises(DataError, match=f"^{named} '[^\n]*$"):
        check_words(licence, trained_on)


def test_scores_and_their_significance(scored):
    systems = json.loads(scored.read_text())["systems"]
    found = read_scores(scored, "A")
    assert found == systems["A"]
    card = make_card(*FACTS, found)
    assert "| BLEU | chrF | RIBES | COMET/x |\n|---|---|---|---|\n| 100.00 | 100.00 | " in card
    assert "| 0.6250 |" in card and "\n\n2 sentences. BLEU `nrefs:1|" in card
    assert ", RIBES `nrefs:1|" in card
    test = systems["A"]["significance"]
    assert f"{test['difference']:.2f} BLEU ahead of B, which may be chance" in card
    assert f" (p = {test['corrected']:.4f} by paired" in card
    card = make_card(*FACTS, read_scores(scored, "B"))
    assert "ahead of" not in card, "the baseline"


def test_which_system_must_be_clear(scored):
    with pytest.raises(
        DataError, match="scores.json: the file has several systems; name one of A, B"
    ):
        read_scores(scored)
    with pytest.raises(DataError, match="scores.json: the file has no system C; choose from A, B"):
        read_scores(scored, "C")
    arguments = ["--path=x", "--data-bin=x", "--format=fairseq", "--output=out"]
    assert cli.main([*arguments, "--scores", str(scored), "A", "B"]) == 1
    assert cli.main([*arguments, "--scores", str(scored)]) == 1


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("scores", "BLEU"), "<b>"),
        (("scores", "BLEU"), 10**400),
        (("scores", "BLEU"), float("nan")),
        (("scores", "BLEU"), True),
        (("scores", "two\nlines"), 1),
        (("sentences",), True),
        (("sentence_scores",), {"COMET": {"mean": 10**400}}),
        (("significance", "corrected"), 10**400),
        (("signatures", "BLEU"), "two\nlines"),
        (("significance", "baseline"), "two\nlines"),
        (("sentences",), "many"),
        (("sentence_scores",), {"two\nlines": {"mean": 1}}),
        (("sentence_scores",), [1]),
    ],
)
def test_other_files_are_refused(scored, tmp_path, path, value):
    systems = json.loads(scored.read_text())["systems"]
    changed = copy.deepcopy(systems["A"])
    (changed[path[0]] if len(path) > 1 else changed)[path[-1]] = value
    others = ([], {"systems": {}}, {"systems": [[1, {}], [2, {}]]}, {"systems": 10**400})
    made = {"systems": {"A": changed}}
    for text in (*map(json.dumps, (made, *others)), "[" * 100_000, "{"):
        (tmp_path / "scores.json").write_text(text)
        with pytest.raises(
            DataError, match="scores.json: the file was not written by syncattn-score --json"
        ):
            read_scores(tmp_path / "scores.json")
