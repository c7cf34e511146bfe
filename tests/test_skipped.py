import os
import shutil
import subprocess
import sys

import pytest

from tests.importing import ROOT


@pytest.mark.parametrize(
    ("workers", "body", "ci"),
    [
        ([], "pytest.skip('no browser')", "true"),
        (["-n1"], "pytest.skip('no browser')", "true"),
        ([], "pytest.skip('no browser')", ""),
        ([], "pass", "true"),
    ],
)
def test_what_is_skipped_is_said_and_fails_if_ci_is_set(tmp_path, workers, body, ci):
    (tmp_path / "test_some.py").write_text(f"import pytest\ndef test_it(): {body}\n")
    plugins = ("-p", "xdist.plugin", "-p", "tests.skipped", "-rs", *workers)
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT), "CI": ci}
    found = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "-c", os.devnull, tmp_path],
        env={**os.environ, **alone},
        capture_output=True,
        text=True,
    )
    fails = bool(ci) and body != "pass"
    assert found.returncode == fails
    assert ("skipped tests fail, since CI is set" in found.stdout) == fails
    assert ("no browser" in found.stdout) == (body != "pass")


def test_the_fast_lane_leaves_out_what_is_there(request):
    plugins = request.config.pluginmanager.get_plugins()
    [settings] = [plugin for plugin in plugins if hasattr(plugin, "SLOW")]
    for path in settings.SLOW:
        assert (ROOT / path).exists(), path


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
