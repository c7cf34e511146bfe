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
import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tqdm import tqdm

from syncattn_fairseq.base.files import read_json, replacing
from syncattn_lab.cli.score import main as score

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
    untrained: dict[str, Any] = {"overrides": {}, "valid": {}, "signatures": {}}
    untrained |= {"commit": "", "hardware": ""}
    cells = []
    for path in tqdm(sorted(folder.glob("*/checkpoint_average.pt"))):
        with TemporaryDirectory() as temporary:
            printed = Path(temporary) / "heads.json"
            with contextlib.redirect_stdout(io.StringIO()):  # the table
                status = score(["heads", str(data), str(path), f"--json={printed}"])
            if status:
                raise SystemExit(status)
            views = read_json(printed)["checkpoints"][str(path)]["views"]
        cell = {"system": f"best_head_of_{args.system}", "seed": int(path.parent.name)}
        cells.append({**cell, **untrained, "scores": find_best(views)})
    args.output.parent.mkdir(parents=True, exist_ok=True)
    with replacing(args.output) as temporary_path:
        text = json.dumps({"corpus": args.corpus, "cells": cells}, indent=1)
        temporary_path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
