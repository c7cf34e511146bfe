"""fast_align (Dyer et al., 2013) on a corpus: a baseline for alignments.

``python -m syncattn_fairseq.lab.recipes.aligner --words corpora/C/words --languages de en`` writes
``fast_align.forward`` and ``fast_align.backward`` there, the links of the test set.

Both of its models learn from the training and the test text together, since fast_align only aligns
its training text.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ...base.errors import DataError
from ...base.files import replacing
from ...base.text import read_lines
from ...cli.common import command
from ...data.parallel_text import read_pairs

PROGRAM = "fast_align"
#: Its two directions, with options for each; links are source-target in both.
WAYS = {"forward": (), "backward": ("-r",)}
_OPTIONS = ("-d", "-o", "-v")


def align(words: Path, languages: Sequence[str]) -> None:
    """Write the links of the test set.

    Args:
        words: folder of ``train.LANG`` and ``test.LANG``.
        languages: source and target.

    Raises:
        DataError: the program fails, or does not print a line for each pair.
    """
    count = sum(1 for _ in read_lines(words / f"test.{languages[0]}"))
    with TemporaryDirectory() as folder:
        text = Path(folder, "text")
        with text.open("w", encoding="utf-8") as file:
            for source, target in _pairs(words, languages):
                file.write(f"{source or '-'} ||| {target or '-'}\n")  # no side may be empty
        for way in WAYS:
            links = Path(folder, way)
            with links.open("wb") as file_of_links:
                process = subprocess.run(
                    [PROGRAM, "-i", str(text), *_OPTIONS, *WAYS[way]],
                    stdout=file_of_links,
                    stderr=subprocess.PIPE,
                )
            lines = list(read_lines(links))
            if process.returncode or len(lines) < count:
                fault = process.stderr.decode(errors="replace").strip().splitlines()[-1:]
                raise DataError(
                    f"{PROGRAM} exited with status {process.returncode} after {len(lines)} lines"
                    + "".join(f": {text}" for text in fault)
                )
            with replacing(words / f"{PROGRAM}.{way}") as path:
                path.write_text("".join(f"{line}\n" for line in lines[-count:]), "utf-8")


def _pairs(words: Path, languages: Sequence[str]) -> Iterator[tuple[str, str]]:
    for split in ("train", "test"):
        yield from read_pairs(words / split, languages)


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--words", type=Path, required=True, metavar="DIR")
    parser.add_argument("--languages", nargs=2, required=True, metavar=("SRC", "TGT"))
    args = parser.parse_args(argv)
    align(args.words, args.languages)


if __name__ == "__main__":
    sys.exit(main())
