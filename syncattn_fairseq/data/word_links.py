"""Links between the words of two sentences, from links between their subwords."""

from collections.abc import Iterable, Sequence

from ..base.errors import DataError
from ..printed.analysis_lines import Link


def link_words(
    links: Iterable[Link], source_lengths: Sequence[int], target_lengths: Sequence[int]
) -> set[Link]:
    """Link two words if any of their subwords are linked.

    Args:
        links: pairs of 0-based subword positions.
        source_lengths: number of subwords of each source word.
        target_lengths: number of subwords of each target word.

    Raises:
        DataError: a link lies outside the sentence.
    """
    source_word = [word for word, n in enumerate(source_lengths) for _ in range(n)]
    target_word = [word for word, n in enumerate(target_lengths) for _ in range(n)]
    try:
        return {(source_word[i], target_word[j]) for i, j in links}
    except IndexError:
        raise DataError(
            f"a link lies outside the {len(source_word)} source or the {len(target_word)} target "
            "subwords"
        ) from None
