import subprocess
import sys
from importlib import import_module

import pytest

import syncattn_fairseq
from tests.test_packaging import SCRIPTS

HELP = """
import sys
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
heavy = {"fairseq", "numpy", "sacrebleu", "stanza", "torch"}
for module in sys.argv[1:]:
    with redirect_stdout(StringIO()) as told:
        try:
            import_module(module).main(["--help"])
        except SystemExit as end:
            assert end.code == 0, module
    assert told.getvalue().startswith("usage: syncattn-"), module
    assert not heavy & set(sys.modules), (module, heavy & set(sys.modules))
"""


def test_help_imports_nothing_heavy():
    modules = [target.split(":")[0] for target in SCRIPTS.values()]
    done = subprocess.run([sys.executable, "-c", HELP, *modules], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", SCRIPTS)
def test_version(name, capsys):
    main = import_module(SCRIPTS[name].split(":")[0]).main
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"{name} {syncattn_fairseq.__version__}\n"


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_wrong_option_is_one_line(name, capsys):
    main = import_module(SCRIPTS[name].split(":")[0]).main
    with pytest.raises(SystemExit) as end:
        main(["--no-such-option", "--other"])
    told = capsys.readouterr()
    assert end.value.code == 2 and told.out == ""
    assert told.err.startswith("error: ") and told.err.count("\n") == 1
    assert told.err.endswith(f"; see {name} --help\n")
