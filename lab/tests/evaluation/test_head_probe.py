import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.words import count_subwords
from syncattn_fairseq.inference.attention_heads import HeadName
from syncattn_lab.cli.score import main
from syncattn_lab.evaluation.attachment import score_attachment
from syncattn_lab.evaluation.attachment_baselines import OffsetTable, score_baselines
from syncattn_lab.evaluation.head_probe import Probe
from syncattn_lab.evaluation.head_scores import LEAST, View, Words, correct, find_strongest
from syncattn_lab.evaluation.measures import holm
from tests.cli.errors import read_error

SIDES = {"encoder": ("source", "en"), "decoder": ("target", "de")}
PLACES = [("encoder", "input"), ("decoder", "input"), ("decoder", "predicted")]


@pytest.fixture(scope="module")
def paths(small_corpus):
    names = ("transformer_dbsa", "transformer", "rnn_global")
    return {name: str(small_corpus.checkpoint(name)) for name in names}


@pytest.fixture(scope="module")
def labels(small_corpus):
    words = small_corpus.folder / "words"
    return {side: str(words / f"test.labels.{code}") for side, code in SIDES.values()}


@pytest.fixture(scope="module")
def probe(small_corpus, labels):
    return Probe(str(small_corpus.data), "test", labels)


def read_heads(corpus, side, split="test"):
    lines = corpus.lines(f"{split}.heads.{side}")
    return [[*map(int, line.split())] or None for line in lines]


def read_pieces(corpus, name):
    lines = (corpus.folder / "pieces" / name).read_text(encoding="utf-8").splitlines()
    return [(line.split(), count_subwords(line.split(), "sentencepiece")) for line in lines]


def pick(model, part, rows):
    [view] = [view for view in model.views if (view.part, view.rows) == (part, rows)]
    return view


def test_dependency_heads_have_the_uas_of_their_printed_parses(small_corpus, paths, probe):
    found = probe.probe(paths["transformer_dbsa"])
    model = small_corpus.load(paths["transformer_dbsa"])
    pairs = model.parse(small_corpus.lines("test.en"), small_corpus.lines("test.de"))
    for part, rows in (PLACES[0], PLACES[2]):
        side, language = SIDES[part]
        view = pick(found, part, rows)
        assert (view.kinds[0], str(view.names[0])) == ("dependency", f"{part}.1.1")
        printed = [getattr(pair, side).heads for pair in pairs]
        gold, named = (
            read_heads(small_corpus, language),
            small_corpus.lines(f"test.labels.{language}"),
        )
        by_label = [line.split() for line in named]
        score = score_attachment(printed, gold, part == "decoder", by_label)
        ours = view.score(view.right[:, 0])
        assert (ours.correct, ours.counted) == (score.correct, score.counted)
        for label, one in score.parts["label"].items():
            assert view.score(view.right[:, 0], label).correct == one.correct


def test_all_numbers_of_all_heads_equal_the_loop(small_corpus, paths, probe):
    path = paths["transformer"]
    found = probe.probe(path)
    sentences = small_corpus.load(path).heads(
        small_corpus.lines("test.en"), small_corpus.lines("test.de")
    )
    assert found.sentences == len(sentences) and found.left_out == 0
    for part, rows in PLACES:
        view, language = pick(found, part, rows), SIDES[part][1]
        named = [line.split() for line in small_corpus.lines(f"test.labels.{language}")]
        for number, name in enumerate(view.names):
            right, seen = [], []
            for heads, gold, own in zip(
                sentences, read_heads(small_corpus, language), named, strict=True
            ):
                guess = heads.parents(part, rows)[name.layer - 1, name.number - 1]
                for word, (parent, label) in enumerate(zip(gold, own, strict=True)):
                    if part == "encoder" or parent <= word + 1:
                        right.append(int(guess[word]) == parent)
                        seen.append(label)
            assert view.right[:, number].tolist() == right
            assert view.words.labels.tolist() == seen
    assert {*found.spreads} == {*found.kinds} == {*sentences[0].names}
    for name, spread in found.spreads.items():
        entropy = distance = inside = end = count = 0.0
        for heads in sentences:
            matrix = getattr(heads, name.part)[name.layer - 1, name.number - 1]
            shift = int(name.part == "decoder")
            stop = 0 if shift else matrix.shape[1] - 1
            for row in range(shift, matrix.shape[0] - 1 + shift):
                count += 1
                for column, weight in enumerate(matrix[row].tolist()):
                    entropy -= weight * math.log(weight) if weight else 0.0
                    if column == stop:
                        end += weight
                    else:
                        inside += weight
                        distance += weight * abs(row - column)
        assert spread.entropy == pytest.approx(entropy / count, abs=1e-4)
        assert spread.end == pytest.approx(end / count, abs=1e-5)
        if name.part == "cross":
            assert spread.distance is None
        else:
            assert spread.distance == pytest.approx(distance / inside, abs=1e-4)


