"""Unpack fairseq's source archive without the parts that translation never uses.

Three torch C++ extensions take most of the build and tie the wheel to one torch version;
torchaudio is declared but imported for speech only. The Cython extensions stay. Two modules that
classify import scikit-learn and SciPy, a third of fairseq's start-up: now when they use them.

Usage: slim_fairseq.py ARCHIVE FOLDER    (prints the folder to build)
"""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

# file: (an import at its top, the statement that uses it)
LATE_IMPORTS = {
    "fairseq/criterions/sentence_prediction.py": [
        ("from sklearn.metrics import f1_score\n", "    f1 = f1_score("),
        (
            "from sklearn.metrics import matthews_corrcoef as _matthews_corrcoef\n",
            "    mcc = _matthews_corrcoef(",
        ),
        ("from scipy.stats import pearsonr, spearmanr\n", "    pearson_corr = pearsonr("),
    ],
    "fairseq/tasks/audio_classification.py": [
        (
            "from sklearn import metrics as sklearn_metrics\n",
            "            fpr, tpr, thresholds = sklearn_metrics.roc_curve(",
        ),
    ],
}


def slim(setup: str) -> str:
    """Return the text of fairseq's ``setup.py`` less its torch extensions and torchaudio.

    Raises:
        ValueError: the text is not the one this was written for.
    """
    setup = _cut(setup, "extensions.extend(", until="cmdclass = {")
    setup = _cut(setup, '            "torchaudio>=0.8.0",\n')
    if "CppExtension" in setup or "CUDAExtension" in setup:
        raise ValueError("setup.py still has torch extensions")
    return setup


def import_late(text: str, line: str, use: str) -> str:
    """Move an import from the top of a module to the statement that uses it.

    Raises:
        ValueError: the text is not the one this was written for.
    """
    text = _cut(text, line)
    if use not in text:
        raise ValueError(f"no {use!r}")
    indent = use[: len(use) - len(use.lstrip())]
    return text.replace(use, indent + line + use)


def _cut(text: str, first: str, until: str | None = None) -> str:
    start = text.find(first)
    end = start + len(first) if until is None else text.find(until, start)
    if start < 0 or end < 0:
        raise ValueError(f"no {(first if start < 0 else until)!r}")
    return text[:start] + text[end:]


def main(archive: str, folder: str) -> None:
    """Unpack ``archive`` into ``folder``, change its source and print where it is."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder)
    [setup] = Path(folder).glob("*/setup.py")
    edit(setup, slim)
    for name, imports in LATE_IMPORTS.items():
        for line, use in imports:
            edit(setup.parent / name, partial(import_late, line=line, use=use))
    print(setup.parent)


def edit(file: Path, change: Callable[[str], str]) -> None:
    """Change a file's text."""
    try:
        file.write_text(change(file.read_text(encoding="utf-8")), encoding="utf-8")
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None


if __name__ == "__main__":
    main(*sys.argv[1:])
