"""The release's files are fetched, checked and scored; here, a stand-in of our own."""

import hashlib
import json
import math

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from study import pascal_released
from study.pascal_released import FOLDERS, MANIFEST, PUBLISHED, PUBLISHED_RIBES, main, measure
from syncattn_fairseq.base.errors import DataError
from syncattn_lab.evaluation.translation import count_ngrams
from tests.importing import ROOT

RESULTS = ROOT / "study" / "results" / "released" / "pascal.json"


def test_the_released_ribes_is_ours_to_every_digit():
    rows = [row for row in json.loads(RESULTS.read_text()) if "RIBES released" in row]
    assert {row["system"]: row["RIBES released"] for row in rows} == PUBLISHED_RIBES
    assert all(row["RIBES lower case"] == row["RIBES released"] for row in rows)


def test_the_released_translations_have_the_papers_scores():
    rows = json.loads(RESULTS.read_text())
    assert len(rows) == 29
    for row in rows:
        truecased = row["corpus"] in ("wmt17_en_de", "wmt18_en_tr")
        # The paper's references of these two were not truecased.
        assert truecased or abs(row["BLEU"] - row["published"]) < 0.11, row
    shown = [f"{row['BLEU']:.2f}" for row in rows if row["corpus"] == "aspec_en_ja"]
    assert shown == ["43.10", "44.04", "43.18", "43.08", "42.81"]


def test_the_page_says_what_the_scores_say():
    rows = {(row["corpus"], row["system"]): row for row in json.loads(RESULTS.read_text())}
    pascal = {corpus: row for (corpus, system), row in rows.items() if system == "pascal"}
    base = {corpus: row for (corpus, system), row in rows.items() if system == "transformer"}
    longer = {corpus for corpus, row in pascal.items() if row["length"] > base[corpus]["length"]}
    assert pascal.keys() - longer == {"wmt17_en_de"} and base["wmt17_en_de"]["length"] > 100
    shown = {corpus for corpus, row in pascal.items() if row["Δ without penalty"][1] > 0}
    assert shown == {"nc11_en_de", "wmt16_en_de", "wmt17_en_de"}
    japanese = zip(*(x["aspec_en_ja"]["precisions"] for x in (pascal, base)), strict=True)
    assert all(ours < theirs for ours, theirs in japanese)
    assert pascal["aspec_en_ja"]["Δ without penalty"][0] < 0 < pascal["aspec_en_ja"]["Δ BLEU"][1]
    short, long = ([row["by length"][x] for row in pascal.values()] for x in ("1-10", "51+"))
    assert sum(x[0] < 0 for x in short) == 3 and sum(x[1] > 0 for x in short) == 1
    assert sum(x[1] > 0 for x in long) == 2


def test_the_manifest_has_what_is_scored():
    files = json.loads(MANIFEST.read_text())["files"]
    assert (
        sum("preds" in path for path in files) == sum(len(x) for _, x in PUBLISHED.values()) == 29
    )
    assert all(len(known["sha256"]) == 64 and known["size"] > 0 for known in files.values())


@pytest.fixture
def release(tmp_path, monkeypatch):
    """A release in which PASCAL's translations are longer, and the rest are the references."""
    files = {}
    place = tmp_path / "web"
    for folder, (corpus, systems) in PUBLISHED.items():
        kind = ".tok" if corpus == "aspec_en_ja" else ""
        truth = [f"the {n} of it is a small house , he said ." for n in range(12)]
        texts = {f"transformer/outputs/truth{kind}": truth}
        texts["transformer/outputs/src.tok"] = [" ".join("x" * (4 * n + 1)) for n in range(12)]
        for system in systems:
            own = [line.replace(" , he said", "") for line in truth]
            if system == "pascal":
                own = [line.replace(" of it", "") + " yes" for line in truth]
            texts[f"{FOLDERS[system]}/outputs/preds{kind}"] = own
        for name, lines in texts.items():
            path = place / folder / f"{name}.test"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{line}\n" for line in lines))
            sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
            files[f"{folder}/{name}.test"] = {"sha256": sha256, "size": path.stat().st_size}
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"repository": "https://x", "commit": "0", "files": files}))
    monkeypatch.setattr(pascal_released, "MANIFEST", manifest)
    return tmp_path, files


def test_a_release_is_fetched_once_and_scored(release, capsys):
    folder, files = release
    work, results = folder / "work", folder / "new" / "scores.json"
    words = [f"--work={work}", f"--source={(folder / 'web').as_uri()}", f"--results={results}"]
    main(words)
    printed = capsys.readouterr().out
    assert len([path for path in work.iterdir() if path.name.endswith(".test")]) == len(files)
    rows = json.loads(results.read_text())
    assert len(rows) == 29
    pascal = next(r for r in rows if (r["corpus"], r["system"]) == ("nc11_en_de", "pascal"))
    base = rows[0]
    ours, truth = (
        (folder / "web" / "nc11en2de" / f"{name}.test").read_text().splitlines()
        for name in ("transformer_pascal/outputs/preds", "transformer/outputs/truth")
    )
    bleu = BLEU().corpus_score(ours, [truth])
    assert pascal["BLEU"] == pytest.approx(bleu.score, abs=1e-4)
    assert pascal["without penalty"] == pytest.approx(bleu.score / bleu.bp, abs=1e-3)
    assert pascal["precisions"] == pytest.approx(bleu.precisions, abs=1e-4)
    assert pascal["Δ BLEU"][0] == pytest.approx(pascal["BLEU"] - base["BLEU"], abs=1e-3)
    low, high = pascal["Δ BLEU"][1:]
    assert low <= pascal["Δ BLEU"][0] <= high and "Δ BLEU" not in base
    assert pascal["Δ without penalty"][0] < pascal["Δ BLEU"][0], "it is longer"
    assert {*pascal["by length"]} == {"1-10", "11-20", "21-30", "31-40", "41-50"}
    assert 0 < pascal["p"] <= 1
    main(["--table", str(results)])
    assert capsys.readouterr().out == printed
    assert "| nc11_en_de | pascal | 25.9 | " in printed
    # All are there, so that nothing is fetched again; what has changed is noticed.
    main([f"--work={work}", "--source=file:///nowhere", f"--results={results}"])
    changed = next(work.glob("*preds.test"))
    changed.write_text("changed\n")
    with pytest.raises(DataError, match=f"{changed.name}: has size 8, expected"):
        main(words)


def test_japanese_is_scored_in_its_words(release, capsys):
    folder, _ = release
    results = folder / "scores.json"
    main(
        [f"--work={folder / 'w'}", f"--source={(folder / 'web').as_uri()}", f"--results={results}"]
    )
    rows = {(row["corpus"], row["system"]): row for row in json.loads(results.read_text())}
    japanese = rows["aspec_en_ja", "pascal"]
    assert 0 < japanese["RIBES lower case"] < 1 and japanese["RIBES released"] == 0.852133
    assert "RIBES released" not in rows["nc11_en_de", "pascal"]


def test_scores_need_a_place(capsys):
    with pytest.raises(DataError, match="give --results, or --table"):
        main([])


def test_precision_is_bleu_without_its_penalty():
    counts = count_ngrams(["a b c d e", "f g h i"], ["a b c d e f", "f g h i j"], "none")
    found = measure(counts)
    assert found["without penalty"] == 100 and found["length"] == pytest.approx(
        100 * 9 / 11, abs=1e-3
    )
    assert found["BLEU"] == pytest.approx(100 * math.exp(1 - 11 / 9), abs=1e-3)
    assert np.allclose(found["precisions"], 100)
