from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.importing import import_file

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "syncattn_fairseq"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SCRIPTS = PROJECT["project"]["scripts"]


def constraints() -> list[Requirement]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [Requirement(line.split("#")[0]) for line in lines if line.split("#")[0].strip()]


# ---- the wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built in a copy: setuptools leaves a build folder beside what it builds."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(PACKAGE, source / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    (source / "tests").mkdir()
    (source / "tests" / "__init__.py").touch()
    build = "from setuptools import build_meta; build_meta.build_wheel('dist')"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True)
    [path] = (source / "dist").glob("*.whl")
    return zipfile.ZipFile(path)


def test_wheel_holds_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    expected = {
        str(path.relative_to(ROOT))
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    configs = {f"{PACKAGE.name}/{p.relative_to(ROOT)}" for p in ROOT.glob("configs/**/*.yaml")}
    expected |= configs  # through a link
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert held == expected


def test_an_installed_recipe_has_its_configs(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path / "installed")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "syncattn_fairseq.lab.cli.recipe",
            "wmt14_en_de",
            "dbsa",
            "--dry-run",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (
        f"--config-dir {tmp_path}/installed/syncattn_fairseq/configs --config-name" in done.stdout
    )
    assert {path.name for path in tmp_path.iterdir()} == {"installed"}


def test_wheel_has_the_version_and_commands(wheel: zipfile.ZipFile) -> None:
    info = {Path(name).name: name for name in wheel.namelist() if ".dist-info/" in name}
    source = (PACKAGE / "__init__.py").read_text()
    version = re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    assert version is not None
    assert f"\nVersion: {version[1]}\n" in wheel.read(info["METADATA"]).decode()
    assert "LICENSE" in info
    entry_points = wheel.read(info["entry_points.txt"]).decode()
    for command, target in SCRIPTS.items():
        assert f"{command} = {target}\n" in entry_points


@pytest.mark.parametrize("target", SCRIPTS.values())
def test_every_command_has_its_main(target: str) -> None:
    module, function = target.split(":")
    source = ROOT / (module.replace(".", "/") + ".py")
    assert f"\ndef {function}(" in source.read_text()


def test_the_sdist_holds_the_repository() -> None:
    """But for what only a code host or a container reads."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a checkout of git")
    rules = [line.split() for line in (ROOT / "MANIFEST.in").read_text().splitlines()]
    named = {name for rule in rules if rule[0] in ("graft", "include") for name in rule[1:]}
    named |= {PACKAGE.name, "pyproject.toml", "README.md", "LICENSE"}  # of setuptools itself
    held = {line.split("/")[0] for line in listed.stdout.splitlines()}
    assert {name for name in held if not name.startswith(".")} == named | {"Dockerfile"}


# ---- constraints.txt


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13"])
def test_constraints_pin_everything_once(python: str) -> None:
    named = [*PROJECT["build-system"]["requires"], *PROJECT["project"]["dependencies"]]
    for extra in PROJECT["project"]["optional-dependencies"].values():
        named += extra
    pins: dict[str, str] = {}
    for pin in constraints():
        if pin.marker is None or pin.marker.evaluate({"python_version": python}):
            assert pin.name not in pins
            [specifier] = pin.specifier
            assert specifier.operator == "=="
            pins[pin.name] = specifier.version
    for requirement in map(Requirement, named):
        assert requirement.specifier.contains(pins[requirement.name]), requirement


def test_pins_work_on_the_first_release_of_each_python() -> None:
    """Debian 12 has 3.11.2: a pinned version that needs 3.11.5 cannot be installed there."""
    checked = 0
    for pin in constraints():
        try:
            installed = importlib.metadata.distribution(pin.name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if not pin.specifier.contains(installed.version):
            continue  # pinned for another Python
        needed = SpecifierSet(str(installed.metadata.json.get("requires_python", "")))
        for python in ("3.10", "3.11", "3.12", "3.13"):
            if pin.marker is None or pin.marker.evaluate({"python_version": python}):
                assert needed.contains(f"{python}.0"), f"{pin} needs Python {needed}"
                checked += 1
    assert checked > 100


# ---- slim_fairseq.py


def slim(setup: str) -> str:
    result: str = import_file(ROOT / "scripts" / "slim_fairseq.py").slim(setup)
    return result


SETUP = """\
extensions = [Extension("libbleu")]
extensions.extend([cpp_extension.CppExtension("fairseq.libbase")])
if "CUDA_HOME" in os.environ:
    extensions.extend([cpp_extension.CppExtension("fairseq.libnat_cuda")])
cmdclass = {"build_ext": cpp_extension.BuildExtension}
install_requires=[
            "bitarray",
            "torchaudio>=0.8.0",
]
"""


def test_slim_takes_out_torch_extensions_and_torchaudio() -> None:
    assert slim(SETUP) == (
        'extensions = [Extension("libbleu")]\n'
        'cmdclass = {"build_ext": cpp_extension.BuildExtension}\n'
        'install_requires=[\n            "bitarray",\n]\n'
    )


@pytest.mark.parametrize("lost", ["extensions.extend(", "cmdclass = {", "torchaudio>=0.8.0"])
def test_slim_refuses_a_text_it_does_not_know(lost: str) -> None:
    with pytest.raises(ValueError, match=re.escape(lost)):
        slim(SETUP.replace(lost, "something else"))


def test_slim_imports_late() -> None:
    import_late = import_file(ROOT / "scripts" / "slim_fairseq.py").import_late
    text = "import torch\nfrom sklearn import f1\n\ndef score(x):\n    y = f1(x)\n    return y\n"
    assert import_late(text, "from sklearn import f1\n", "    y = f1(") == (
        "import torch\n\ndef score(x):\n    from sklearn import f1\n    y = f1(x)\n    return y\n"
    )
    for lost in ("from sklearn import f1\n", "    y = f1("):
        with pytest.raises(ValueError, match=re.escape(repr(lost))):
            import_late(text.replace(lost, ""), "from sklearn import f1\n", "    y = f1(")


def test_fairseq_starts_without_scikit_learn() -> None:
    code = "import sys, fairseq_cli.train; print({'sklearn', 'scipy.stats'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


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
    *link_package.py*) ;;
    *slim_fairseq.py*) mkdir "${{@: -1}}/source" ;;
    *" wheel "*) touch .venv/build/fairseq.whl ;;
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
        for name in ("pyproject.toml", "constraints.txt"):
            shutil.copy(ROOT / name, self.root)
        for name in ("install.sh", "_fairseq.sh", "slim_fairseq.py", "link_package.py"):
            shutil.copy(ROOT / "scripts" / name, self.root / "scripts")
        self.python = base / "python"
        self.python.write_text(FAKE_PYTHON)
        self.python.chmod(0o755)
        self.calls = base / "calls"

    @property
    def complete(self) -> bool:
        return (self.root / ".venv" / ".complete").exists()

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", self.root / "scripts" / "install.sh", *arguments],
            env={
                **os.environ,
                "PYTHON": str(self.python),
                "TORCH": "torch==0",
                "XDG_CACHE_HOME": str(self.base / "cache"),
                "CALLS": str(self.calls),
                **environment,
            },
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


def test_install_happens_once(checkout: Checkout) -> None:
    assert checkout.install()[0] == 0
    assert checkout.complete
    checkout.calls.unlink()
    began = time.monotonic()
    assert checkout.install(PYTHON="") == (0, "", "")
    assert time.monotonic() - began < 1
    assert not checkout.calls.exists()


def test_failed_install_is_not_complete_and_is_rebuilt(checkout: Checkout) -> None:
    code, _, err = checkout.install(PIP="fail")
    assert code != 0
    assert len(err.splitlines()) == 1
    assert "torch" in err and "No space left on device" in err and "install.log" in err
    assert not checkout.complete
    code, out, _ = checkout.install()
    assert code == 0 and "rebuilding" in out
    assert checkout.complete


def test_killed_install_is_not_complete_and_is_rebuilt(checkout: Checkout) -> None:
    process = checkout.start(PIP="hang")
    deadline = time.monotonic() + 30
    while "torch==0" not in (checkout.calls.read_text() if checkout.calls.exists() else ""):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, 9)
    process.communicate()
    assert not checkout.complete
    code, out, _ = checkout.install()
    assert code == 0 and "rebuilding" in out
    assert checkout.complete


def test_failed_update_is_not_complete(checkout: Checkout) -> None:
    checkout.install()
    with (checkout.root / "constraints.txt").open("a") as file:
        file.write("another==1\n")
    code, out, _ = checkout.install(PIP="fail")
    assert code != 0 and "updating" in out
    assert not checkout.complete


def test_extras_are_added_and_kept(checkout: Checkout) -> None:
    checkout.install()
    checkout.calls.unlink()
    code, out, _ = checkout.install("--extras", "parse")
    assert code == 0 and "adding to .venv: parse\n" in out and "moses,subword-nmt,viz,parse]" in out
    # Torch and fairseq stay where they are: another script may be running in the venv.
    assert "torch" not in checkout.calls.read_text() and ".whl" not in checkout.calls.read_text()
    assert checkout.install("--extras", "parse,moses")[1] == checkout.install()[1] == ""


def test_update_keeps_and_adds_extras(checkout: Checkout) -> None:
    checkout.install("--extras", "parse")
    with (checkout.root / "constraints.txt").open("a") as file:
        file.write("another==1\n")
    checkout.calls.unlink()
    code, out, _ = checkout.install("--extras", "slurm")
    assert code == 0 and "updating" in out and "viz,parse,slurm]" in out
    assert "torch==0" in checkout.calls.read_text() and ".whl" in checkout.calls.read_text()


def test_unknown_extra_is_refused(checkout: Checkout) -> None:
    code, _, err = checkout.install("--extras", "parse,pars")
    assert code != 0 and err == "install.sh: pyproject.toml has no extra 'pars'\n"


def test_moved_checkout_is_rebuilt(checkout: Checkout) -> None:
    checkout.install()
    checkout.root = checkout.root.rename(checkout.base / "moved")
    code, out, _ = checkout.install()
    assert code == 0 and "rebuilding" in out


@pytest.mark.skipif(shutil.which("flock") is None, reason="no flock on this machine")
def test_two_installs_at_once_make_one_venv(checkout: Checkout) -> None:
    processes = [checkout.start(), checkout.start()]
    for process in processes:
        process.communicate(timeout=300)
        assert process.returncode == 0
    assert checkout.calls.read_text().count("-m venv") == 1


def test_a_venv_of_another_maker_is_left_alone(checkout: Checkout) -> None:
    theirs = checkout.root / ".venv" / "theirs"
    theirs.parent.mkdir()
    theirs.touch()
    code, _, err = checkout.install()
    assert code != 0 and len(err.splitlines()) == 1 and "move it away" in err
    assert theirs.exists()


def test_old_python_is_refused(checkout: Checkout) -> None:
    code, _, err = checkout.install(OLD="1")
    assert code != 0 and len(err.splitlines()) == 1
    assert "3.10 to 3.13" in err and "found 3.8" in err and "PYTHON=" in err
    assert not (checkout.root / ".venv").exists()


def test_a_missing_compiler_is_noticed_before_torch_is_downloaded(checkout: Checkout) -> None:
    code, out, err = checkout.install(CXX="no-such-compiler")
    assert code != 0 and "torch" not in out + checkout.calls.read_text()
    assert err == "install.sh: fairseq needs a C++ compiler; on Debian: apt install g++\n"


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_install_has_a_help(checkout: Checkout, option: str) -> None:
    code, out, err = checkout.install(option)
    assert code == 0 and not err and not checkout.calls.exists()
    assert out.startswith("Create and fill .venv") and "  bash scripts/install.sh [--" in out
    assert out.splitlines()[-1].startswith("XDG_CACHE_HOME  where")


def test_fairseq_finds_the_linked_plugin_from_any_folder(tmp_path: Path) -> None:
    package, site = tmp_path / "checkout" / "plugin", tmp_path / "site"
    made = site / "plugin-1.dist-info"
    for folder in (package, made, site / "fairseq"):
        folder.mkdir(parents=True)
    (package / "__init__.py").touch()
    (made / "RECORD").write_text("a,,\n")
    link = import_file(ROOT / "scripts" / "link_package.py").link_package
    for _ in range(2):
        link(package, site)
    # fairseq looks beside itself for a --user-dir that is not in this folder.
    assert (site / "fairseq" / ".." / "plugin").resolve() == package
    assert (made / "RECORD").read_text() == "a,,\nplugin,,\n"
