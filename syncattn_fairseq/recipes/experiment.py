"""From a binarised corpus to scored systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .corpus import Corpus
from .fast_align import PROGRAM, WAYS
from .launch import Machines, job, training
from .needs import needs_of
from .prepare import RAW, WORDS, folder, gold
from .stages import Stage, line, options, written
from .systems import generation_options, load_system


@dataclass(frozen=True)
class Experiment:
    """Systems of one corpus.

    Attributes:
        corpus: what they translate.
        systems: their names.
        plugin: the folder ``syncattn_fairseq``.
        machines: where they are trained.
        overrides: ``SECTION.OPTION=VALUE``, for all of them.
    """

    corpus: Corpus
    systems: Sequence[str]
    plugin: Path
    machines: Machines
    overrides: Sequence[str] = ()

    def stages(self, scored: Sequence[str]) -> list[Stage]:
        """Return the stages from training to scores.

        Args:
            scored: systems that were decoded before and are scored as well.
        """
        logs = Path("logs", self.corpus.name)
        found = []
        for system in self.systems:
            found.append(Stage("train", logs / system / "train", self._train(system)))
            found.append(Stage("decode", logs / system / "decode", self._decode(system)))
        both = list(dict.fromkeys([*scored, *self.systems]))
        found.append(Stage("score", logs / "score", self._score(both), once=False))
        return found

    def needs(self) -> set[str]:
        """Return what the systems need of the corpus beside its texts."""
        return set().union(*(needs_of(self._config(system)) for system in self.systems))

    def output(self, system: str) -> Path:
        """Return where the translations, or alignments, of the test set are."""
        return Path(self._config(system)["checkpoint"]["save_dir"], "test.txt")

    def _config(self, system: str, *overrides: str) -> dict[str, Any]:
        return load_system(self.corpus.system(system), [*self.overrides, *overrides])

    def _reversed(self, system: str) -> list[str]:
        """Return what makes it a system of the other direction, for symmetrised alignments."""
        save_dir = self._config(system)["checkpoint"]["save_dir"]
        return [
            f"task.source_lang={self.corpus.target}",
            f"task.target_lang={self.corpus.source}",
            f"checkpoint.save_dir={save_dir}-reversed",
        ]

    def _directions(self, system: str) -> list[list[str]]:
        return [[], self._reversed(system)] if self.corpus.gold_alignments else [[]]

    def _train(self, system: str) -> list[str]:
        commands = []
        for direction in self._directions(system):
            overrides = [*self.overrides, *direction]
            save_dir = self._config(system, *direction)["checkpoint"]["save_dir"]
            path = self.corpus.system(system)
            commands.append(line("mkdir", "-p", save_dir))
            commands.append(training(path, self.plugin, self.machines, overrides))
        return commands

    def _decode(self, system: str) -> list[str]:
        commands = []
        for direction in self._directions(system):
            config = self._config(system, *direction)
            task, save_dir = config["task"], Path(config["checkpoint"]["save_dir"])
            beam = ["--remove-bpe", self.corpus.subwords.scheme, *generation_options(config)]
            ways = {"test.txt": beam}
            if self.corpus.gold_alignments:
                ways["forced.txt"] = ["--score-reference", "--print-layer-alignments"]
            checkpoint = self.corpus.checkpoint
            if isinstance(checkpoint, int):
                last = ("--last", checkpoint, "--dir", save_dir)
                checkpoint = "average"
                average = ("--output", save_dir / f"checkpoint_{checkpoint}.pt")
                commands.append(line("syncattn-average", *last, *average))
            for name, how in ways.items():
                command = line(
                    *("fairseq-generate", task["data"], "--user-dir", self.plugin),
                    *("--task", task["_name"]),
                    *("-s", task["source_lang"], "-t", task["target_lang"]),
                    *("--path", save_dir / f"checkpoint_{checkpoint}.pt"),
                    *("--batch-size", "100", *(["--cpu"] if self.machines.cpu else []), *how),
                )
                command = written(command, save_dir / name)
                if self.machines.slurm is not None:
                    one = replace(self.machines, processes=1, nodes=1)
                    command = job(one, save_dir, command)
                commands.append(command)
        return commands

    def _score(self, systems: Sequence[str]) -> list[str]:
        corpus = self.corpus
        logs = Path("logs", corpus.name)
        made = {"": [self.output(name) for name in systems]}
        commands = []
        if corpus.gold_alignments:
            reverse = [self._config(name, *self._reversed(name)) for name in systems]
            made["-reversed"] = [Path(c["checkpoint"]["save_dir"], "test.txt") for c in reverse]
            commands.append(self._aligned(systems, *made.values()))
        how = dict(corpus.score)
        references = folder(corpus, WORDS if how.pop("references", RAW) == WORDS else RAW)
        baseline = corpus.baseline(self.systems[0])
        more = baseline in systems and len(systems) > 1
        for (direction, paths), language in zip(made.items(), corpus.languages[::-1], strict=False):
            outputs = [w for pair in zip(systems, paths, strict=True) for w in ("--system", *pair)]
            commands.append(
                line(
                    *("syncattn-score", "--references", references / f"test.{language}"),
                    *options(how),
                    *outputs,
                    *(("--baseline", baseline) if more else ()),
                    *("--json", logs / f"scores{direction}.json"),
                )
            )
        return commands

    def _aligned(
        self, systems: Sequence[str], forward: Sequence[Path], backward: Sequence[Path]
    ) -> str:
        """Score the alignments of both directions, with those of fast_align if they are there."""
        corpus = self.corpus
        words = folder(corpus, WORDS)
        outputs: list[object] = []
        for name, *ways in zip(systems, forward, backward, strict=True):
            for way, path in zip(("--forward", "--backward"), ways, strict=True):
                outputs += [way, name, path.with_name("forced.txt")]
        links = ("--gold", gold(corpus), "--one-based", "--json", f"logs/{corpus.name}/align.json")
        score = line("syncattn-align", *links, *outputs)
        theirs = [w for way in WAYS for w in (f"--{way}", PROGRAM, words / f"{PROGRAM}.{way}")]
        made = line("test", "-e", words / f"{PROGRAM}.backward")
        fast_align = line(
            *("python", "-m", "syncattn_fairseq.recipes.fast_align", "--words", words),
            *("--languages", *corpus.languages),
        )
        return f"{{ {made} || {fast_align}; }} && {score} $({made} && echo {line(*theirs)})"
