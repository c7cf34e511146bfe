import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.subwords import CONTINUATION, NO_HEAD, NO_TOKEN
from syncattn_fairseq.data.words import count_subwords
from syncattn_lab.cli.score import main
from syncattn_lab.evaluation.attachment import score_attachment
from syncattn_lab.evaluation.attachment_baselines import OffsetTable, score_baselines
from syncattn_lab.evaluation.head_probe import Probe, choose_best, count
from tests.checkpoints import make_checkpoint


@st.composite
def sentences(draw):
    """Draw marks with padding, and random attention."""
    rows, width = [], 9
    for _ in range(draw(st.integers(1, 3))):
        words = draw(st.integers(1, 4))
        marks = []
        for _ in range(words):
            head = draw(st.integers(0, words))
            marks += [head] + [CONTINUATION] * draw(st.integers(0, 1))
        if draw(st.booleans()):
            marks = [NO_HEAD if mark >= 0 else mark for mark in marks]
        rows.append(marks + [NO_TOKEN] * (width - len(marks)))
    seed = draw(st.integers(0, 999))
    generator = torch.Generator().manual_seed(seed)
    return torch.tensor(rows), torch.rand(len(rows), 2, width, width, generator=generator)


@given(sentences(), st.booleans(), st.sampled_from(["input", "predicted"]))
def test_the_counts_equal_the_loop(drawn, left_only, rows):
    marks, attention = drawn
    expected, counted = [0, 0], 0
    shift = 1 if left_only and rows == "input" else 0
    for b, row in enumerate(marks.tolist()):
        starts = [t for t, mark in enumerate(row) if mark not in (CONTINUATION, NO_TOKEN)]
        length = sum(mark != NO_TOKEN for mark in row)
        word_of = [sum(start <= t for start in starts) for t in range(length)]  # from 1
        for word, start in enumerate(starts, 1):
            head, last = row[start], max(t for t in range(length) if word_of[t] == word)
            if head < 0 or left_only and head > word:
                continue
            counted += 1
            for h in range(2):
                looked = int(attention[b, h, last + shift].argmax()) - shift
                if 0 <= looked < length and word_of[looked] == (head or word):
                    expected[h] += 1
    found, words = count(attention, marks, left_only, rows)
    assert (found.tolist(), words) == (expected, counted)


@pytest.fixture(scope="module")
def checkpoints(small_corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("probed")
    made = {}
    for arch in ("transformer_dbsa_tiny", "syntax_transformer_tiny", "rnn_global"):
        made[arch] = str(make_checkpoint(small_corpus, folder / f"{arch}.pt", arch))
    return made


def read_heads(corpus, side, split="test"):
    lines = corpus.lines(f"{split}.heads.{side}")
    return [[*map(int, line.split())] or None for line in lines]


def read_pieces(corpus, name):
    lines = (corpus.folder / "pieces" / name).read_text(encoding="utf-8").splitlines()
    return [(line.split(), count_subwords(line.split(), "sentencepiece")) for line in lines]


def test_dependency_heads_have_the_uas_of_their_printed_parses(small_corpus, checkpoints):
    path = checkpoints["transformer_dbsa_tiny"]
    heads = Probe(str(small_corpus.data), "test").probe(path)
    model = small_corpus.load(path)
    pairs = model.parse(small_corpus.lines("test.en"), small_corpus.lines("test.de"))
    for side, language, rows in (("source", "en", "input"), ("target", "de", "predicted")):
        wanted = (side, "dependency", rows)
        [found] = [head for head in heads if (head.side, head.kind, head.rows) == wanted]
        printed = [getattr(pair, side).heads for pair in pairs]
        gold = read_heads(small_corpus, language)
        score = score_attachment(printed, gold, left_only=side == "target")
        assert (found.correct, found.counted) == (score.correct, score.counted)
        assert found.name == "layer 1, dependency 1"


def test_plain_models_are_probed_beside_counts(small_corpus, checkpoints, capsys):
    plain, data = checkpoints["syntax_transformer_tiny"], str(small_corpus.data)
    assert main(["heads", data, plain]) == 0
    printed = capsys.readouterr().out
    assert "UAS target of parses that know no syntax: best offset " in printed
    assert main(["heads", data, plain, "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    heads = Probe(data, "test").probe(plain)
    assert [one["uas"] for one in document["checkpoints"][plain]] == [head.uas for head in heads]
    best = choose_best(heads)
    assert [(head.side, head.rows) for head in best] == [
        *(("source", "input"), ("target", "input"), ("target", "predicted"))
    ]
    for head in best:
        others = [x.correct for x in heads if (x.side, x.rows) == (head.side, head.rows)]
        assert head.correct == max(others) and f" {100 * head.uas:.1f}" in printed
    # The counts are those of the training text's subwords.
    table = OffsetTable(sees_word=False, left_only=True)
    pieces = {split: read_pieces(small_corpus, f"{split}.de") for split in ("train", "test")}
    for (subwords, lengths), gold in zip(
        pieces["train"], read_heads(small_corpus, "de", "train"), strict=True
    ):
        if gold:
            table.add(subwords, lengths, gold)
    expected = score_baselines(read_heads(small_corpus, "de"), True, table, pieces["test"])
    for name, score in expected.items():
        assert document["baselines"]["target"][name] == score.as_dict()


def test_what_cannot_be_probed(small_corpus, checkpoints, tmp_path):
    with pytest.raises(DataError, match="rnn_global.pt: has no self-attention heads of ours"):
        Probe(str(small_corpus.data), "test").probe(checkpoints["rnn_global"])
    without = tmp_path / "bin"
    without.mkdir()
    for path in small_corpus.data.iterdir():
        if "heads" not in path.name:
            (without / path.name).symlink_to(path)
    with pytest.raises(DataError, match="bin: test has no heads; binarise it with --testheads"):
        Probe(str(without), "test").probe(checkpoints["syntax_transformer_tiny"])