def test_controls_are_those_of_the_training_text(small_corpus, paths, probe):
    found = probe.probe(paths["transformer"])
    for part, rows in PLACES:
        language = SIDES[part][1]
        table = OffsetTable(sees_word=rows == "input", left_only=part == "decoder")
        train, test = (read_pieces(small_corpus, f"{x}.{language}") for x in ("train", "test"))
        for (subwords, lengths), gold in zip(
            train, read_heads(small_corpus, language, "train"), strict=True
        ):
            table.add(subwords, lengths, gold)
        gold = read_heads(small_corpus, language)
        expected = score_baselines(gold, part == "decoder", table, test)
        view = pick(found, part, rows)
        assert [*view.controls] == [*expected]
        for name, score in expected.items():
            ours = view.score(view.controls[name])
            assert (ours.correct, ours.counted) == (score.correct, score.counted)


# ---- the strongest head


@st.composite
def drawn_views(draw):
    generator = np.random.default_rng(draw(st.integers(0, 9999)))
    sizes = generator.integers(1, 7, size=draw(st.integers(6, 16)))
    parents = np.concatenate([generator.integers(0, size + 1, size) for size in sizes])
    words = Words(
        np.repeat(3 * np.arange(len(sizes)) + 1, sizes),
        np.concatenate([np.arange(1, 1 + size) for size in sizes]),
        np.repeat(sizes, sizes),
        parents,
        generator.choice(np.array(["a", "a", "b", ""], dtype=object), len(parents)),
    )
    right = generator.random((len(parents), 3)) < generator.random(3)
    controls = {"best offset +9": right[:, 0], "counts": generator.random(len(parents)) < 0.5}
    names = [HeadName("encoder", 1, number) for number in (1, 2, 3)]
    return View("encoder", "input", names, ["ordinary"] * 3, words, right, controls)


@settings(max_examples=20)
@given(drawn_views())
def test_the_strongest_head_is_chosen_on_one_half_and_scored_on_the_other(view):
    words = view.words
    order = sorted({*words.sentences.tolist()})
    found = {each.label: each for each in find_strongest(view)}
    frequent = sorted("ab", key=lambda x: (-words.labels.tolist().count(x), x))
    assert [*found] == [label for label in (None, *frequent) if label in found]
    for label in (None, "a", "b"):
        halves = [[], []]
        for word, (sentence, own) in enumerate(zip(words.sentences, words.labels, strict=True)):
            if label in (None, own):
                halves[order.index(sentence) % 2].append(word)
        assert (label in found) == (min(map(len, halves)) >= LEAST)
        if label not in found:
            continue
        each, (choose, score) = found[label], halves
        counts = [sum(view.right[word, head] for word in choose) for head in range(3)]
        assert each.head == counts.index(max(counts)) and each.words == len(score)
        assert each.recall == pytest.approx(np.mean([view.right[w, each.head] for w in score]))

        def follow(word, offset):
            place = words.positions[word] + offset
            inside = offset != 0 and 1 <= place <= words.sizes[word]
            return words.parents[word] == (place if inside else 0)

        best = max(sum(follow(word, x) for word in choose) for x in range(-7, 8))
        text = each.offset.replace("−", "-")
        offset = 0 if text == "root" else int(text)
        assert sum(follow(word, offset) for word in choose) == best
        offsets = np.mean([follow(word, offset) for word in score])
        assert each.controls["best offset"] == pytest.approx(offsets)
        counted = [view.controls["counts"][word] for word in score]
        assert each.controls["counts"] == pytest.approx(np.mean(counted))
        chosen = sum(view.controls["counts"][word] for word in choose)
        assert each.control == ("counts" if chosen > best else "best offset")
        expected = each.recall - each.controls[each.control]
        assert each.difference.difference == pytest.approx(expected)
        assert each.difference.low <= each.difference.high and 0 < each.p <= 1


