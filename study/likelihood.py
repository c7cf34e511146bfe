"""Measure the NLL of validation and test text under the kept models of a recipe.

    python -m study.likelihood multi30k_tiny_en_de_3625 --work . \
        --output study/results/likelihood/multi30k_tiny_en_de_3625.json
    python -m study.likelihood multi30k_tiny_en_de_3625 --table \
        --output study/results/likelihood/multi30k_tiny_en_de_3625.json

The validation text also chose the checkpoint, the test text did not. Goes through all
``checkpoint_best.pt`` under ``--work``, leaving out those that the file has already. The table has
the complete contrasts of the corpus's plan in both texts: nats per subword, with Welch's 95 %
interval over seeds and p (not corrected).
"""

import argparse
import json
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from tqdm import tqdm

from syncattn_fairseq.base.files import replacing
from syncattn_fairseq.base.text_tables import markdown_table
from syncattn_lab.evaluation.differences import compare
from syncattn_lab.evaluation.intervals import welch
from syncattn_lab.evaluation.measures import NONE, Measure, format_p
from syncattn_lab.recipes.plan import load_plan
from syncattn_lab.recipes.systems import SHARED

SPLITS = ("valid", "test")
#: Of each system and seed.
BEST = "*/*/checkpoint_best.pt"


def measure(checkpoint: Path, data: Path) -> dict[str, float]:
    """Return a checkpoint's NLL on the validation and the test text, in nats per subword."""
    import torch  # the table does without
    from fairseq import checkpoint_utils
    from torch.nn import functional as F

    import syncattn_fairseq.plugin  # noqa: F401  (registers the models)

    [model], _, task = checkpoint_utils.load_model_ensemble_and_task(
        [str(checkpoint)], arg_overrides={"data": str(data)}
    )
    model.eval()
    padding = task.target_dictionary.pad()
    found = {}
    for split in SPLITS:
        task.load_dataset(split)
        batches = task.get_batch_iterator(task.dataset(split), max_tokens=4096)
        nats = tokens = 0.0
        for batch in batches.next_epoch_itr(shuffle=False):
            with torch.no_grad():
                scores = model(**batch["net_input"])
            logs, target = model.get_normalized_probs(scores, log_probs=True), batch["target"]
            nats += float(F.nll_loss(logs.mT, target, ignore_index=padding, reduction="sum"))
            tokens += int(target.ne(padding).sum())
        found[split] = nats / tokens
    return found


def make_table(corpus: str, rows: list[dict[str, Any]]) -> str:
    """Return a table of the plan's complete contrasts: NLL of validation and test text."""
    plan = load_plan(SHARED / corpus)
    cells: dict[str, dict[int, Any]] = {}
    for row in rows:
        cells.setdefault(row["system"], {})[row["seed"]] = row
    columns = [compare(plan.contrasts, cells, Measure(split, split)) for split in SPLITS]
    table = [["contrast", *(f"{split}, p" for split in SPLITS)]]
    for differences in zip(*columns, strict=True):
        if all(one.is_complete for one in differences):
            p_values = [format_p(welch(*one.samples)) for one in differences]
            intervals = [one.interval.format(3) if one.interval else NONE for one in differences]
            shown = [", ".join(both) for both in zip(intervals, p_values, strict=True)]
            table.append([differences[0].contrast.name, *shown])
    return markdown_table(table)


def main(words: Sequence[str] | None = None) -> None:
    """Measure the checkpoints that the file lacks, then print the table; or print it alone.

    ``words`` are the command's arguments; None: those of the process.
    """
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("corpus")
    made.add_argument("--work", type=Path, default=Path(), help="of the recipe")
    made.add_argument("--output", type=Path, required=True, help="JSON file; is continued")
    made.add_argument("--table", action="store_true", help="only print the table")
    args = made.parse_args(words)
    rows = json.loads(args.output.read_text()) if args.output.exists() else []
    known = {(row["system"], row["seed"]) for row in rows}
    if not args.table:
        folder = args.work / "checkpoints" / args.corpus
        found = {(path.parts[-3], int(path.parts[-2])): path for path in folder.glob(BEST)}
        for system, seed in tqdm(sorted(found.keys() - known)):
            nats = measure(found[system, seed], args.work / "data-bin" / args.corpus)
            rows.append({"system": system, "seed": seed, **nats})
            rows.sort(key=itemgetter("system", "seed"))
            args.output.parent.mkdir(parents=True, exist_ok=True)
            with replacing(args.output) as temporary:
                temporary.write_text(json.dumps(rows, indent=1) + "\n")
    print(make_table(args.corpus, rows))


if __name__ == "__main__":
    main()
