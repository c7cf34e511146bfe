import argparse
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path
from typing import Any, Optional

import numpy as np
import pytest
import torch
from fairseq import utils
from fairseq.dataclass.utils import interpret_dc_type
from fairseq.scoring.bleu import BleuConfig, Scorer
from fairseq_cli import hydra_train, score
from hydra._internal.utils import get_args_parser
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import syncattn_fairseq
from syncattn_fairseq import __main__
from tests.importing import ROOT, import_file, in_a_process

PACKAGE, LAB_PACKAGE = ROOT / "syncattn_fairseq", ROOT / "lab" / "syncattn_lab"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LAB = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text())
#: The commands of both distributions, and their functions.
SCRIPTS = PROJECT["project"]["scripts"] | LAB["project"]["scripts"]


def constraints() -> list[Requirement]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [Requirement(line.split("#")[0]) for line in lines if line.split("#")[0].strip()]


# ---- the wheels

#: The folder that a distribution is built in, and its package.
DISTRIBUTIONS = {"syncattn-fairseq": ("", PACKAGE), "syncattn-lab": ("lab", LAB_PACKAGE)}


@pytest.fixture(scope="module")
def wheel_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels, built in a copy: setuptools leaves a build folder beside what it builds."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in (PACKAGE.name, "lab", "configs"):
        shutil.copytree(ROOT / name, source / name, ignore=ignored, symlinks=True)
    (source / "tests").mkdir()
    (source / "tests" / "__init__.py").touch()
    build = "from setuptools import build_meta; build_meta.build_wheel('dist')"
    built = {}
    for name, (folder, _) in DISTRIBUTIONS.items():
        subprocess.run([sys.executable, "-c", build], cwd=source / folder, check=True)
        [built[name]] = (source / folder / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def wheels(wheel_files: dict[str, Path]) -> dict[str, zipfile.ZipFile]:
    return {name: zipfile.ZipFile(path) for name, path in wheel_files.items()}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_wheel_holds_its_package_and_nothing_else(wheels, name):
    _, package = DISTRIBUTIONS[name]
    files = (path for path in package.rglob("*") if "__pycache__" not in path.parts)
    expected = {str(path.relative_to(package.parent)) for path in files if path.is_file()}
    if package == LAB_PACKAGE:  # through a link
        expected |= {
            f"{package.name}/{path.relative_to(ROOT)}" for path in ROOT.glob("configs/**/*.yaml")
        }
    assert {name for name in wheels[name].namelist() if ".dist-info/" not in name} == expected


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_type_checkers_read_the_hints_of_an_installed_package(wheels, name):
    assert f"{DISTRIBUTIONS[name][1].name}/py.typed" in wheels[name].namelist()


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_documentation_is_that_of_the_version(wheels, name):
    [info] = (file for file in wheels[name].namelist() if file.endswith(".dist-info/METADATA"))
    metadata = message_from_bytes(wheels[name].read(info))
    named = dict(url.split(", ", 1) for url in metadata.get_all("Project-URL"))
    link, _, path = named["Documentation"].rpartition("/blob/")
    assert link == PROJECT["project"]["urls"]["Repository"]
    tag, _, path = path.partition("/")
    assert tag == f"v{metadata['Version']}" and (ROOT / path).is_file()


def test_an_installed_recipe_has_its_configs(wheels, tmp_path):
    for wheel in wheels.values():
        wheel.extractall(tmp_path / "installed")
    module = in_a_process("syncattn_lab.cli.recipe")[1:]
    done = subprocess.run(
        [sys.executable, *module, "wmt14_en_de", "dbsa", "--dry-run"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert f"--config-dir {tmp_path}/installed/syncattn_lab/configs --config-name" in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"installed"}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_wheel_has_the_version_and_commands(wheels, name):
    wheel, (folder, package) = wheels[name], DISTRIBUTIONS[name]
    info = {Path(name).name: name for name in wheel.namelist() if ".dist-info/" in name}
    metadata = message_from_bytes(wheel.read(info["METADATA"]))
    assert metadata["Version"] == syncattn_fairseq.__version__
    assert "LICENSE" in info
    entry_points = wheel.read(info["entry_points.txt"]).decode()
    project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
    for command, target in project["scripts"].items():
        assert f"{command} = {target}\n" in entry_points and target.startswith(package.name)


def test_the_laboratory_needs_the_plugin_of_its_version():
    version = syncattn_fairseq.__version__
    assert syncattn_lab_version() == version
    assert f"syncattn-fairseq[train]=={version}" in LAB["project"]["dependencies"]


def syncattn_lab_version() -> str:
    found = re.search(r'^__version__ = "(.+)"$', (LAB_PACKAGE / "__init__.py").read_text(), re.M)
    assert found is not None
    return found[1]


def test_links_and_pictures_on_the_page_of_the_package_lead_somewhere(wheels):
    wheel = wheels["syncattn-fairseq"]
    [name] = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = message_from_bytes(wheel.read(name))
    assert metadata["Description-Content-Type"] == "text/markdown"
    links = re.findall(r"\]\(([^)]*)\)", metadata.get_payload())
    assert len(links) == len(re.findall(r"\]\(", (ROOT / "README.md").read_text()))
    repository = PROJECT["project"]["urls"]["Repository"]
    ours = [link for link in links if link.startswith(repository)]
    assert len(ours) > 10 and all(link.startswith("https://") for link in links)
    for link in ours:
        kind, tag, path = link.removeprefix(f"{repository}/").partition("#")[0].split("/", 2)
        assert kind == ("raw" if path.endswith(".svg") else "blob")
        assert tag == f"v{metadata['Version']}" and (ROOT / path).exists()
    named = {url.partition(", ")[0] for url in metadata.get_all("Project-URL")}
    assert named >= {"Repository", "Changelog"}


def test_the_sdist_holds_the_repository():
    """But for the laboratory, the study, and what only a code host, a container or pytest reads."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a checkout of git")
    rules = [line.split() for line in (ROOT / "MANIFEST.in").read_text().splitlines()]
    named = {name for rule in rules if rule[0] in ("graft", "include") for name in rule[1:]}
    named |= {PACKAGE.name, "pyproject.toml", "setup.py", "README.md", "LICENSE"}  # by setuptools
    held = {line.split("/")[0] for line in listed.stdout.splitlines()}
    others = {"Dockerfile", "conftest.py", "lab", "configs", "study"}
    assert {name for name in held if not name.startswith(".")} == named | others


# ---- constraints.txt


PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def test_constraints_pin_everything_once():
    pins = {pin.name: pin for pin in constraints()}
    assert len(pins) == len(constraints())
    named = [*PROJECT["build-system"]["requires"]]
    for project in (PROJECT["project"], LAB["project"]):
        named += project["dependencies"]
        for lines in project["optional-dependencies"].values():
            named += lines
    extras = PROJECT["project"]["optional-dependencies"]
    for requirement in map(Requirement, named):
        if requirement.name == PROJECT["project"]["name"]:  # extras that an extra consists of
            assert requirement.extras <= {*extras}
            continue
        pin = pins[requirement.name]
        [specifier] = pin.specifier
        assert pin.marker is None and specifier.operator == "=="
        assert requirement.specifier.contains(specifier.version), requirement


def test_pins_work_on_the_first_release_of_each_python():
    """Debian 12 has 3.11.2: a pinned version that needs 3.11.5 cannot be installed there."""
    checked = 0
    for pin in constraints():
        try:
            installed = importlib.metadata.distribution(pin.name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if pin.specifier.contains(installed.version):
            needed = SpecifierSet(str(installed.metadata.json.get("requires_python", "")))
            for python in PYTHONS:
                assert needed.contains(f"{python}.0"), f"{pin} needs Python {needed}"
            checked += 1
    assert checked > 60


def test_the_matrix_installs_every_floor_once():
    script = (ROOT / "scripts" / "test_matrix.sh").read_text()
    found = re.search(r'^floors="\$.*?\)"$', script, re.MULTILINE | re.DOTALL)
    assert found is not None
    shell = ["bash", "-c", f'{found[0]}\necho "$floors"']
    listed = subprocess.run(shell, cwd=ROOT, capture_output=True, text=True, check=True)
    floors = [Requirement(line) for line in listed.stdout.splitlines()]
    named = {}
    for project in (PROJECT["project"], LAB["project"]):
        for lines in (project["dependencies"], *project["optional-dependencies"].values()):
            named |= {Requirement(line).name: str(Requirement(line).specifier) for line in lines}
    named = {name: floor for name, floor in named.items() if floor.startswith(">=")}
    for name in ("pyicu", "mypy", "ruff", "spacy", "ginza", "ja-ginza"):
        del named[name]
    assert len(floors) == len(named) > 40
    assert {floor.name: str(floor.specifier) for floor in floors} == named


def test_the_page_on_installation_lists_every_extra():
    page = (ROOT / "docs" / "install.md").read_text().partition("## Extras")[2]
    first = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    listed = [name for cell in first for name in re.findall(r"`([a-z0-9-]+)`", cell)]
    extras = {*PROJECT["project"]["optional-dependencies"]} - {"dev", "docs"}
    assert sorted(listed) == sorted(extras)


# ---- fairseq-pure

SLIM = import_file(ROOT / "scripts" / "slim_fairseq.py")
INFO = "fairseq_fixed-0.12.3.1.dist-info"
PURE = "fairseq_pure-0.12.3.1"


def make_wheel(path: Path, lost: str = "") -> Path:
    """Write a wheel that has what is changed, but for one text."""
    texts = {f"{INFO}/METADATA": "Name: fairseq-fixed", f"{INFO}/LICENSE": "MIT"}
    for name, changes in SLIM.EDITS.items():
        text = "\n".join(old.strip("\n") for old, _ in changes if old != lost)
        first = {"METADATA": "Metadata-Version: 2.1", "WHEEL": "Wheel-Version: 1.0"}.get(name, "")
        texts[name if "/" in name else f"{INFO}/{name}"] = f"{first}\n{text}\n"
    for name in (f"{INFO}/RECORD", f"{INFO}/top_level.txt", "fairseq/libnat.cpython-312.so"):
        texts[name] = "old"
    texts["fairseq/examples/big.py"] = texts["fairseq/trainer.py"] = "import torch\r\n"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in texts.items():
            wheel.writestr(name, text)
    return path


def test_fairseq_pure_holds_nothing_that_is_compiled(tmp_path):
    old = make_wheel(tmp_path / "old.whl")
    made = SLIM.slim(old, tmp_path)
    assert made.name == f"{PURE}-py3-none-any.whl"
    with zipfile.ZipFile(made) as wheel:
        names = set(wheel.namelist())
        text = {name: wheel.read(name).decode() for name in names}
    info = f"{PURE}.dist-info"
    assert {"fairseq/libbleu.py", "fairseq/data/data_utils_fast.py", f"{info}/LICENSE"} <= names
    assert not [name for name in names if re.search(r"\.so$|examples|top_level|fixed-", name)]
    assert text["fairseq/trainer.py"] == "import torch\n"
    metadata = message_from_bytes(text[f"{info}/METADATA"].encode())
    assert (metadata["Name"], metadata["Version"]) == ("fairseq-pure", "0.12.3.1")
    assert metadata.get_payload() == SLIM.README.read_text()
    differences = text[f"{info}/CHANGES.diff"]
    assert "-logging.basicConfig(level=logging.DEBUG)\n" in differences
    for name in SLIM.EDITS:
        assert re.search(f"^\\+\\+\\+ fairseq-pure/.*{name}$", differences, re.MULTILINE), name
    assert "Tag: py3-none-any\n" in text[f"{info}/WHEEL"]
    required = " ".join(metadata.get_all("Requires-Dist"))
    for needed in ("cython", "cffi", "scikit-learn", "torchaudio", "=="):
        assert needed not in required
    for line in text[f"{info}/RECORD"].splitlines():
        name, found, size = line.split(",")
        if not name.endswith("RECORD"):
            assert found == f"sha256={SLIM.digest(text[name].encode())}"
            assert int(size) == len(text.pop(name).encode())
    assert len(text) == 1  # each was listed
    first = made.read_bytes()
    assert SLIM.slim(old, tmp_path).read_bytes() == first


def test_its_scorer_gives_sacrebleu_lists(tmp_path, monkeypatch, capsys):
    name, text = "fairseq_cli/score.py", Path(score.__file__).read_text()
    changes = SLIM.EDITS[name]
    if changes[0][0] in text:  # the fairseq that is installed may have been made before
        text = SLIM.edit(text, changes, name)
    (tmp_path / "a").write_text("a b c d\ne f g h\n")
    words = [f"--sys={tmp_path / 'a'}", f"--ref={tmp_path / 'a'}", "--sacrebleu"]
    monkeypatch.setattr(sys, "argv", ["fairseq-score", *words])
    names: dict[str, Any] = {"__name__": "edited"}
    exec(compile(text, name, "exec"), names)
    names["cli_main"]()
    assert "BLEU = 100.00" in capsys.readouterr().out


@pytest.mark.parametrize("way", ["a package", "a module", "nothing"])
def test_the_name_of_an_installed_package_is_enough_for_user_dir(tmp_path, monkeypatch, way):
    site, name = tmp_path / "site", f"plugin_of_{way.replace(' ', '_')}"
    (site / name).mkdir(parents=True)
    if way == "a package":
        (site / name / "__init__.py").touch()
    elif way == "a module":
        (site / name).rmdir()
        (site / f"{name}.py").touch()
    else:
        (site / name).rmdir()
    monkeypatch.syspath_prepend(site)
    monkeypatch.chdir(tmp_path)
    changes, text = SLIM.EDITS["fairseq/utils.py"], Path(utils.__file__).read_text()
    if changes[1][1] not in text:  # the fairseq that is installed may have been made before
        text = SLIM.edit(text, changes, "fairseq/utils.py")
    edited: dict[str, Any] = {"__name__": "fairseq.utils", "__file__": utils.__file__}
    exec(compile(text, "utils", "exec"), edited)
    if way == "a package":
        edited["import_user_module"](argparse.Namespace(user_dir=name))
        assert Path(sys.modules[name].__file__) == site / name / "__init__.py"
    else:
        with pytest.raises(FileNotFoundError):
            edited["import_user_module"](argparse.Namespace(user_dir=name))


def add_to_index(index: Path, name: str, wheel: Path) -> None:
    """Offer a wheel under its name, as PyPI does."""
    folder = index / name
    folder.mkdir(parents=True)
    shutil.copy(wheel, folder)
    (folder / "index.html").write_text(f'<!DOCTYPE html><a href="{wheel.name}">{wheel.name}</a>')


def make_empty_wheel(folder: Path, pin: Requirement) -> Path:
    """Write a wheel of nothing that has the name and the pinned version of a requirement."""
    [specifier] = pin.specifier
    info = f"{pin.name.replace('-', '_')}-{specifier.version}"
    with zipfile.ZipFile(folder / f"{info}-py3-none-any.whl", "w") as wheel:
        metadata = f"Metadata-Version: 2.1\nName: {pin.name}\nVersion: {specifier.version}\n"
        wheel.writestr(f"{info}.dist-info/METADATA", metadata)
        wheel.writestr(f"{info}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}.dist-info/RECORD", "")
    return folder / f"{info}-py3-none-any.whl"


@pytest.mark.parametrize("wanted", ["syncattn-fairseq[train]", "syncattn-lab", "fairseq-pure"])
def test_pip_installs_wheels_alone_from_an_index(wheel_files, tmp_path, wanted):
    ours = wheel_files | {"fairseq-pure": SLIM.slim(make_wheel(tmp_path / "old.whl"), tmp_path)}
    for name, path in ours.items():
        add_to_index(tmp_path / "index", name, path)
    for pin in constraints():
        if pin.name.lower() not in ours:
            add_to_index(tmp_path / "index", pin.name.lower(), make_empty_wheel(tmp_path, pin))
    command = [sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "install"]
    command += ["--quiet", "--dry-run", "--ignore-installed", "--report", "-", "--no-cache-dir"]
    done = subprocess.run(
        [*command, "--index-url", (tmp_path / "index").as_uri(), wanted],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    installed = json.loads(done.stdout)["install"]
    files = {item["metadata"]["name"]: item["download_info"]["url"] for item in installed}
    assert "fairseq-pure" in files and all(url.endswith(".whl") for url in files.values())
    assert ("torch" in files) == (wanted != "fairseq-pure")  # the stand-in names few requirements


@pytest.mark.parametrize("lost", [old for changes in SLIM.EDITS.values() for old, _ in changes])
def test_a_fairseq_that_we_do_not_know_is_refused(tmp_path, lost):
    wheel = make_wheel(tmp_path / "old.whl", lost)
    with pytest.raises(ValueError, match=re.escape(f"does not have {lost!r} once")):
        SLIM.slim(wheel, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"old.whl"}


def load(name: str) -> Any:
    return import_file(ROOT / "scripts" / "pure_fairseq" / f"{name}.py")


@pytest.mark.parametrize("multiple", [1, 2, 8])
@pytest.mark.parametrize(("tokens", "sentences"), [(30, 0), (0, 5), (30, 5), (-1, -1)])
def test_batches_are_as_large_as_they_may_be(tokens, sentences, multiple):
    random = np.random.default_rng(1)
    for count in (0, 1, 7, 60):
        lengths = random.integers(1, 15, size=count)
        indices = random.permutation(count)
        split = load("data_utils_fast").batch_by_size_fn
        length_of = dict(zip(indices, lengths, strict=True)).get
        batches = split(indices, length_of, tokens, sentences, multiple)
        assert np.concatenate([[], *batches]).tolist() == indices.tolist()

        def fits(begin: int, end: int) -> bool:
            size = end - begin
            return not (size * max(lengths[begin:end]) > tokens > 0 or size > sentences > 0)  # noqa: B023

        ends = np.cumsum([len(batch) for batch in batches]).tolist()
        for begin, end in zip([0, *ends], ends, strict=False):
            assert fits(begin, end)
            # The smallest batch that would be larger and may have that size.
            larger = end + 1
            while larger - begin >= multiple and (larger - begin) % multiple:
                larger += 1
            assert larger > count or not fits(begin, larger)


def test_batches_of_fixed_shapes():
    split = load("data_utils_fast").batch_fixed_shapes_fast
    shapes = np.array([[4, 5], [2, 10], [1, 20]])
    lengths = [5, 5, 5, 5, 5, 9, 9, 9, 15]
    assert split(np.arange(9), lengths.__getitem__, shapes) == [[0, 1, 2, 3], [4, 5], [6, 7], [8]]


def test_blocks_of_text():
    blocks = load("token_block_utils_fast")
    sizes = np.array([3, 4, 1, 6, 2])

    def split(mode: str) -> list[list[int]]:
        found: list[list[int]] = blocks._get_slice_indices_fast(sizes, mode, 7, 1).tolist()
        return found

    assert split("none") == [[0, 7], [7, 14], [14, 16]]
    assert split("eos") == [[0, 3], [3, 7], [7, 8], [8, 14], [14, 16]]
    assert split("complete") == [[0, 7], [7, 14], [14, 16]]
    assert split("complete_doc") == [[0, 7], [8, 14], [14, 16]]
    found = blocks._get_block_to_dataset_index_fast(sizes, np.array([[0, 7], [5, 9], [8, 8]]))
    assert found.tolist() == [[0, 0, 1], [1, 2, 3], [3, 0, 3]]
    with pytest.raises(ValueError, match="Invalid break_mode: words"):
        split("words")


def test_bleu_counts_ngrams():
    bleu = load("libbleu")
    counts = Scorer(BleuConfig())
    counts.C = bleu
    counts.reset()
    counts.add(torch.tensor([1, 5, 6, 7, 8, 2]).int(), torch.tensor([5, 6, 7, 9, 5, 2, 1]).int())
    stat = counts.stat
    assert (stat.reflen, stat.predlen) == (4, 5)
    assert (stat.match1, stat.count1, stat.match2, stat.count2) == (3, 5, 2, 4)
    assert (stat.match3, stat.count3, stat.match4, stat.count4) == (1, 3, 0, 2)
    counts.reset(one_init=True)
    assert (stat.reflen, stat.match1, stat.count1, stat.match4, stat.count4) == (0, 0, 0, 1, 1)
    counts.add(torch.tensor([1, 1]).int(), torch.tensor([2, 2]).int())  # of nothing, and an end
    assert (stat.reflen, stat.predlen) == (0, 1)


def test_fairseq_knows_how_python_writes_the_types_of_options():
    """From 3.14 on, Optional[int] is written as int | None here."""
    for kind in (Optional[int], int | None):  # noqa: UP045
        assert interpret_dc_type(kind) is int


def test_hydra_starts_on_python_3_14(monkeypatch):
    """Which looks at each option's help; fairseq-pure lets one be no text."""
    add = argparse.ArgumentParser.add_argument

    def check(self: Any, action: argparse.Action) -> None:
        self._get_formatter()._expand_help(action)

    def add_and_check(self: Any, *names: Any, **options: Any) -> argparse.Action:
        action = add(self, *names, **options)
        self._check_help(action)
        return action

    monkeypatch.setattr(argparse.ArgumentParser, "_check_help", check, raising=False)
    monkeypatch.setattr(argparse.ArgumentParser, "add_argument", add_and_check)
    with pytest.raises(TypeError):
        get_args_parser()
    import_file(Path(str(hydra_train.__file__)))
    assert "Hydra" in str(get_args_parser().description)


@pytest.mark.parametrize("script", ["build", "release"])
def test_builds_use_no_environment_but_their_own(script):
    assert not re.search(
        r"\bvenv\b(?! \"\$tools\")|_common", (ROOT / f"scripts/{script}.sh").read_text()
    )


# ---- python -m syncattn_fairseq


def test_commands_are_listed_in_groups():
    lines = __main__.describe().splitlines()
    listed = [line.split(maxsplit=1) for line in lines if line.startswith("  ")]
    assert {name for name, _ in listed} == {*SCRIPTS}
    assert [line.split(":")[0] for line in lines if not line.startswith(" ")][2::2] == [
        "syncattn-fairseq",
        "syncattn-lab",
    ]
    assert all(len(line) <= 119 for line in lines)


def test_shells_complete_the_options_of_all_commands(capsys):
    pytest.importorskip("shtab")
    __main__.main(["--completion", "bash"])
    script = capsys.readouterr().out
    assert len(re.findall(r"^complete ", script, re.MULTILINE)) == len(SCRIPTS)
    assert "--seeds" in script and "--references" in script


def test_completion_without_shtab_is_refused(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    with pytest.raises(SystemExit):
        __main__.main(["--completion", "zsh"])
    assert "pip install 'syncattn-fairseq[completion]'" in capsys.readouterr().err


# ---- install.sh, with an interpreter that installs nothing

FAKE_PYTHON = f"""\
#!/bin/bash
echo "$*" >> "$CALLS"
case "$*" in
    *version_info*) [ -z "$OLD" ] && exec {sys.executable} "$@"; echo 3.8 ;;
    "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
    *"pip "*" install "*torch*)
        [ "$PIP" != fail ] || {{ echo "ERROR: No space left on device"; exit 1; }}
        [ "$PIP" != hang ] || sleep 60 ;;
    *" download "* | *slim_fairseq.py*) touch "${{@: -1}}/fairseq.whl" ;;
    *"-m pip"* | *fairseq_cli*) ;;
    *) exec {sys.executable} "$@" ;;
esac
"""


class Checkout:
    """A copy of what install.sh reads, and the fake interpreter."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root = base / "checkout"
        (self.root / "scripts").mkdir(parents=True)
        (self.root / "lab").mkdir()
        for name in ("pyproject.toml", "lab/pyproject.toml", "constraints.txt"):
            shutil.copy(ROOT / name, self.root / name)
        for name in ("install.sh", "_fairseq.sh", "slim_fairseq.py"):
            shutil.copy(ROOT / "scripts" / name, self.root / "scripts")
        shutil.copytree(ROOT / "scripts" / "pure_fairseq", self.root / "scripts" / "pure_fairseq")
        self.python = base / "python"
        self.python.write_text(FAKE_PYTHON)
        self.python.chmod(0o755)
        self.calls = base / "calls"

    @property
    def complete(self) -> bool:
        return (self.root / ".venv" / ".complete").exists()

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        named = {"PYTHON": str(self.python), "CALLS": str(self.calls), "TORCH": "torch==0"}
        named["XDG_CACHE_HOME"] = str(self.base / "cache")
        return subprocess.Popen(
            ["bash", self.root / "scripts" / "install.sh", *arguments],
            env={**os.environ, **named, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def install(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def refused(checkout: Checkout, *said: str, **environment: str) -> None:
    """Check that installing fails in one line."""
    code, _, err = checkout.install(**environment)
    assert code != 0 and len(err.splitlines()) == 1 and all(text in err for text in said)


@pytest.mark.parametrize("fault", ["fail", "hang"])
def test_a_failed_or_killed_install_is_not_complete_and_is_rebuilt(checkout, fault):
    if fault == "fail":
        refused(checkout, "torch", "No space left on device", "install.log", PIP=fault)
    else:
        process = checkout.start(PIP=fault)
        while "torch==0" not in (checkout.calls.read_text() if checkout.calls.exists() else ""):
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, 9)
        process.communicate()
    assert not checkout.complete
    code, out, _ = checkout.install()
    assert code == 0 and "rebuilding" in out and checkout.complete


def test_a_venv_is_made_once_and_gets_further_extras(checkout):
    assert checkout.install()[0] == 0 and checkout.complete
    checkout.calls.unlink()
    assert checkout.install(PYTHON="") == (0, "", "")
    assert not checkout.calls.exists()
    code, out, _ = checkout.install("--extras", "parse")
    assert code == 0 and "adding to .venv: parse\n" in out and "moses,subword-nmt,parse]" in out
    # Torch and fairseq stay where they are: another script may be running in the venv.
    assert "torch" not in checkout.calls.read_text() and ".whl" not in checkout.calls.read_text()
    assert checkout.install("--extras", "parse,moses")[1] == checkout.install()[1] == ""
    # It is left alone by another Python, and made again where the checkout has been moved to.
    other = checkout.base / "other"
    other.write_text("#!/bin/bash\necho 3.12345\n")
    other.chmod(0o755)
    refused(checkout, "remove it and run again", PYTHON=str(other))
    assert checkout.complete
    checkout.root = checkout.root.rename(checkout.base / "moved")
    code, out, _ = checkout.install()
    assert code == 0 and "rebuilding" in out


def test_update_keeps_and_adds_extras_and_is_not_complete_if_it_fails(checkout):
    checkout.install("--extras", "parse")
    constraints = checkout.root / "constraints.txt"
    constraints.write_text(constraints.read_text() + "another==1\n")
    checkout.calls.unlink()
    code, out, _ = checkout.install("--extras", "slurm")
    assert code == 0 and "updating" in out and "subword-nmt,parse,slurm]" in out
    assert "torch==0" in checkout.calls.read_text() and ".whl" in checkout.calls.read_text()
    constraints.write_text(constraints.read_text() + "and==1\n")
    code, out, _ = checkout.install(PIP="fail")
    assert code != 0 and "updating" in out and not checkout.complete


@pytest.mark.skipif(shutil.which("flock") is None, reason="no flock on this machine")
def test_two_installs_at_once_make_one_venv(checkout):
    processes = [checkout.start(), checkout.start()]
    for process in processes:
        process.communicate(timeout=300)
        assert process.returncode == 0
    assert checkout.calls.read_text().count("-m venv") == 1


def test_a_venv_of_another_maker_is_left_alone(checkout):
    theirs = checkout.root / ".venv" / "theirs"
    theirs.parent.mkdir()
    theirs.touch()
    refused(checkout, "move it away")
    assert theirs.exists()


def test_old_python_is_refused(checkout):
    refused(checkout, "3.11 to 3.14", "found 3.8", "PYTHON=", OLD="1")
    assert not (checkout.root / ".venv").exists()


def test_install_has_a_help_and_knows_its_extras(checkout):
    code, _, err = checkout.install("--extras", "parse,pars")
    assert code != 0 and err.startswith("install.sh: neither pyproject.toml nor lab/pyproject.toml")
    code, out, err = checkout.install("--help")
    assert code == 0 and not err and not checkout.calls.exists()
    assert (
        out.startswith("Create .venv with the plugin and the laboratory")
        and "  bash scripts/install.sh [--" in out
    )
    assert out.splitlines()[-1].startswith("XDG_CACHE_HOME  where")
