"""Replace unknown words (``--replace-unk``) from a dictionary, or report missing requirements.

Faults: all versions take ``@@`` and a space for the name of the dictionary if none is given; expect
a source position for each word, where their own alignments are pairs; and look the words of
translations without subword marks up in alignments of subwords.
Test: ``test_unknown_words.py``.
"""

from typing import Any

from ..base.errors import DataError
from ..base.text import read_lines
from .wrapping import wrap

#: fairseq's value for no dictionary.
_NONE = "@@ "


def mend() -> None:
    """Make ``--replace-unk`` check its dictionary, and find source words by the hard alignment."""
    from fairseq import utils

    @wrap(utils, "load_align_dict")
    def load(original: Any, replace_unk: str | None) -> dict[str, str] | None:
        if replace_unk is None:
            return None
        if replace_unk == _NONE:
            raise DataError(
                "--replace-unk: give the file of a bilingual dictionary, with a source word and "
                "a target word on each line"
            )
        return dict(
            _read_entry(replace_unk, n, x) for n, x in enumerate(read_lines(replace_unk), 1)
        )

    @wrap(utils, "post_process_prediction")
    def process(
        original: Any,
        hypo_tokens: Any,
        src_str: str,
        alignment: Any,
        align_dict: dict[str, str] | None,
        tgt_dict: Any,
        remove_bpe: str | None = None,
        **more: Any,
    ) -> Any:
        positions = alignment
        if align_dict is not None:
            if remove_bpe is not None:
                raise DataError(
                    "--replace-unk: alignments are between subwords; leave --remove-bpe out"
                )
            positions = _find_positions(alignment, len(hypo_tokens))
        found = original(hypo_tokens, src_str, positions, align_dict, tgt_dict, remove_bpe, **more)
        return (*found[:2], alignment)


def _read_entry(path: str, number: int, line: str) -> tuple[str, str]:
    words = line.split()
    if len(words) != 2:
        raise DataError(
            f"{path}:{number}: expected a source word and a target word, got {len(words)} words; "
            "correct the line"
        )
    return words[0], words[1]


def _find_positions(alignment: Any, length: int) -> list[int]:
    """Return the source position of each target token; -1, the last position, without a link."""
    pairs = [pair for pair in alignment if isinstance(pair, tuple)]
    if not pairs:
        raise DataError("--replace-unk: add --print-alignment hard")
    sources = {int(target): int(source) for source, target in pairs}
    return [sources.get(position, -1) for position in range(length)]
