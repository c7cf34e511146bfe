"""Test an idea against matching controls: ``syncattn-recipe CORPUS --idea PLUGIN:SETTINGS``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import mean
from typing import Any

import yaml

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import read_file, replacing

from ..evaluation.contrast_tables import WITHIN
from ..evaluation.differences import compare
from ..evaluation.measures import BLEU, NLL, NONE, list_compared
from ..evaluation.results_file import load_results
from .corpus_facts import Corpus
from .display import duration
from .plan import Plan, make_plan
from .planned_cells import index_cells
from .request import Row, is_row, read_row
from .row_settings import RowSettings

#: The question that each control answers, by the key of the control.
QUESTIONS = {
    "plain": "Does it help a Transformer?",
    "rotary": "Does it help more than rotary positions?",
    "window": "Does it help more than a window of two subwords on either side?",
    "decay": "Does it help more than a decay with the distance in the same layers?",
    "random": "Is it the parse, or would random trees do?",
    "mirrored": "Is it the parse, or would its mirror image, as local, do?",
    "another": "Is it the parse, or would that of another sentence do?",
}
_ROTARY = "model.positions=rotary"
#: The beginning of the setting that switches our fast training on or off.
_FAST = "task.fast="
#: The controls of an idea that reads the source's parse: other ``--source-trees``.
TREES = ("random", "mirrored", "another")

#: BLEU below which a plain system has learnt nothing that an idea could help with.
_LEARNT = 5.0
#: Sections in which an idea may have settings that its controls lack.
_OF_IDEAS = ("model", "criterion", "task")


@dataclass(frozen=True)
class Idea:
    """A user's idea (a plugin and settings) as a system, with the controls for comparison.

    Each control is a system with the question that it answers; the plain control comes first. The
    folder holds the plan, the results and the page.
    """

    corpus: Corpus
    row: Row
    controls: Mapping[Row, str]
    seeds: Sequence[int]
    folder: Path

    @property
    def rows(self) -> list[Row]:
        """The table row of the idea, followed by the table rows of its controls."""
        return [self.row, *self.controls]

    @property
    def plan(self) -> Plan:
        """The plan to test the idea against each of its controls."""
        return make_plan(self._facts, self._plan_file)

    @property
    def _plan_file(self) -> Path:
        return self.folder / "_plan.yaml"

    @property
    def _facts(self) -> dict[str, Any]:
        name = self.row.label
        contrasts = [f"{name} - {row.label}" for row in self.controls]
        group = {f"{name} against its controls": contrasts}
        return {"by_blocks": True, "family": {"seeds": [*self.seeds], "contrasts": group}}

    def write_plan(self) -> None:
        """Write the file of the plan, before the first training.

        Raises:
            DataError: the folder has another plan.
        """
        path = self._plan_file
        text = f"# What {self.row.label} is compared with on {self.corpus.name}. Rows:\n"
        text += "".join(f"#   {row.text}\n" for row in self.rows)
        text += yaml.safe_dump(self._facts, sort_keys=False, width=1000)
        if path.exists() and read_file(path) != text.encode():
            raise DataError(
                f"{path}: the plan of this idea has other seeds or settings; use those of the "
                "plan, or give the idea another name: --idea NAME=FOLDER:..."
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_text(text, "utf-8")

    def write_page(self, results: Path) -> Path:
        """Write the page about an idea from a results file, and return the path of the page.

        Raises:
            DataError: some seeds of the idea or of its controls have no results.
        """
        from ..report.idea_page import render_idea
        from .figures import draw_contrasts

        found = load_results(results)
        contrasts, cells = self.plan.contrasts, index_cells(self.plan, found)
        questions = {row.label: question for row, question in self.controls.items()}
        differences = compare(contrasts, cells, NLL)
        missing = [one.contrast.baseline for one in differences if not one.is_complete]
        if missing:
            raise DataError(
                f"{results}: the page cannot be written yet: some seeds of {self.row.label} or "
                f"{', '.join(missing)} have no results; run the recipe again without --table"
            )
        notes = [
            "NLL: of the validation text, in nats per subword, means over seeds; lower is better",
            f"intervals and tests: {WITHIN}; p is corrected for all controls (Holm), intervals "
            "are not",
            "kernels: PyTorch's operations, forward and backward, with a small batch; on a GPU, "
            "their number decides the time",
            *self._list_facts(found["cells"]),
        ]
        tables = {"Scores and costs": self._list_systems(found["cells"])}
        figure = draw_contrasts(contrasts, cells)
        page = self.folder / f"{self.corpus.name}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        with replacing(page) as temporary:
            html = render_idea(differences, questions, figure, tables, notes)
            temporary.write_text(html, "utf-8")
        return page

    def _list_facts(self, cells: Sequence[Mapping[str, Any]]) -> list[str]:
        """List notes on the trainings: corpus, updates, seeds, hardware, and whether any learnt."""
        steps = RowSettings(self.row, self.corpus).config["optimization"]["max_update"]
        facts = [
            f"{self.corpus.name}, {steps} updates, seeds {', '.join(map(str, self.seeds))}; rows, "
            f"with their settings, are in {self._plan_file}",
            *sorted({f"commit {one['commit']}, {one['hardware']}" for one in cells}),
        ]
        plain = next(iter(self.controls)).label
        reached = [BLEU.of_cell(cell) for cell in cells if cell["system"] == plain]
        if mean(score or 0.0 for score in reached) < _LEARNT:
            facts.insert(0, f"{plain} has hardly learnt to translate: train longer for a verdict")
        return facts

    def _list_systems(self, cells: Sequence[Mapping[str, Any]]) -> list[list[str]]:
        """Return the rows of a table with the scores and costs of each system, below a heading."""
        from syncattn_fairseq.testing import build_model

        from .operations import count_operations

        measures = list_compared()
        table = [["system", *(m.name for m in measures), "a training", "kernels"]]
        for row in self.rows:
            own = [cell for cell in cells if cell["system"] == row.label]
            options = {**RowSettings(row, self.corpus).config["model"]}
            model = build_model(options.pop("_name"), **options)
            scores = [(m, [*m.by_seed(own).values()]) for m in measures]
            means = [f"{mean(numbers):.{m.digits}f}" if numbers else NONE for m, numbers in scores]
            time = duration(mean(cell["seconds"] for cell in own))
            table.append([row.label, *means, time, f"{count_operations(model):,}"])
        return table


def read_idea(
    text: str, corpus: Corpus, words: Sequence[str], seeds: Sequence[int], ideas: Path
) -> Idea:
    """Read the value of ``--idea``, and choose the controls of the idea.

    Args:
        text: ``FOLDER:SECTION.OPTION=VALUE:...``, the folder of a plugin, with ``NAME=`` before it
            or called like the folder.
        corpus: the corpus to train on.
        words: settings of all systems, ``SECTION.OPTION=VALUE``.
        seeds: the seeds; every system is trained once with each.
        ideas: the folder of all ideas.

    Raises:
        DataError: there is no such folder, or its settings are impossible.
    """
    name, plugin, changes = _split_idea(text)
    rows = [word for word in words if is_row(word)]
    if rows:
        raise DataError(
            f"{rows[0]}: --idea chooses the systems; give only settings that hold for all systems"
        )
    of_all = [*words]
    if not any(word.startswith(_FAST) for word in words):
        of_all.insert(0, f"{_FAST}true")

    def make_row(label: str, *settings: str) -> Row:
        row = ":".join([f"{label}=transformer", *settings, *of_all])
        return read_row(row, corpus.known_systems())

    own = [f"common.user_dir={plugin}", *changes]
    row = make_row(name, *own)
    controls = _choose_controls(RowSettings(row, corpus), own)
    # Without settings, other ideas have the first two, too.
    shared = {} if words else {"plain": "plain", "rotary": "plain_rotary"}
    questions = {
        make_row(shared.get(key, f"{name}_{key}"), *settings): QUESTIONS[key]
        for key, settings in controls.items()
    }
    return Idea(corpus, row, questions, seeds, ideas / name)


def _split_idea(text: str) -> tuple[str, Path, list[str]]:
    """Split the value of ``--idea`` into the name, the plugin's folder and the settings.

    Raises:
        DataError: there is no such folder, or there are no settings, or those of all systems.
    """
    named, *changes = text.split(":")
    name, _, folder = named.rpartition("=")
    plugin = Path(folder)
    if not (plugin / "__init__.py").is_file():
        raise DataError(
            f"--idea {text}: {folder} has no __init__.py; give the folder of your plugin and its "
            "settings: --idea FOLDER:model.mine_layers=1,2"
        )
    if not changes:
        raise DataError(
            f"--idea {text}: no setting switches the idea on; add settings, such as "
            ":model.mine_layers=1,2"
        )
    for word in changes:
        if word.partition(".")[0] not in _OF_IDEAS or word.startswith(_FAST):
            raise DataError(
                f"--idea {text}: {word} would hold for the idea but not for its controls; give "
                "this setting before --idea, for all systems"
            )
    return name or plugin.resolve().name, plugin, changes


def _choose_controls(settings: RowSettings, own: Sequence[str]) -> dict[str, list[str]]:
    """Return the settings of each control, by its key in `QUESTIONS`.

    Args:
        settings: all settings of the idea's system.
        own: the settings that switch the idea on.
    """
    reads_trees = settings.model.fields.reads("heads")  # imports the plugin
    controls = {"plain": [], "rotary": [_ROTARY]}
    encoder, decoder = _find_layers(settings)
    if (encoder, decoder) != ("none", "none"):
        for key, kind in (("window", "local"), ("decay", "constant_gate")):
            layers = [f"model.{kind}_layers={encoder}", f"model.{kind}_decoder_layers={decoder}"]
            controls[key] = layers
    if reads_trees:
        controls |= {trees: [*own, f"model.source_trees={trees}"] for trees in TREES}
    return controls


def _find_layers(settings: RowSettings) -> tuple[str, str]:
    """Return the encoder and the decoder layers with the idea's heads, ``none`` where none are."""
    from syncattn_fairseq.modules.heads import Heads
    from syncattn_fairseq.modules.part import PARTS

    changed = {name.removeprefix("model.") for name in settings.own_changes}
    for kind in PARTS.values():
        if issubclass(kind, Heads) and changed & {option.name for option in fields(kind.Options)}:
            chosen = {**vars(kind.Options()), **settings.config["model"]}
            encoder, decoder = chosen.get(kind.encoder_layers), chosen.get(kind.decoder_layers)
            if encoder or decoder:
                return str(encoder or "none"), str(decoder or "none")
    return "none", "none"
