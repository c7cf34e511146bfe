"""Collect the results of a cell from the files and logs of its commands."""

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from math import inf, isfinite
from pathlib import Path
from typing import Any

from syncattn_fairseq.base.files import open_file, read_json

from ..printed.training_log import read_fairseq_log

#: File with the model's analyses of the references: parses, links and distances.
ANALYSES = "forced.jsonl"
#: Subfolder of a cell's folder with the model that translates in the opposite direction.
REVERSED = "reversed"
_DONE = re.compile(r"done training in (\d+(?:\.\d*)?) seconds")


def read_scores(folder: Path) -> dict[str, Any]:
    """Return a training's scores and the signatures of their measures, from files in its folder."""
    [system] = read_json(folder / "scores.json")["systems"].values()
    scores, signatures = dict(system["scores"]), system["signatures"]
    for part, number in (system.get("bleu_by_part") or {}).items():
        scores[f"BLEU {part}"] = number
    other = folder / REVERSED / "scores.json"
    if other.exists():
        [reversed_system] = read_json(other)["systems"].values()
        scores["BLEU reversed"] = reversed_system["scores"]["BLEU"]
    for side in ("source", "target"):  # parses that know no syntax
        for name, score in (system.get(f"{side}_baselines") or {}).items():
            scores[f"UAS {side} {name}"] = 100 * score["uas"]
    for layer, score in system["layer_alignment"].items():
        scores[f"AER layer {layer}"] = 100 * score["aer"]
    for layer, score in system["target_brackets"].items():
        scores[f"trees layer {layer}"] = 100 * score["sentence"]["f1"]
    if (folder / "links.json").exists():
        for layer, ways in read_json(folder / "links.json")["systems"].items():
            name = layer.removeprefix("cell").strip()
            for way, score in ways.items() if name else ():
                scores[f"AER {name} {way}"] = 100 * score["aer"]
    return {"scores": {k: round(v, 4) for k, v in scores.items()}, "signatures": signatures}


def read_training(log: Path) -> dict[str, Any]:
    """Return updates, time, speed and the lowest validation loss from the log of a training."""
    epochs: dict[float, Mapping[str, float]] = {}
    best: Mapping[str, float] = {}
    walls: list[float] = []
    validations: list[Mapping[str, float]] = []

    def watch(lines: Iterable[str]) -> Iterator[str]:
        """Yield the lines; where one says how long training took, correct the time in ``walls``."""
        for line in lines:
            if walls and (done := _DONE.search(line)):
                walls[-1] = max(walls[-1], float(done[1]))
            yield line

    with io.TextIOWrapper(open_file(log), "utf-8", "replace") as file:
        for logged in read_fairseq_log(watch(file)):
            numbers = logged.numbers
            if logged.kind == "valid":
                validations.append(numbers)
                best = min(numbers, best, key=lambda valid: valid.get("loss", inf))
                continue
            if "wall" in numbers:
                if walls and walls[-1] <= numbers["wall"]:
                    walls.pop()
                walls.append(numbers["wall"])  # of each process: a resumed training starts at 0
            if logged.kind == "train" and {"epoch", "num_updates", "wall"} <= numbers.keys():
                epochs[numbers["epoch"]] = numbers
    last = list(epochs.values())[-1] if epochs else {}
    curve = {
        str(int(valid["num_updates"])): valid["nll_loss"]
        for valid in validations
        if {"num_updates", "nll_loss"} <= valid.keys()
    }
    training: dict[str, Any] = {
        **({"nll_by_update": curve} if curve else {}),
        "valid": {k: best[k] for k in ("loss", "nll_loss", "bleu") if isfinite(best.get(k, inf))},
    }
    if last:
        seconds = sum(numbers.get("train_wall", 0) for numbers in epochs.values())
        training |= {"updates": int(last["num_updates"]), "seconds": sum(walls)}
        if seconds:
            training["updates_per_second"] = round(last["num_updates"] / seconds, 3)
    return training


def read_test_nll(log: Path) -> dict[str, Any]:
    """Return the NLL of the test text from a log, in bits per subword; empty without one."""
    with io.TextIOWrapper(open_file(log), "utf-8", "replace") as file:
        found = [logged.numbers for logged in read_fairseq_log(file) if logged.kind == "test"]
    numbers = found[-1] if found else {}
    return {"test": {k: v for k, v in numbers.items() if k == "nll_loss"}} if numbers else {}
