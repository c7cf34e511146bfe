"""With CI set, a skipped test is a failure: else nobody would notice that, say, a browser lacks."""

import os
from typing import Any

import pytest


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: Any) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter and reporter.stats.get("skipped")
    if os.environ.get("CI") and skipped and session.exitstatus == pytest.ExitCode.OK:
        reporter.write_line("\nskipped tests fail, since CI is set")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
