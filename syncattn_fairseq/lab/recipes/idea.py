"""An idea beside the controls that fit it: ``syncattn-recipe CORPUS --idea PLUGIN:SETTINGS``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ...base.errors import DataError
from ...base.files import read_file, replacing
from .corpus_facts import Corpus
from .plan import Contrast, Plan
from .row import Row, is_row, read_row
from .row_settings import RowSettings

#: What each control asks.
QUESTIONS = {
    "plain": "Does it help a Transformer?",
    "rotary": "Does it help more than rotary positions?",
    "window": "Does it help more than a window of two subwords in the same layers?",
    "decay": "Does it help more than a decay with the distance in the same layers?",
    "random": "Is it the parse, or would random trees do?",
    "mirrored": "Is it the parse, or would its mirror image, as local, do?",
    "another": "Is it the parse, or would that of another sentence do?",
}
_ROTARY = "model.positions=rotary"
#: The controls of an idea that reads the source's parse: other ``--source-trees``.
TREES = ("random", "mirrored", "another")
PLAN = """\
# What {name} is compared with on {corpus}. Written by syncattn-recipe before the first training.
# Rows:
{rows}
family:
  seeds: {seeds}
  contrasts:
    {name} against its controls:
{contrasts}
"""


@dataclass(frozen=True)
class Idea:
    """A system with an idea, and its controls.

    Attributes:
        corpus: what they translate.
        row: the system.
        controls: the systems that it is compared with, the plain one first, and what each asks.
        package: the folder ``syncattn_fairseq``.
    """

    corpus: Corpus
    row: Row
    controls: Mapping[Row, str]
    package: Path

    @property
    def questions(self) -> dict[str, str]:
        """What each control asks, by its name."""
        return {row.label: question for row, question in self.controls.items()}

    def plan(self, seeds: Sequence[int]) -> Plan:
        """Return what is planned: the idea beside each control, tested.

        Args:
            seeds: one training each of the idea and of every control.
        """
        name = self.row.label
        group = f"{name} against its controls"
        return Plan([Contrast(group, name, row.label, tuple(seeds), True) for row in self.controls])

    def write_plan(self, seeds: Sequence[int], path: Path) -> None:
        """Write down what is planned, before the first training.

        Raises:
            DataError: something else was planned there.
        """
        name = self.row.label
        text = PLAN.format(
            name=name,
            corpus=self.corpus.name,
            rows="\n".join(f"#   {row.text}" for row in (self.row, *self.controls)),
            seeds=list(seeds),
            contrasts="\n".join(f"      - {name} - {row.label}" for row in self.controls),
        )
        if path.exists() and read_file(path) != text.encode():
            raise DataError(
                f"{path}: something else was planned; go on with its seeds and settings, or give "
                "the idea another name: --idea NAME=FOLDER:..."
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_text(text, "utf-8")

    def load_model_options(self, row: Row) -> dict[str, Any]:
        """Return the section ``model`` of a system's settings."""
        return {**RowSettings(row, self.corpus, self.package, {}).config["model"]}


def read_idea(text: str, corpus: Corpus, package: Path, words: Sequence[str]) -> Idea:
    """Read an idea, and choose its controls.

    Args:
        text: ``FOLDER:SECTION.OPTION=VALUE:...``, the folder of a plugin, with ``NAME=`` before it
            or called like the folder.
        corpus: what it translates.
        package: the folder ``syncattn_fairseq``.
        words: settings of all systems, ``SECTION.OPTION=VALUE``.

    Raises:
        DataError: there is no such folder, or its settings are impossible.
    """
    named, *changes = text.split(":")
    name, _, folder = named.rpartition("=")
    plugin = Path(folder)
    if not (plugin / "__init__.py").is_file():
        raise DataError(
            f"--idea {text}: {folder} has no __init__.py; give the folder of your plugin and its "
            "settings: --idea FOLDER:model.mine_layers=1,2"
        )
    if rows := [word for word in words if is_row(word)]:
        raise DataError(f"{rows[0]}: --idea chooses the systems; give settings of all of them only")
    name = name or plugin.resolve().name
    own = [f"common.user_dir={plugin}", *changes]

    def make_row(label: str, *settings: str) -> Row:
        row = ":".join([f"{label}=transformer", *settings, *words])
        return read_row(row, corpus.known_systems())

    row = make_row(name, *own)
    settings = RowSettings(row, corpus, package, {})
    reads_trees = settings.model.fields.reads("heads")  # imports the plugin
    if words:
        plain, rotary = make_row(f"{name}_plain"), make_row(f"{name}_rotary", _ROTARY)
    else:  # other ideas and tables have them, too
        plain, rotary = read_row("transformer"), read_row("rotary")
    controls = {plain: "plain", rotary: "rotary"}
    encoder, decoder = _find_layers(settings)
    if (encoder, decoder) != ("none", "none"):
        for label, kind in (("window", "local"), ("decay", "constant_gate")):
            layers = f"model.{kind}_layers={encoder}", f"model.{kind}_decoder_layers={decoder}"
            controls[make_row(f"{name}_{label}", *layers)] = label
    if reads_trees:
        for trees in TREES:
            controls[make_row(f"{name}_{trees}", *own, f"model.source_trees={trees}")] = trees
    return Idea(corpus, row, {each: QUESTIONS[key] for each, key in controls.items()}, package)


def _find_layers(settings: RowSettings) -> tuple[str, str]:
    """Return the layers with the idea's heads, in the encoder and in the decoder; or ``none``."""
    encoder = decoder = "none"
    for kind in _list_kinds(settings):
        chosen = {**vars(kind.Options()), **settings.config["model"]}
        if encoder == decoder == "none":
            encoder = str(chosen.get(kind.encoder_layers) or "none")
            decoder = str(chosen.get(kind.decoder_layers) or "none")
    return encoder, decoder


def _list_kinds(settings: RowSettings) -> Iterator[Any]:
    """Yield the kinds of heads that have an option among the idea's settings."""
    from ...modules.heads import Heads
    from ...modules.part import PARTS

    changed = {name.removeprefix("model.") for name in settings.own_changes}
    for part in PARTS.values():
        if issubclass(part, Heads) and changed & {option.name for option in fields(part.Options)}:
            yield part
