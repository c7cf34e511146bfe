"""Ask why trainings of one system that have the same loss differ in BLEU: do they repeat phrases?

    python -m study.loops study/results/multi30k_tiny_en_de_3625.json WORK transformer synch_mse

WORK is the folder that the recipe worked in. For each system: means over seeds of BLEU, of the
lowest validation loss, and of the percentage of trigrams that their sentence has had before. Below,
how BLEU correlates with them: over systems (their means), and over the seeds of one system (each
run's difference from its system's mean).
"""

import argparse
from pathlib import Path

import numpy as np

from syncattn_fairseq.base.text_tables import format_table
from syncattn_lab.evaluation.results_file import load_results

COLUMNS = ("BLEU", "valid loss", "valid nll_loss", "repeated trigrams, %")


def percent_repeated(sentences: list[str], size: int = 3) -> float:
    """Return the percentage of n-grams that occurred before in the same sentence."""
    total = repeated = 0
    for words in map(str.split, sentences):
        ngrams = [tuple(words[start : start + size]) for start in range(len(words) - size + 1)]
        total += len(ngrams)
        repeated += len(ngrams) - len({*ngrams})
    return 100 * repeated / max(1, total)


def main() -> None:
    """Print a table of BLEU, losses and repeated trigrams by system, and their correlations."""
    made = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    made.add_argument("results", type=Path)
    made.add_argument("work", type=Path)
    made.add_argument("systems", nargs="+")
    args = made.parse_args()
    results = load_results(args.results)
    runs: dict[str, list[list[float]]] = {system: [] for system in args.systems}
    for cell in results["cells"]:
        if cell["system"] in runs:
            folder = args.work / "checkpoints" / results["corpus"] / cell["system"]
            path = folder / str(cell["seed"]) / "translations.txt"
            if not path.exists():
                raise SystemExit(f"{path}: no such file; WORK is syncattn-recipe's --work")
            text = path.read_text(encoding="utf-8")
            loss = cell["valid"]["loss"], cell["valid"]["nll_loss"]
            repeated = percent_repeated(text.splitlines())
            runs[cell["system"]].append([cell["scores"]["BLEU"], *loss, repeated])
    means = {system: np.mean(rows, axis=0) for system, rows in runs.items()}
    within = np.concatenate([np.array(rows) - means[system] for system, rows in runs.items()])
    table = [["system", *COLUMNS]]
    for system, mean in means.items():
        table.append([system, *(f"{number:.2f}" for number in mean)])
    for name, values in (("systems", np.array(list(means.values()))), ("seeds", within)):
        correlations = np.corrcoef(values, rowvar=False)[0]
        table.append([f"BLEU over {name}", *(f"{number:+.2f}" for number in correlations)])
    print(format_table(table))


if __name__ == "__main__":
    main()
