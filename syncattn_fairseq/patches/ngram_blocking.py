"""Make ``--no-repeat-ngram-size`` work without fairseq's CUDA extension.

Fault: all versions compare earlier n-grams with the last columns of a table of tokens, most of
which is still empty: without the extension, the option does nothing.
Test: ``test_small_patches.py``.
"""

from typing import Any

from .wrapping import wrap


def mend() -> None:
    """Make ``--no-repeat-ngram-size`` compare n-grams only with the tokens generated so far."""
    from fairseq.ngram_repeat_block import NGramRepeatBlock

    @wrap(NGramRepeatBlock, "_no_repeat_ngram")
    def block_seen(
        block: Any, self: Any, tokens: Any, lprobs: Any, bsz: int, beam_size: int, step: int
    ) -> Any:
        return block(self, tokens[:, : step + 1], lprobs, bsz, beam_size, step)
