"""The heads of an imported model attend as those of the program that it is from."""

import numpy as np
import pytest
import torch

import syncattn_fairseq
from syncattn_fairseq.imports import import_model
from tests.imports.test_import import WORDS, write_marian

transformers = pytest.importorskip("transformers")


def test_the_heads_of_an_imported_marian_attend_as_marians(tmp_path):
    folder = write_marian(tmp_path / "published")
    import_model(folder, tmp_path / "imported")
    model = syncattn_fairseq.load(tmp_path / "imported", in_subwords=True, device="cpu")
    source, target = "▁w1 ▁w7 x ▁w2", "▁w3 ▁w4 ▁w5"
    [heads] = model.heads([source], [target])
    theirs = transformers.MarianMTModel.from_pretrained(folder, attn_implementation="eager").eval()
    words = ["</s>", "<unk>", *WORDS, "<pad>"]
    numbers = [[words.index(piece) for piece in line.split()] for line in (source, target)]
    with torch.no_grad():
        found = theirs(
            input_ids=torch.tensor([[*numbers[0], 0]]),
            decoder_input_ids=torch.tensor([[len(words) - 1, *numbers[1]]]),
            output_attentions=True,
        )
    for part in ("encoder", "decoder", "cross"):
        layers = [layer[0].numpy() for layer in found[f"{part}_attentions"]]
        np.testing.assert_allclose(getattr(heads, part), np.stack(layers), atol=1e-4)
    assert heads.encoder.shape == (2, 4, 5, 5) and heads.decoder.shape == (3, 2, 4, 4)
