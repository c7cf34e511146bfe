"""The order of a corpus's preparation: what reads what."""

from dataclasses import replace
from pathlib import Path

import pytest

from syncattn_lab.recipes.cell import list_needs
from syncattn_lab.recipes.corpus_facts import load_corpus
from syncattn_lab.recipes.prepare import list_logs, list_preparation

CONFIGS = Path(__file__).parents[3] / "configs"


def stages_of(
    corpus: str, needs: set[str] | None = None, cores: int = 2
) -> dict[str, tuple[set[str], dict[str, object]]]:
    """Return what each stage reads, and its settings, by name; without needs, for all systems."""
    loaded = load_corpus(CONFIGS / corpus)
    needs = list_needs(loaded, []) if needs is None else needs
    return {
        stage.log.name: ({log.name for log in stage.after}, dict(stage.settings or {}))
        for stage in list_preparation(loaded, cores, cores, needs)
    }


def test_what_each_stage_reads():
    assert {name: after for name, (after, _) in stages_of("wmt16_en_de").items()} == {
        **{"download-en": set(), "download": set(), "collect": {"download"}},
        **{"tokenise": {"collect"}, "clean": {"tokenise"}, "subwords": {"clean"}},
        **{"parse-en": {"clean"}, "binarise": {"subwords"}},
        **{f"binarise-{kind}-en": {"binarise", "parse-en"} for kind in ("heads", "labels")},
        **{"binarise-multitask": {"subwords", "parse-en"}, "binarise-record": {"binarise"}},
    }
    assert {name: after for name, (after, _) in stages_of("builtin_en_de").items()} == {
        **{"generate": set(), "subwords": {"generate"}, "binarise": {"subwords"}},
        **{f"binarise-{kind}": {"binarise"} for kind in ("heads-de", "heads-en", "labels-en")},
        **{"binarise-multitask": {"subwords"}, "binarise-record": {"binarise"}},
        "binarise-align": {"binarise"},
    }


def test_heads_that_came_with_the_text(tmp_path, monkeypatch):
    monkeypatch.setenv("MULTI30K_TINY", str(tmp_path))
    found = stages_of("multi30k_tiny_en_de", {"heads.en"})
    assert found["parse"][0] == {"tokenise"} and found["tokenise"][0] == {"collect"}
    assert found["binarise-heads-en"][0] == {"binarise", "parse"}


def test_language_codes_may_have_hyphens():
    english = load_corpus(CONFIGS / "wmt16_en_de")
    spoken = {"pt-br": english.words["en"], "de": english.words["de"]}
    parsed = {"pt-br": english.parses["en"]}
    corpus = replace(english, source="pt-br", words=spoken, parses=parsed)
    stages = list_preparation(corpus, 2, 1, {"heads.pt-br", "multitask"})
    after = {stage.log.name: {log.name for log in stage.after} for stage in stages}
    assert after["binarise-heads-pt-br"] == {"binarise", "parse-pt-br"}
    assert after["binarise-multitask"] == {"subwords", "parse-pt-br"}
    assert Path("logs/wmt16_en_de/binarise-heads-pt-br") in list_logs(corpus, {"heads.pt-br"})


@pytest.mark.parametrize("needs", [set(), {"heads.en", "labels.en"}, {"multitask"}])
def test_what_a_training_reads_is_prepared(needs):
    read = [log.name for log in list_logs(load_corpus(CONFIGS / "builtin_en_de"), needs)]
    assert {"binarise", *read} <= stages_of("builtin_en_de", needs).keys()
    assert read == ["binarise", *(f"binarise-{kind.replace('.', '-')}" for kind in sorted(needs))]


def test_settings_do_not_depend_on_the_machine(monkeypatch):
    needs = {"heads.en", "labels.en", "multitask"}
    one, eight = (
        {name: settings for name, (_, settings) in stages_of("wmt16_en_de", needs, cores).items()}
        for cores in (1, 8)
    )
    assert one == eight and all(one.values())
    monkeypatch.setenv("PARSE_OPTIONS", "--max-words 50")
    now = stages_of("wmt16_en_de", needs)
    assert {name for name, (_, changed) in now.items() if changed != one[name]} == {"parse-en"}
