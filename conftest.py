"""Settings for every test of both houses, and what several of them share."""

import atexit
import os
import shutil
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings

from tests.end_to_end.forked import forked_commands
from tests.shapes import check_shapes

pytest_plugins = ["tests.skipped", "tests.end_to_end.corpora"]

check_shapes()

# A shell script starts what it puts into the background with SIGINT ignored, and commands inherit
# that: tests that interrupt them would fail.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Hundreds of commands import the package: it is compiled once.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# All workers have one server of commands, whose libraries take long to import.
if "PYTEST_XDIST_WORKER" not in os.environ:
    _server = ExitStack()
    atexit.register(_server.close)
    _folder = Path(_server.enter_context(TemporaryDirectory()))
    os.environ["XDG_CACHE_HOME"] = str(_folder / "cache")
    os.environ["FORKED_PROGRAMS"] = str(_server.enter_context(forked_commands(_folder)))

# What a user of recipes has set.
for _name in ("ASPEC_JE", "ATIS", "ENJA", "MULTI30K_TINY", "PARSE_OPTIONS", "STANZA_DIR"):
    os.environ.pop(_name, None)
for _name in ("PARSER_DE", "PARSER_EN", "PARSER_JA", "SYNCATTN_MIRROR"):
    os.environ.pop(_name, None)

# The first example pays for lazy imports and thread pools: no deadline per example.
settings.register_profile("syncattn", deadline=None, max_examples=50)
settings.load_profile("syncattn")


#: What takes longest begins first, in this order: a worker runs a whole file.
LONGEST = (
    *("lab/tests/end_to_end/test_recipes", "lab/tests/end_to_end/", "tests/end_to_end/"),
    *("lab/tests/test_site", "tests/test_devices", "tests/test_two_processes"),
    *("lab/tests/test_configs", "lab/tests/test_serve", "lab/tests/fuzz/", "tests/fuzz/"),
    *("lab/tests/", "tests/test_"),
)


#: What the fast lane leaves out: trainings and recipes in full, browsers, the site, the study,
#: wheels, fuzzed files and several processes.
SLOW = (
    *("lab/tests/end_to_end", "lab/tests/fuzz", "lab/tests/report/test_browser.py"),
    *("lab/tests/test_benchmarks.py", "lab/tests/test_serve.py", "lab/tests/test_site.py"),
    *("tests/end_to_end", "tests/fuzz", "tests/serving/test_process.py", "tests/test_devices.py"),
    *("tests/patches/test_compiler_imports.py", "tests/tasks/test_graphs.py"),
    *("tests/test_examples.py", "tests/cli/test_parse.py", "lab/tests/study"),
    *("lab/tests/recipes/test_run.py", "lab/tests/recipes/test_idea.py"),
    *("tests/test_packaging.py", "tests/test_two_processes.py"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="leave out what takes longest")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    path = collection_path.relative_to(config.rootpath).as_posix()
    return True if config.getoption("--fast") and path in SLOW else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    starts = (*LONGEST, "")
    items.sort(key=lambda item: [item.nodeid.startswith(start) for start in starts].index(True))


@pytest.fixture(scope="session", autouse=True)
def _short_translations() -> None:
    """Models that have hardly been trained do not know where a sentence ends."""
    from syncattn_fairseq.inference import model

    model.MAX_LEN = 50


@pytest.fixture(scope="session")
def stanza_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for ``stanza:en:FOLDER``, with the corpus that its models come from."""
    from syncattn_fairseq.base.locks import locked
    from tests.stanza_models import train_stanza_models  # seconds, and only where it is needed

    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "stanza"
    with locked(folder.with_suffix(".lock"), lambda: None):  # once for all workers
        if not (folder / "en_parser.pt").exists():  # it is made last
            folder.mkdir(exist_ok=True)
            train_stanza_models(folder, "en")
    return folder


@pytest.fixture(scope="session")
def small_corpus(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A binarised corpus of a few sentences, with heads, labels and a subword model."""
    from tests.checkpoints import make_corpus

    return make_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def raw_corpus(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same of raw sentences, whose words have places in them."""
    from tests.checkpoints import make_corpus

    return make_corpus(tmp_path_factory.mktemp("raw"), raw=True)


@pytest.fixture
def own_data(small_corpus: Any, tmp_path: Path) -> Path:
    """A copy of the small corpus's binarised data, which a test may change."""
    return Path(shutil.copytree(small_corpus.data, tmp_path / "bin"))
