"""Files that a code host and pre-commit read name the versions of pyproject.toml."""

import json
import re
import tomllib
from typing import Any

import pytest
import yaml

from syncattn_fairseq.cli import serve
from tests.importing import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FILES = [
    ROOT / ".pre-commit-config.yaml",
    ROOT / "CITATION.cff",
    *(ROOT / ".github").rglob("*.yml"),
]


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_yaml_is_names_and_values(path):
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)


WORKFLOWS = ("test", "wheels", "release")


def jobs(workflow: str) -> dict[str, Any]:
    found: dict[str, Any] = read(f".github/workflows/{workflow}.yml")["jobs"]
    return found


def steps() -> list[dict[str, Any]]:
    return [s for w in WORKFLOWS for job in jobs(w).values() for s in job.get("steps", ())]


def test_the_workflows_use_every_declared_python():
    tested = jobs("test")["test"]["strategy"]["matrix"]["python"]
    assert jobs("wheels")["install"]["strategy"]["matrix"]["python"] == tested
    prefix = "Programming Language :: Python :: "
    classifiers = [text.removeprefix(prefix) for text in PROJECT["classifiers"]]
    assert tested == [text for text in classifiers if re.fullmatch(r"3\.\d+", text)]
    assert PROJECT["requires-python"] == f">={tested[0]},<3.{int(tested[-1][2:]) + 1}"
    install = (ROOT / "scripts" / "install.sh").read_text()
    assert f"Python {tested[0]} to {tested[-1]} is needed" in install


def test_the_workflows_run_scripts_that_exist():
    commands = [step["run"] for step in steps() if "run" in step]
    scripts = [word for command in commands for word in command.split() if "scripts/" in word]
    assert {"scripts/test.sh", "scripts/docs.sh", "scripts/release.sh"} <= {*scripts}
    assert all((ROOT / script).is_file() for script in scripts)
    for workflow in WORKFLOWS:
        called = [job["uses"] for job in jobs(workflow).values() if "uses" in job]
        assert all((ROOT / path).is_file() for path in called)


def test_actions_run_where_github_runs_them():
    """Node 20 was removed in September 2026; these are the first majors that need Node 24."""
    first = {"checkout": 5, "setup-python": 6, "cache": 5, "upload-artifact": 6}
    first["download-artifact"] = 7
    for step in steps():
        if (action := step.get("uses", "")).startswith("actions/"):
            name, _, major = action.removeprefix("actions/").partition("@v")
            assert int(major) >= first[name], action


def test_images_have_no_compiler_and_no_root():
    stages = re.split(r"^FROM ", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)[1:]
    run = [stage.splitlines() for stage in stages]
    run = [lines for lines in run if not lines[0].endswith((" AS wheels", " AS build"))]
    assert len(run) == 2
    for lines in run:
        assert not [line for line in lines if re.search(r"apt|g\+\+|gcc", line)]
        assert [line for line in lines if line.startswith("USER ")] == ["USER syncattn"]


def test_the_image_of_the_service_calls_the_command_with_its_options():
    text = (ROOT / "Dockerfile").read_text()
    [entry, last] = re.findall(r"^(?:ENTRYPOINT|CMD) (.*)$", text, re.MULTILINE)
    assert last == '["bash"]'
    command, *arguments = json.loads(entry)
    assert command == "syncattn-serve"
    options = serve.make_parser().parse_args(arguments)
    assert (options.path, options.host) == ("/model", "0.0.0.0")
    assert f"EXPOSE {options.port}\n" in text


def test_pre_commit_runs_the_pinned_ruff():
    [repository] = read(".pre-commit-config.yaml")["repos"]
    assert (
        f"ruff=={repository['rev'].removeprefix('v')}\n" in (ROOT / "constraints.txt").read_text()
    )


def test_the_citation_has_the_version_and_all_papers():
    source = (ROOT / "syncattn_fairseq" / "__init__.py").read_text()
    citation = read("CITATION.cff")
    assert f'__version__ = "{citation["version"]}"' in source
    date = citation["date-released"].isoformat()
    assert f"\n## {citation['version']}, {date}\n" in (ROOT / "CHANGELOG.md").read_text()
    page = (ROOT / "docs" / "systems.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| ") and "Positions" not in line]
    links = {link.rstrip("/") for link in re.findall(r"\]\((https://[^)]*)\)", "\n".join(rows))}
    cited = {reference.get("url", "").rstrip("/") for reference in citation["references"]}
    assert len(links) == 12 and links <= cited
    assert all(reference["authors"] for reference in citation["references"])


def test_issue_forms_ask_for_what_is_needed():
    for name in ("bug", "idea"):
        form = read(f".github/ISSUE_TEMPLATE/{name}.yml")
        assert form["name"] and form["description"]
        ids = [field["id"] for field in form["body"]]
        assert len(ids) == len({*ids})
        assert any(field.get("validations", {}).get("required") for field in form["body"])
