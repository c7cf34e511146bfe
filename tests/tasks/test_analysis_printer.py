import io
from typing import Any

import pytest
import torch

from syncattn_fairseq.tasks.analysis_printer import AnalysisPrinter
from syncattn_fairseq.tasks.forced_decoding import ForcedDecoding
from syncattn_fairseq.tasks.translation_with_syntax import TranslationWithSyntaxConfig
from tests.models import build

WORDS, TARGET = build.dictionary(), build.sentences([2, 4], seed=1)
BATCH = build.net_input(build.sentences([3, 2]), TARGET)


def printed(arch: str, batch: Any = BATCH, target: Any = TARGET, **kinds: Any) -> list[list[str]]:
    output = io.StringIO()
    AnalysisPrinter(WORDS, WORDS, TranslationWithSyntaxConfig(**kinds)).print(
        [build.model(arch)], batch, torch.tensor([5, 7]), target, output
    )
    return [line.split("\t") for line in output.getvalue().splitlines()]


def test_distances_are_those_of_the_states_that_read_a_token():
    lines = printed("transformer_lpsi_tiny", print_distances=True)
    assert [line[:3] for line in lines] == [
        [f"X-{number}", side, f"distance-{layer}"]
        for number in (5, 7)
        for side in ("source", "hypothesis")
        for layer in (1, 2)
    ]
    _, extra = build.model("transformer_lpsi_tiny")(**BATCH)
    expected = extra["tgt_distances"][0][1].mean(0)[1:5]  # states 1 to 4 read the four tokens
    values = [float(value) for value in lines[6][3].split()]
    assert values == pytest.approx(expected.tolist(), abs=1e-4)


@pytest.mark.parametrize("swapped", [False, True])
def test_an_ensemble_averages_the_models_that_measure_distances_in_a_layer(swapped):
    both = build.model("transformer_lpsi_tiny", noise=0.3)
    upper = build.model("transformer_lpsi_tiny", distance_layers="2", noise=0.2)
    plain = build.model("syntax_transformer_tiny")
    ensemble = [plain, upper, both] if swapped else [both, upper, plain]
    result = ForcedDecoding(ensemble, BATCH, TARGET, WORDS).distances("src_distances")
    first, second = (heads.mean(1) for heads in both(**BATCH)[1]["src_distances"])
    [other] = (heads.mean(1) for heads in upper(**BATCH)[1]["src_distances"])
    assert list(result) == [1, 2]
    assert result[1][0] == pytest.approx(first[0, :3].tolist(), abs=1e-5)
    assert result[2][0] == pytest.approx(((second + other) / 2)[0, :3].tolist(), abs=1e-5)


def test_links_of_one_head_say_so():
    lines = printed("syntax_transformer_tiny", print_layer_alignments=True, alignment_head=2)
    assert [line[1] for line in lines] == ["1.2", "2.2"] * 2


def test_links_lead_from_words_to_words():
    lines = printed("syntax_transformer_tiny", print_layer_alignments=True)
    assert [line[:2] for line in lines] == [["L-5", "1"], ["L-5", "2"], ["L-7", "1"], ["L-7", "2"]]
    model = build.model("syntax_transformer_tiny")
    for layer in (0, 1):
        _, extra = model(**BATCH, alignment_layer=layer)
        for row, length in enumerate((2, 4)):
            tokens = BATCH["src_tokens"][row]
            inside = tokens.ne(build.PAD) & tokens.ne(build.EOS)
            attended = extra["attn"][0][row][:length, inside].argmax(-1).tolist()
            links = [f"{source}-{target}" for target, source in enumerate(attended)]
            assert lines[2 * row + layer][2].split() == links


def test_an_empty_source_has_no_links():
    target = build.sentences([2, 2], seed=1)
    batch = build.net_input(build.sentences([3, 0]), target)
    lines = printed("syntax_transformer_tiny", batch, target, print_layer_alignments=True)
    assert [line[2] for line in lines if line[0] == "L-7"] == ["", ""]
    assert all(len(line[2].split()) == 2 for line in lines if line[0] == "L-5")


def test_a_stored_scheme_goes_before_what_the_dictionary_looks_like():
    words = build.dictionary()
    words.add_symbol("@@")
    assert AnalysisPrinter(words, words, None).src_scheme == "subword_nmt"
    printer = AnalysisPrinter(words, words, None, ("none", None))
    assert (printer.src_scheme, printer.tgt_scheme) == ("none", "subword_nmt")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("parses", "--print-parses: the model has no dependency heads"),
        ("distances", "--print-distances: the model measures no syntactic distances"),
    ],
)
def test_a_model_without_such_heads_says_so(kind, message):
    with pytest.raises(ValueError, match=message):
        printed("syntax_transformer_tiny", **{f"print_{kind}": True})
