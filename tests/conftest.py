"""Settings for every test, and what several of them share."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

pytest_plugins = ["tests.skipped"]

# A shell script starts what it puts into the background with SIGINT ignored, and commands inherit
# that: tests that interrupt them would fail.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The first example pays for lazy imports and thread pools: no deadline per example.
settings.register_profile("syncattn", deadline=None, max_examples=50)
settings.load_profile("syncattn")


@pytest.fixture(scope="session")
def stanza_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for ``stanza:en:FOLDER``, with the corpus that its models come from."""
    from tests.stanza_models import train_stanza_models  # seconds, and only where it is needed

    folder = tmp_path_factory.mktemp("stanza")
    train_stanza_models(folder, "en")
    return folder


@pytest.fixture(scope="session")
def small_corpus(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A binarised corpus of a few sentences, with heads, labels and a subword model."""
    from tests.checkpoints import make_corpus

    return make_corpus(tmp_path_factory.mktemp("corpus"))
