"""Print the trials of the plan's tuned systems: validation NLL in nats per word, the best in bold.

    python -m study.trials study/results/trials/multi30k_tiny_en_de_3625*.json

Each file has the trials of one corpus, whose subwords differ from those of the others, so that only
NLL per word can be compared. A row is one setting, a column one system.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.text_tables import markdown_table
from syncattn_lab.evaluation.measures import NLL_PER_WORD
from syncattn_lab.evaluation.results_file import load_results


def make_table(paths: Iterable[Path]) -> str:
    """Return the table of tuning trials: validation NLL by setting (row) and system (column).

    Raises:
        DataError: a file is no results file, or has two seeds of a trial.
    """
    found: dict[str, dict[tuple[str, str], float | None]] = {}
    for path in paths:
        results = load_results(path)
        for cell in results["cells"]:
            system, _, changes = cell["system"].partition(":")
            trial = results["corpus"], changes.replace(":", ", ") or "as in its config"
            if trial in found.setdefault(system, {}):
                raise DataError(f"{path}: {cell['system']} has several seeds; a trial has one")
            found[system][trial] = NLL_PER_WORD.of_cell(cell)
    best = {}
    for system, trials in found.items():
        best[system] = min(value for value in trials.values() if value is not None)
    rows = [["corpus", "settings", *found]]
    for trial in dict.fromkeys(trial for trials in found.values() for trial in trials):
        shown = []
        for system, trials in found.items():
            value = trials.get(trial)
            text = "–" if value is None else f"{value:.3f}"
            shown.append(f"**{text}**" if value == best[system] else text)
        rows.append([*trial, *shown])
    return markdown_table(rows)


def main(words: Sequence[str] | None = None) -> None:
    """Print the table of tuning trials in the given files.

    ``words`` are the command's arguments; None: those of the process.
    """
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("results", nargs="+", type=Path)
    print(make_table(made.parse_args(words).results))


if __name__ == "__main__":
    main()
