"""Say in one line what was skipped, and why; with CI set, a skipped test is a failure."""

import os
from collections import Counter
from typing import Any

import pytest


def say_skipped(reports: list[Any]) -> str:
    """Return the line; empty if nothing was skipped.

    Args:
        reports: of pytest, each of a test or a file that was skipped.
    """
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)
    if not reasons:
        return ""
    parts = (f"{reason} ({count})" for reason, count in reasons.most_common())
    return f"skipped: {'; '.join(parts)}" + (" – this fails, since CI is set" if in_ci() else "")


def in_ci() -> bool:
    return bool(os.environ.get("CI"))


def list_skipped(config: Any) -> list[Any]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    found: list[Any] = reporter.stats.get("skipped", []) if reporter else []
    return found


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if line := say_skipped(list_skipped(terminalreporter.config)):
        terminalreporter.write_line(line)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: Any) -> None:
    if in_ci() and list_skipped(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
