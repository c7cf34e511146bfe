"""The order of a corpus's preparation: what reads what."""

from dataclasses import replace
from pathlib import Path

import pytest

from lab.tests.configs import CORPORA
from lab.tests.recipes.test_cell import BUILTIN, make_cell
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.cli.tokenise import read_preparation
from syncattn_lab.recipes.cell import list_needs, list_stages, make_cells
from syncattn_lab.recipes.corpus_facts import Corpus, load_corpus, tokenise_by
from syncattn_lab.recipes.launch import Machines
from syncattn_lab.recipes.prepare import list_preparation
from syncattn_lab.recipes.request import read_row
from syncattn_lab.recipes.text_steps import split_by

CONFIGS = Path(__file__).parents[3] / "configs"
#: Rows that decode one model differently make the mean of its checkpoints twice, the same bytes.
MEAN = "checkpoint_average.pt"


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
    words, parsed = {"tokenise", "clean"}, {"binarise", "binarise-record", "subwords"}
    assert {name: after for name, (after, _) in stages_of("wmt16_en_de").items()} == {
        **{"download-en": set(), "download": set(), "collect": {"download"}},
        **{"tokenise": {"collect"}, "clean": {"tokenise"}, "subwords": words, "parse-en": words},
        "examine": words,
        **{"binarise": {"subwords"}, "binarise-record": {"binarise", "subwords", "collect"}},
        **{f"binarise-{kind}-en": parsed | words | {"parse-en"} for kind in ("heads", "labels")},
        "binarise-multitask": {"subwords", "parse-en"},
    }
    kinds = ("heads-de", "heads-en", "labels-en", "align")
    assert {name: after for name, (after, _) in stages_of("builtin_en_de").items()} == {
        **{"generate": set(), "subwords": {"generate"}, "binarise": {"subwords"}},
        "examine": {"generate"},
        **{f"binarise-{kind}": parsed | {"generate"} for kind in kinds},
        "binarise-multitask": {"subwords", "generate"},
        "binarise-record": {"binarise", "subwords"},
    }


#: The facts about a corpus of raw sentences, and its score.
RAW = """\
here: {folder: texts, train: "x.{language}", test: "y.{language}"}
valid: {every: 9}
subwords: {size: 900, joint: true, raw: true}
score: {tokenize: zh}
"""


def write_raw(folder: Path, facts: str) -> Corpus:
    corpus = folder / "mine"
    (corpus / "texts").mkdir(parents=True)
    (corpus / "_data.yaml").write_text(facts)
    (corpus / "_corpus.yaml").write_text("task: {source_lang: en, target_lang: zh}\n")
    return load_corpus(corpus)


def test_raw_sentences_are_not_split_into_words(tmp_path):
    corpus = write_raw(tmp_path, RAW + "clean: {ratio: 9}\n")
    stages = {x.log.name: x for x in list_preparation(corpus, 2, 2, {"heads.zh", "labels.en"})}
    after = {name: {log.name for log in stage.after} for name, stage in stages.items()}
    words = {"tokenise", "clean"}
    assert after["subwords"] == after["parse-zh"] - {"download-zh"} == words
    assert after["clean"] == {"collect"}
    assert after["binarise"] == {"subwords"}
    assert "binarise-record" not in after
    assert after["binarise-labels-en"] == {"binarise", "subwords", "parse-en"} | words
    commands = {name: "\n".join(map(str, x.steps)) for name, x in stages.items()}
    assert "tokenise" not in " ".join(commands.values())
    assert "cp corpora/mine/raw/test.en corpora/mine/raw/test.zh" in commands["tokenise"]
    assert "--input corpora/mine/raw/train" in commands["clean"] and "--raw" in commands["clean"]
    assert "--raw en zh --vocab-size 900" in commands["subwords"]
    assert "--spans corpora/mine/words/train.spans.zh" in commands["parse-zh"]
    assert "syncattn-preprocess" in commands["binarise"]
    assert "--subwords corpora/mine/pieces/bpe.model" in commands["binarise"]
    assert "tokenize,mwt,pos,lemma,depparse" in commands["download-zh"]
    made = {path.name for path in stages["binarise"].makes}
    assert {"preparation.json", "subwords.json", "subwords.en", "subwords.zh"} <= made
    read = {path.name for step in stages["binarise-labels-en"].steps for path in step.reads}
    assert {"test.spans.en", "test.heads.en", "test.labels.en"} <= read


