import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = """\
import pytest

@pytest.mark.skipif(True, reason="no browser")
@pytest.mark.parametrize("number", [1, 2])
def test_of_a_browser(number):
    pass

def test_of_nothing():
    pytest.skip("no moon")
"""


def run(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    plugins = ("-p", "xdist.plugin", "-p", "tests.skipped")
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *options, "-c", os.devnull, folder],
        env={**os.environ, **environment, **alone},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("workers", [[], ["-n1"]])
@pytest.mark.parametrize(("ci", "code"), [("true", 1), ("", 0)])
def test_what_is_skipped_is_said_in_one_line(tmp_path, workers, ci, code):
    (tmp_path / "test_some.py").write_text(TESTS)
    found = run(tmp_path, *workers, CI=ci)
    assert found.returncode == code
    [line] = (line for line in found.stdout.splitlines() if line.startswith("skipped: "))
    said = "skipped: no browser (2); no moon (1)"
    assert line == (f"{said} – this fails, since CI is set" if ci else said)


def test_nothing_is_said_of_nothing(tmp_path):
    (tmp_path / "test_some.py").write_text("def test_of_nothing():\n    pass\n")
    found = run(tmp_path, CI="true")
    assert found.returncode == 0 and "skipped" not in found.stdout


def test_ci_gets_a_browser_only_if_there_is_none(tmp_path):
    """With programs that only say that they were called."""
    for folder in (".ci", "scripts", "programs"):
        (tmp_path / folder).mkdir()
    script, programs = tmp_path / ".ci" / "run", tmp_path / "programs"
    shutil.copy(ROOT / ".ci" / "run", script)
    (tmp_path / "scripts" / "test.sh").write_text('echo "tests $*"\n')
    bash = shutil.which("bash")
    for tool in ("bash", "dirname", "rm", "tail"):
        (programs / tool).symlink_to(str(shutil.which(tool)))

    def ci() -> str:
        done = subprocess.run(
            [str(bash), script, "-x"], env={"PATH": str(programs)}, capture_output=True, text=True
        )
        assert done.returncode == 0 and not done.stderr
        return done.stdout

    def write(name: str, text: str) -> None:
        (programs / name).write_text(f"#!{bash}\n{text}\n")
        (programs / name).chmod(0o755)

    assert ci() == "tests -x\n", "no apt-get, so the tests are skipped"
    write("apt-get", 'echo "apt-get $*" >>"$0.calls"')
    assert ci() == "installing Chromium\ntests -x\n"
    calls = (programs / "apt-get.calls").read_text().splitlines()
    assert calls[1].split()[-2:] == ["chromium", "chromium-driver"]
    write("apt-get", "echo no network; exit 1")
    assert ci() == "installing Chromium\nno network\nChromium cannot be installed\ntests -x\n"
    write("chromedriver", "")
    write("google-chrome", "")
    assert ci() == "tests -x\n"
