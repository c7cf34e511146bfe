"""Read lines of word alignments, in the formats of aligners and of alignments made by hand."""

import re

from ..base.errors import DataError

#: A link, and perhaps its probability.
_LINK = re.compile(r"([0-9]{1,9})([-?p])([0-9]{1,9})(?::[0-9.e+-]+)?")
#: The links between what fast_align adds: a score (``-s``), and the texts (``-f``).
_SCORED = re.compile(r"(?:.* \|\|\| .* \|\|\| )?([0-9-?p ]*)\|\|\| -?([0-9.e+-]+|inf|nan) *")
#: Other formats of links, by a line that only they have.
_OTHER_FORMATS = {
    "GIZA++'s A3": re.compile(r"# Sentence pair \(\d+\) source length "),
    "numbered (.wa)": re.compile(r"\d+ \d+ \d+( [SP]( [0-9.]+)?)?"),
}


def read_links(line: str) -> list[tuple[int, int, bool]]:
    """Return the links on a line of word alignments: source, target, and whether a link is sure.

    They are separated by spaces, tabs or commas, with or without fast_align's score (``0-0 1-2 |||
    -3.2``). ``i-j`` is sure, whatever probability follows it (``i-j:0.9``). ``i?j``, or ``ipj`` in
    a talp file, is only possible.

    Args:
        line: the line.

    Returns:
        The links in their order; their numbers are those of the line.

    Raises:
        DataError: something is not a link.
    """
    scored = _SCORED.fullmatch(line)
    links = []
    for token in (scored[1] if scored else line).replace(",", " ").split():
        match = _LINK.fullmatch(token)
        if not match:
            raise DataError(_describe_fault(line, token))
        links.append((int(match[1]), int(match[3]), match[2] == "-"))
    return links


def _describe_fault(line: str, token: str) -> str:
    """Return a description of the fault in a line without valid links."""
    for name, pattern in _OTHER_FORMATS.items():
        if pattern.match(line):
            return (
                f"these are links in the format {name}; write the links of a sentence on one "
                "line, as 3-4 1-2"
            )
    return (
        f"{token[:60]!r} is not a link between two words; write 3-4 (a sure link), 3?4 or 3p4 (a "
        "possible link)"
    )
