"""fairseq's Transformers with two dictionaries become FSMT, and come back."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

import syncattn_fairseq
from syncattn_fairseq.cli import preprocess
from syncattn_fairseq.export import export
from syncattn_fairseq.imports import import_model
from tests.checkpoints import TWO_HEADS, Corpus, make_checkpoint

transformers = pytest.importorskip("transformers")

TABLES = {
    "two": {"share_all_embeddings": False, "share_decoder_input_output_embed": True},
    "separate output": {"share_all_embeddings": False, "share_decoder_input_output_embed": False},
}


@dataclass
class TwoDictionaries(Corpus):
    """The small corpus, binarised with a dictionary for each language."""

    place: Path

    @property
    def data(self) -> Path:
        return self.place


@pytest.fixture(scope="module")
def two(small_corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    arguments = ["-s=en", "-t=de", f"--destdir={folder / 'bin'}"]
    for split in ("train", "valid", "test"):
        pieces, words = (small_corpus.folder / name / split for name in ("pieces", "words"))
        arguments += [f"--{split}pref={pieces}", f"--{split}heads={words}"]
    assert preprocess.main(arguments) == 0
    made = TwoDictionaries(small_corpus.folder, folder / "bin")
    sizes = {len((made.data / f"dict.{x}.txt").read_text().splitlines()) for x in ("en", "de")}
    assert len(sizes) == 2
    return made


def list_scores(model, rows):
    """Return the log-probabilities of all symbols after each source and target."""
    with torch.no_grad():
        return [
            model(source, torch.tensor([source.size(1)]), target)[0].log_softmax(-1)
            for source, target in rows
        ]


@pytest.mark.parametrize("tables", TABLES)
@pytest.mark.parametrize("arch", ["transformer", "transformer_dbsa", "transformer_syncattn"])
def test_all_log_probabilities_are_the_same_both_ways(two, tmp_path, tables, arch):
    heads = {} if arch == "transformer" else TWO_HEADS
    arch = "syntax_transformer" if arch == "transformer" else arch
    path = make_checkpoint(two, tmp_path / "model.pt", arch, 0, **TABLES[tables], **heads)
    export(path, two.data, "transformers", tmp_path / "hub", subwords=[two.subwords])
    import_model(tmp_path / "hub", tmp_path / "made")
    ours = syncattn_fairseq.load(path, two.data, two.subwords, device="cpu")
    words, others = ours.task.source_dictionary, ours.task.target_dictionary
    rows = []
    for english, german in zip(two.lines("test.en"), two.lines("test.de"), strict=True):
        x = [*map(words.index, ours.source_segmenter([english])[0]), words.eos()]
        y = [others.eos(), *map(others.index, ours.target_segmenter([german])[0])]
        rows.append((torch.tensor([x]), torch.tensor([y])))
    expected = list_scores(ours.models[0], rows)
    fsmt = transformers.FSMTForConditionalGeneration.from_pretrained(tmp_path / "hub").eval()
    with torch.no_grad():
        found = [
            fsmt(input_ids=x, decoder_input_ids=y, use_cache=False).logits.log_softmax(-1)
            for x, y in rows
        ]
    again = syncattn_fairseq.load(tmp_path / "made", device="cpu").models[0]
    worst = 0.0
    for one, two_, three in zip(expected, found, list_scores(again, rows), strict=True):
        assert one.shape == two_.shape == three.shape
        worst = max(worst, *((each - one).abs().max().item() for each in (two_, three)))
    print("largest difference", worst)
    assert worst < 1e-4
    assert (again.decoder.output_projection.weight is again.decoder.embed_tokens.weight) == (
        tables == "two"
    )
