"""ATIS from the treebanks and from a user's folder: the same words, heads and labels."""

import gzip
from pathlib import Path

import pytest

from syncattn_lab.recipes.collect import main
from syncattn_lab.recipes.corpus_facts import load_corpus
from syncattn_lab.recipes.prepare import list_preparation

CONFIGS = Path(__file__).parents[3] / "configs"
SENTENCES = {
    "en": [["what time", "0 1", "root det"], ["no", "", ""], ["show flights", "0 1", "root obj"]],
    "tr": [["Saat kaç", "2 0", "nsubj root"], ["yok", "0", "root"], ["uçuşlar", "0", "root"]],
}


def treebank(language: str) -> str:
    blocks = []
    for words, heads, labels in SENTENCES[language]:
        columns = [words.split(), heads.split() or ["_"], labels.split() or ["_"]]
        rows = [
            f"{n}\t{word}\t_\t_\t_\t_\t{head}\t{label}\t_\t_"
            for n, (word, head, label) in enumerate(zip(*columns, strict=True), 1)
        ]
        blocks.append("\n".join([f"# text = {words}", *rows, "", ""]))
    return "".join(blocks)


def collected(corpus: str, work: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Run what collects texts, heads and labels; return the files."""
    monkeypatch.chdir(work)
    stages = list_preparation(load_corpus(CONFIGS / corpus), 1, 1, {"heads.en", "labels.en"})
    for step in (step for stage in stages for step in stage.steps):
        if step.commands[0][0] == "mkdir":
            for folder in step.commands[0][2:]:
                Path(folder).mkdir(parents=True, exist_ok=True)
        if "syncattn_lab.recipes.collect" in step.commands[0]:
            assert main(step.commands[0][3:]) == 0
    made = Path("corpora", corpus)
    return {
        str(path.relative_to(made)): path.read_text(encoding="utf-8")
        for part in ("raw", "words")
        for path in sorted((made / part).iterdir())
    }


@pytest.mark.parametrize("corpus", ["atis_en_tr", "atis_tr_en"])
def test_both_give_the_same(corpus, tmp_path, monkeypatch):
    web = tmp_path / "corpora" / corpus / "download"
    folder = tmp_path / "mine"
    for place in (web, folder, tmp_path / "other"):
        place.mkdir(parents=True)
    for language, sentences in SENTENCES.items():
        for split in ("train", "valid", "test"):
            published = f"{language}_atis-ud-{split.replace('valid', 'dev')}.conllu"
            (web / published).write_text(treebank(language), encoding="utf-8")
            for n, kind in enumerate(("", "heads.", "labels.")):
                content = "".join(f"{sentence[n]}\n" for sentence in sentences)
                file = folder / f"{split}.{kind}{language}.gz"
                file.write_bytes(gzip.compress(content.encode()))
    found = collected(corpus, tmp_path, monkeypatch)
    assert found["raw/train.en"] == "what time\nno\nshow flights\n"
    assert found["words/valid.heads.en"] == "0 1\n\n0 1\n"
    assert found["words/test.labels.tr"] == "nsubj root\nroot\nroot\n"
    assert len(found) == 3 * 2 * 3
    monkeypatch.setenv("ATIS", str(folder))
    assert collected(corpus, tmp_path / "other", monkeypatch) == found


def test_a_parser_or_chance_in_place_of_a_treebank():
    def steps_of(corpus: str) -> dict[str, list[str]]:
        made = list_preparation(load_corpus(CONFIGS / corpus), 1, 1, {"heads.en", "heads.tr"})
        return {stage.log.name: [str(step) for step in stage.steps] for stage in made}

    both = steps_of("atis_en_tr")
    assert not [name for name in both if name.startswith("parse-")]
    one = steps_of("atis_en_tr_parser")
    assert [name for name in one if name.startswith("parse-")] == ["parse-en"]
    assert "stanza" in one["parse-en"][0] and "words/train.heads.en " in one["parse-en"][0]
    words = "corpora/atis_en_tr_parser/words"
    assert f"cp {words}/treebank/train.heads.tr {words}" in one["parse"]
    assert not any("words/train.heads --" in step for step in one["parse"])
    neither = steps_of("atis_en_tr_random")
    assert [name for name in neither if name.startswith("parse")] == ["parse-en", "parse-tr"]
    assert "--parser random" in neither["parse-en"][0]
