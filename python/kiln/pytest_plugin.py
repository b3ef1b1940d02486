"""`pytest --kiln`: every launch of a test is checked, and an error in one fails
the test with its report.

    pytest --kiln                       errors fail their tests
    pytest --kiln --kiln-report=DIR     and DIR/kiln.sarif has all findings

    @pytest.mark.kiln(interleavings="all", allow=["same-value"])
    def test_add(): ...

    @pytest.mark.kiln(False)            findings do not fail this one

With pytest-xdist the workers check, and the session's own process writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .report import Report

_REPORTS = pytest.StashKey[list[Any]]()
_SESSION = pytest.StashKey[Any]()
#: Of a TestReport, on its way from a worker: what `Folder.add` takes.
_ATTRIBUTE = "kiln_reports"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kiln", "Kiln: kernels checked without a GPU")
    group.addoption("--kiln", action="store_true", help="an error that Kiln finds in a launch fails its test")
    group.addoption("--kiln-report", metavar="DIR", help="write reports and one SARIF log to DIR; implies --kiln")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "kiln(is_on=True, **options): options of Kiln's checks for the launches of a test, such as "
        "interleavings='all' and allow=['same-value']; kiln(False): its findings do not fail it",
    )
    if _is_on(config) and not hasattr(config, "workerinput"):
        config.stash[_SESSION] = _Session(config)
        config.pluginmanager.register(config.stash[_SESSION], "kiln-session")


def _is_on(config: pytest.Config) -> bool:
    return bool(config.getoption("--kiln") or config.getoption("--kiln-report"))


def _marked(item: pytest.Item) -> tuple[bool, dict[str, Any]]:
    """Whether findings fail the test, and its options: the nearest marker wins."""
    is_on = True
    options: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("kiln"))):
        is_on = bool(marker.args[0]) if marker.args else True
        options |= marker.kwargs
    return is_on, options


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    if not _is_on(item.config):
        yield
        return
    from . import recording
    from .options import make_options, option_names

    is_on, options = _marked(item)
    if item.config.getoption("--kiln-report") and "detail" in option_names():
        options = {"detail": "on"} | options  # for the pages
    try:
        make_options(options)
    except (TypeError, ValueError) as error:
        pytest.fail(f"the marker kiln: {error}", pytrace=False)
    reports: list[Report] = []
    item.stash[_REPORTS] = reports
    with recording.listening(reports.append, **options):
        outcome = yield
    text = "\n".join(str(report).rstrip() for report in reports if not report.ok)
    if not text:
        return
    if is_on and outcome.excinfo is None:  # type: ignore[attr-defined]
        outcome.force_exception(pytest.fail.Exception(f"Kiln found errors:\n{text}", pytrace=False))  # type: ignore[attr-defined]
    else:
        item.add_report_section("call", "kiln", text)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Iterator[None]:
    outcome = yield
    if call.when == "call" and item.stash.get(_REPORTS, None):
        result = outcome.get_result()  # type: ignore[attr-defined]
        wants_files = bool(item.config.getoption("--kiln-report"))
        setattr(result, _ATTRIBUTE, [_formats(report, wants_files) for report in item.stash[_REPORTS]])


def _formats(report: Report, wants_files: bool) -> dict[str, str]:
    """What a worker sends of a report."""
    formats = {"verdict": report.verdict}
    if wants_files:
        formats |= {"json": report.to_json(), "sarif": report.to_sarif()}
        html = report.to_html()
        formats |= {"html": html} if html else {}
    return formats


class _Session:
    """The process that the user has started: it counts, and writes."""

    def __init__(self, config: pytest.Config) -> None:
        self._path = config.getoption("--kiln-report")
        self._logs: list[str] = []
        self._launches = self._errors = 0
        self._folder: Any = None
        if self._path:
            from .merging import Folder

            try:
                self._folder = Folder(self._path)
            except OSError as error:
                raise pytest.UsageError(f"--kiln-report: {self._path}: {error.strerror}") from error

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for formats in getattr(report, _ATTRIBUTE, []):
            self._launches += 1
            self._errors += formats["verdict"] != "ok"
            if self._folder:
                self._logs.append(formats["sarif"])
                self._folder.add(report.nodeid, formats)

    def pytest_sessionfinish(self) -> None:
        if self._folder:
            self._folder.finish(self._logs)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        text = f"kiln: {self._launches} launches checked, {self._errors} with errors"
        if self._folder:
            text += f"; {self._path}/kiln.sarif has the findings"
        terminalreporter.write_line(text)
