"""Models that read sentences as people write them."""

import pytest
from syncattn_fairseq.base.errors import DataError


def test_x(raw_corpus):
    model = raw_corpus.load(raw_corpus.trained())
    for text in raw_corpus.learned():
        print(text, model.translate([text]), model.parse([text])[0].source.tree, model.source_segmenter([text]))
    assert 0
