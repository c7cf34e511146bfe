"""An environment with our package and a few others, as pip would install them, and no more."""

import os
import tomllib
import venv
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.importing import ROOT


def make_bare_environment(folder: Path, names: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Make an environment that has our package, some distributions and what all of these need.

    Returns:
        Its Python, and the environment variables of a program that runs there.
    """
    venv.create(folder, with_pip=False)
    [packages] = folder.glob("lib/*/site-packages")
    (packages / "syncattn_fairseq").symlink_to(ROOT / "syncattn_fairseq")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = [*names, *(Requirement(each).name for each in project["dependencies"])]
    for name in found:  # and what these need
        needs = [*map(Requirement, distribution(name).requires or ())]
        found += {
            need.name
            for need in needs
            if need.marker is None or need.marker.evaluate({"extra": ""})
        } - {*found}
        for part in {file.parts[0] for file in distribution(name).files or ()} - {".."}:
            link = packages / part
            if not link.exists():
                link.symlink_to(distribution(name).locate_file(part))
    assert "torch" not in found
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return str(folder / "bin" / "python"), variables
