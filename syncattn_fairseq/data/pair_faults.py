"""Which training pairs are kept, by the rules of Moses's ``clean-corpus-n``."""

#: Why pairs are left out, in the order of the checks.
FAULTS = EMPTY, LONG, UNEVEN, EXCLUDED = (
    "a side has no words",
    "a side is longer than --max-words",
    "a side is more than --ratio times as long as the other",
    "a side is one of --exclude",
)


def key(sentence: str) -> str:
    """Return a key that is the same for sentences that differ only in case or spaces."""
    return "".join(sentence.split()).lower()


def find_fault(source: str, target: str, max_words: int | None, ratio: float | None) -> str | None:
    """Return why a pair of tokenised sentences is left out, or None if it is kept.

    Args:
        source, target: words between spaces.
        max_words: the most words on either side; None: any number.
        ratio: how many times longer than the other a side may be; None: any number.
    """
    shorter, longer = sorted((len(source.split()), len(target.split())))
    if shorter == 0:
        return EMPTY
    if max_words is not None and longer > max_words:
        return LONG
    if ratio is not None and longer / shorter > ratio:
        return UNEVEN
    return None
