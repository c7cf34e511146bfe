import numpy as np
import pytest

import syncattn_fairseq
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.export import export, shortlist
from syncattn_fairseq.export.shortlist import make_shortlists

pytest.importorskip("ctranslate2")


@pytest.mark.parametrize("links", [1000, 2**22])  # many blocks, and one
def test_words_that_translate_each_other_come_first(monkeypatch, links):
    """Word s is translated by s + 10 and is always next to 9, whose translation is 19."""
    monkeypatch.setattr(shortlist, "_LINKS", links)
    draw = np.random.default_rng(1)
    pairs = []
    for _ in range(2500):
        source = np.array([*draw.integers(4, 9, 2), 9, 2])  # the end of sentence is no word
        pairs.append((source, np.where(source > 2, source + 10, 2)))
    frequent, shortlists = make_shortlists(pairs, (12, 22), 2)
    assert frequent.tolist()[0] == 19 and len(frequent) == 2
    assert [int(shortlists[s][0]) for s in range(4, 10)] == [14, 15, 16, 17, 18, 19]
    assert {len(shortlists[s]) for s in range(4, 10)} == {2}
    assert not len(shortlists[11])  # never seen


def test_the_probabilities_are_those_of_the_model():
    """After many passes over these pairs, each word has one translation."""
    pairs = [([4, 5], [4, 5]), ([4], [2]), ([4], [4]), ([2], [4])]
    arrays = [(np.array(s), np.array(t)) for s, t in pairs]
    _, shortlists = make_shortlists(arrays, (6, 6), 1)
    assert [s.tolist() for s in shortlists[4:]] == [[4], [5]]


def test_a_translation_has_only_what_its_source_allows(small_corpus, tmp_path):
    folders = small_corpus.exported("ctranslate2"), tmp_path / "short"
    small_corpus.export(small_corpus.trained(), "ctranslate2", folders[1], shortlist=3)
    assert [(folder / "vmap.txt").exists() for folder in folders] == [False, True]
    pieces = []
    for folder in folders:
        model = syncattn_fairseq.load(folder, device="cpu")
        sentences = [model.translate([s])[0].sentence for s in small_corpus.learned()]
        pieces.append([sentence.pieces for sentence in sentences])
    allowed = {}
    for line in (folder / "vmap.txt").read_text(encoding="utf-8").splitlines():
        word, _, targets = line.partition("\t")
        allowed[word] = targets.split(" ")
    assert {len(targets) for targets in allowed.values()} == {3}
    sources = model.source_segmenter(small_corpus.learned())
    kept = [
        {*found} <= {"<unk>", *(t for s in ["", *source] for t in allowed.get(s, []))}
        for source, found in zip(sources, pieces[1], strict=True)
    ]
    assert all(kept) and pieces[0] != pieces[1]


def test_what_cannot_have_a_shortlist_is_refused(small_corpus, own_data, tmp_path):
    path = small_corpus.checkpoint("transformer_sh")
    with pytest.raises(DataError, match="only --format ctranslate2"):
        small_corpus.export(path, "fairseq", tmp_path / "out", shortlist=3)
    with pytest.raises(DataError, match="dependency labels"):
        small_corpus.export(path, "ctranslate2", tmp_path / "out", shortlist=3)
    for file in own_data.glob("train.*"):
        file.unlink()
    with pytest.raises(DataError, match="has no training text, from which --shortlist"):
        export(small_corpus.trained(), own_data, "ctranslate2", tmp_path / "out", shortlist=3)
    assert not (tmp_path / "out").exists()
