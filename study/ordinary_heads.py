"""Score the best head of each kept model as a parser that was never trained to parse.

    python -m study.ordinary_heads atis_en_tr_late transformer --work . \
        --output study/results/heads/atis_en_tr_late.json

Of each side, the head of ``checkpoint_average.pt`` counts that has the highest UAS on the test text
itself, which favours it. Rows of the decoder have to find the parent of the word that they predict,
as those of DBSA by default, or of the word that they read (``UAS target input``).
"""

import argparse
import contextlib
import io
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tqdm import tqdm

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import read_json
from syncattn_lab.cli.score import main as score

from .counted_parents import record_scores

#: The average that a recipe makes of late checkpoints.
_CHECKPOINT = "checkpoint_average.pt"
#: What scores are called, by part of the model and rows.
NAMES = {
    ("encoder", "input"): "UAS source",
    ("decoder", "predicted"): "UAS target",
    ("decoder", "input"): "UAS target input",
}


def find_best(views: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the highest UAS of an ordinary head of each side, in per cent, by `NAMES`.

    Args:
        views: what ``syncattn-score heads --json`` says of a checkpoint.
    """
    best: dict[str, float] = {}
    for view in views:
        uas = [head["uas"] for head in view["heads"] if head["kind"] == "ordinary"]
        best[NAMES[view["part"], view["rows"]]] = round(100 * max(uas), 4)
    return best


def main(words: Sequence[str] | None = None) -> None:
    """Write a results file with the best ordinary head of each training of a system.

    ``words`` are the command's arguments; None: those of the process.
    """
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("corpus")
    made.add_argument("system")
    made.add_argument("--work", type=Path, default=Path(), help="of the recipe")
    made.add_argument("--output", type=Path, required=True, help="JSON file to write")
    args = made.parse_args(words)
    data = args.work / "data-bin" / args.corpus
    folder = args.work / "checkpoints" / args.corpus / args.system
    paths = sorted(folder.glob(f"*/{_CHECKPOINT}"))
    if not paths:
        raise DataError(f"{folder}: has no SEED/{_CHECKPOINT}; train the system first")
    scores = {}
    for path in tqdm(paths):
        with TemporaryDirectory() as temporary:
            printed = Path(temporary) / "heads.json"
            with contextlib.redirect_stdout(io.StringIO()):  # the table
                status = score(["heads", str(data), str(path), f"--json={printed}"])
            if status:
                raise SystemExit(status)
            views = read_json(printed)["checkpoints"][str(path)]["views"]
        scores[f"best_head_of_{args.system}", int(path.parent.name)] = find_best(views)
    record_scores(args.output, args.corpus, scores)


if __name__ == "__main__":
    main()