def test_the_sentences_that_score_do_not_choose():
    generator = np.random.default_rng(5)
    size = 400
    right = generator.random((size, 20)) < 0.3  # no head is better than another
    words = Words(
        np.repeat(np.arange(100), 4),
        np.tile([1, 2, 3, 4], 100),
        np.full(size, 4),
        generator.integers(0, 5, size),
    )
    names = [HeadName("encoder", 1, number) for number in range(1, 21)]
    view = View("encoder", "input", names, ["ordinary"] * 20, words, right, {})
    [each] = find_strongest(view)
    on_itself = right[words.choosing].mean(0).max()
    assert on_itself > 0.33 and each.recall == right[~words.choosing, each.head].mean() < 0.33
    other = right.copy()
    other[~words.choosing] = False
    other[~words.choosing, (each.head + 1) % 20] = True
    view = View("encoder", "input", names, ["ordinary"] * 20, words, other, {})
    [again] = find_strongest(view)
    assert again.head == each.head and again.recall == 0


@settings(max_examples=8)
@given(drawn_views(), drawn_views())
def test_p_is_corrected_over_all_views_of_a_model(first, second):
    views = [find_strongest(first), find_strongest(second)]
    expected = holm([each.p for view in views for each in view])
    decided = [each for view in correct(views) for each in view]
    assert [each.corrected for each in decided] == expected
    for each in decided:
        if each.corrected >= 0.05:
            assert each.verdict == "not known"
        else:
            assert each.verdict == ("better" if each.difference.difference > 0 else "worse")


# ---- the command


def ask(small_corpus, labels, path, *arguments):
    options = [f"--source-labels={labels['source']}", f"--target-labels={labels['target']}"]
    return main(["heads", str(small_corpus.data), path, *options, *arguments])


def test_the_command_prints_every_head_beside_the_controls(small_corpus, paths, labels, capsys):
    path = paths["transformer_dbsa"]
    assert ask(small_corpus, labels, path, "--json", "-") == 0
    document = json.loads(capsys.readouterr().out)["checkpoints"][path]
    assert ask(small_corpus, labels, path) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{path}\n\n12 sentences\n\nencoder ")
    assert ask(small_corpus, labels, path, "--markdown") == 0
    pages = capsys.readouterr().out
    assert pages.startswith(f"## {path}\n\n12 sentences\n\n| encoder | kind | UAS |")
    assert "\n- UAS: words that look at their parent most" in pages
    views = document["views"]
    assert [(view["part"], view["rows"]) for view in views] == PLACES
    for view in views:
        for name, one in [
            *((each["head"], each) for each in view["heads"]),
            *view["controls"].items(),
        ]:
            assert one["uas"] == one["correct"] / one["counted"]
            number = f"{100 * one['uas']:.1f}"
            assert re.search(rf"^{re.escape(name)} .*  {number} ", printed, re.MULTILINE)
            assert f"| {name} | " in pages
            parts = one["labels"].values()
            assert sum(part["correct"] for part in parts) == one["correct"]
        everything = view["strongest"][0]
        assert everything["label"] is None
        assert re.search(
            rf"^all words +{everything['words']} +{everything['head']} +"
            rf"{100 * everything['recall']:.1f} ",
            printed,
            re.MULTILINE,
        )
    assert re.search(r"^cross\.3\.4 +ordinary +\d\.\d\d +\d+\.\d$", printed, re.MULTILINE)
    assert document["kinds"]["cross.3.4"] == "ordinary"
    assert document["spreads"]["cross.3.4"]["distance"] is None
    assert printed.count("UAS: words that look") == 1


