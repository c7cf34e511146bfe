"""Files that a code host and pre-commit read name the versions of pyproject.toml."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FILES = [
    ROOT / ".pre-commit-config.yaml",
    ROOT / "CITATION.cff",
    *(ROOT / ".github").rglob("*.yml"),
]


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_yaml_is_names_and_values(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)


def test_the_workflow_tests_every_declared_python() -> None:
    jobs = read(".github/workflows/test.yml")["jobs"]
    tested = jobs["test"]["strategy"]["matrix"]["python"]
    prefix = "Programming Language :: Python :: "
    classifiers = [text.removeprefix(prefix) for text in PROJECT["classifiers"]]
    assert tested == [text for text in classifiers if re.fullmatch(r"3\.\d+", text)]
    assert PROJECT["requires-python"] == f">={tested[0]},<3.{int(tested[-1][2:]) + 1}"
    install = (ROOT / "scripts" / "install.sh").read_text()
    assert f"Python {tested[0]} to {tested[-1]} is needed" in install


def test_the_workflow_runs_scripts_that_exist() -> None:
    jobs = read(".github/workflows/test.yml")["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    scripts = [word for command in commands for word in command.split() if "/" in word]
    assert {"scripts/test.sh", "scripts/build.sh"} <= {*scripts}
    assert all((ROOT / script).is_file() for script in scripts)


def test_pre_commit_runs_the_pinned_ruff() -> None:
    [repository] = read(".pre-commit-config.yaml")["repos"]
    assert (
        f"ruff=={repository['rev'].removeprefix('v')}\n" in (ROOT / "constraints.txt").read_text()
    )


def test_the_citation_has_the_version() -> None:
    source = (ROOT / "syncattn_fairseq" / "__init__.py").read_text()
    assert f'__version__ = "{read("CITATION.cff")["version"]}"' in source


def test_issue_forms_ask_for_what_is_needed() -> None:
    for name in ("bug", "idea"):
        form = read(f".github/ISSUE_TEMPLATE/{name}.yml")
        assert form["name"] and form["description"]
        ids = [field["id"] for field in form["body"]]
        assert len(ids) == len({*ids})
        assert any(field.get("validations", {}).get("required") for field in form["body"])