def test_multi_task_counts_its_words_since_tags_are_no_pieces(tmp_path):
    corpus = write_raw(tmp_path, RAW)
    stages = {x.log.name: x for x in list_preparation(corpus, 1, 1, {"multitask"})}
    steps = stages["binarise-multitask"].steps
    assert "fairseq-preprocess" in str(steps[-1])
    words = "corpora/mine/words/train"
    assert f"--spans {words}.spans.en --text {words}.en" in str(steps[1])
    assert {f"{words}.spans.en", f"{words}.en"} <= {str(path) for path in steps[1].reads}


@pytest.mark.parametrize(
    ("facts", "fault"),
    [
        (RAW + "words: {en: cat}\n", "words: sentences are not split into words"),
        (RAW + "tokenised: [train]\n", "tokenised: sentences are not split into words"),
        (RAW.replace("tokenize: zh", "detokenize: moses:en"), "score: detokenize: sentences are"),
        (RAW.replace("joint: true", "joint: true, unit: word"), "subwords: raw: give size, and no"),
        (RAW.replace("size: 900, ", ""), "subwords: raw: give size, and no unit"),
    ],
)
def test_what_does_not_go_with_raw_sentences_is_said(tmp_path, facts, fault):
    with pytest.raises(DataError, match=rf"_data.yaml: {fault}"):
        write_raw(tmp_path, facts)


def test_heads_that_came_with_the_text(tmp_path, monkeypatch):
    monkeypatch.setenv("MULTI30K_TINY", str(tmp_path))
    found = stages_of("multi30k_tiny_en_de", {"heads.en"})
    assert found["parse"][0] == set() and found["tokenise"][0] == {"collect"}
    assert {"binarise", "parse"} < found["binarise-heads-en"][0]


def test_language_codes_may_have_hyphens():
    english = load_corpus(CONFIGS / "wmt16_en_de")
    spoken = {"pt-br": english.words["en"], "de": english.words["de"]}
    parsed = {"pt-br": english.parses["en"]}
    corpus = replace(english, source="pt-br", words=spoken, parses=parsed)
    stages = list_preparation(corpus, 2, 1, {"heads.pt-br", "multitask"})
    after = {stage.log.name: {log.name for log in stage.after} for stage in stages}
    assert {"binarise", "parse-pt-br"} < after["binarise-heads-pt-br"]
    assert after["binarise-multitask"] == {"subwords", "parse-pt-br"}


@pytest.mark.parametrize(
    ("system", "needs"),
    [("transformer", []), ("dbsa", ["heads-de", "heads-en"]), ("multi_task", None)],
)
def test_what_a_training_reads_is_prepared(system, needs):
    cell = make_cell(system)
    _, stages = list_stages(BUILTIN, [cell], 1, 1)
    read = {log.name for log in stages[cell][0].after}
    names = ["binarise", "binarise-record", *(f"binarise-{need}" for need in needs or [])]
    assert read == ({"binarise-multitask"} if needs is None else {*names})


@pytest.mark.parametrize("corpus", CORPORA, ids=lambda corpus: corpus.name)
def test_no_file_is_made_by_two_stages(corpus):
    rows = [read_row(name) for name in corpus.members("@all")]
    cells = make_cells(corpus, Machines(cpu=True), {}, [(1, row) for row in rows])
    preparation, stages = list_stages(corpus, cells, 1, 1)
    makers: dict[Path, Path] = {}
    for one in (*preparation, *(stage for each in stages.values() for stage in each)):
        for path in one.makes:
            assert makers.setdefault(path, one.log) == one.log or path.name == MEAN, path
    assert len(makers) > 3 * len(cells)


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


@pytest.mark.parametrize("folder", [path.parent for path in sorted(CONFIGS.glob("*/_data.yaml"))])
def test_the_texts_of_published_corpora_stay_as_they_were(folder):
    """Their words are sacremoses's; those of a corpus of one's own have its faults mended."""
    corpus = load_corpus(folder)
    commands = [split_by(corpus, language, 1, "") for language in corpus.languages]
    for command in (each for each in commands if "syncattn-tokenise" in each):
        assert read_preparation(command).rules == 1


def test_the_texts_of_other_corpora_have_the_newest_rules(tmp_path):
    assert read_preparation(tokenise_by(tmp_path, "en")).rules == 2
    assert "--lang pt" in tokenise_by(tmp_path, "pt_BR")