def test_without_labels_and_training_text(small_corpus, paths, tmp_path, capsys):
    folder = tmp_path / "bin"
    folder.mkdir()
    for path in small_corpus.data.iterdir():
        if not path.name.startswith("train"):
            (folder / path.name).symlink_to(path)
    assert main(["heads", str(folder), *[paths["transformer"]] * 2]) == 0
    printed = capsys.readouterr().out
    assert "12 sentences; no table of counts, since the training text is not here" in printed
    assert printed.count("all words") == 3 and "counts  " not in printed
    assert "a label with fewer" not in printed


@pytest.mark.parametrize(
    ("side", "text", "message"),
    [
        ("source", "a\n" * 3, "x: has 3 lines, but test has 12 sentences"),
        ("target", "\n" * 11 + "a\n", "x:12: 1 labels, but the sentence has"),
    ],
)
def test_labels_of_other_words(small_corpus, paths, tmp_path, capsys, side, text, message):
    labels = tmp_path / "x"
    labels.write_text(text)
    arguments = [str(small_corpus.data), paths["transformer"], f"--{side}-labels={labels}"]
    assert message in read_error(capsys, main(["heads", *arguments]))


def test_sentences_without_labels_count_in_the_uas(small_corpus, paths, labels, tmp_path):
    lines = Path(labels["source"]).read_text().splitlines()
    (tmp_path / "x").write_text("\n".join(["", *lines[1:]]) + "\n")
    found = Probe(str(small_corpus.data), "test", {"source": str(tmp_path / "x")})
    view = pick(found.probe(paths["transformer"]), "encoder", "input")
    size = len(lines[0].split())
    assert view.words.labels[:size].tolist() == [""] * size and "" not in view.words.list_labels()
    assert view.score(view.right[:, 0]).counted == len(view.words)


def test_long_sentences_are_counted(small_corpus, tmp_path):
    sizes = sorted(len(pieces) for pieces, _ in read_pieces(small_corpus, "test.en"))
    limit = sizes[-3] + 1
    path = small_corpus.checkpoint("transformer", max_source_positions=limit)
    found = Probe(str(small_corpus.data), "test").probe(str(path))
    longer = sum(size + 1 > limit for size in sizes)
    assert found.left_out == longer > 0 and found.sentences == 12 - longer


def test_what_cannot_be_probed(small_corpus, paths, labels, tmp_path):
    data = str(small_corpus.data)
    with pytest.raises(DataError, match="rnn_global-.*: has no self-attention heads; give a Tr"):
        Probe(data, "test").probe(paths["rnn_global"])
    both = ":".join([paths["transformer"]] * 2)
    with pytest.raises(DataError, match="heads can be shown for a single model"):
        Probe(data, "test").probe(both)
    without = tmp_path / "bin"
    without.mkdir()
    for path in small_corpus.data.iterdir():
        if "heads" not in path.name:
            (without / path.name).symlink_to(path)
    with pytest.raises(
        DataError,
        match="bin: test has no heads; binarise the text with syncattn-preprocess --testheads",
    ):
        Probe(str(without), "test").probe(paths["transformer"])
    for path in small_corpus.data.glob("test.heads.*.en.*"):
        (without / path.name).symlink_to(path)
    with pytest.raises(DataError, match="labels.de: labels are given, but the target has no heads"):
        Probe(str(without), "test", labels).probe(paths["transformer"])
