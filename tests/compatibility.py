"""Writes the table of clients and features from the results of the tests.

A test names its feature with `@pytest.mark.compatibility("push consumer, orderly")`;
the client is the test's parameter `client`, or the marker's keyword. `--compatibility
FILE` writes what came of them, and of the sub-commands of mqadmin that tests name with
`@pytest.mark.mqadmin("topicList", "topicRoute")`.
"""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests import listings

UNSUPPORTED = "not supported by the client: "
HEADER = """\
# Compatibility

Which feature of which unmodified client works, as the tests found it. This page is
written by `pytest --compatibility docs/compatibility.md tests/clients tests/system`.
"""
RANK = ["fails", "not supported", "works"]
"""A feature with several tests is as good as the worst of them."""

RESULT = "compatibility"
"""What came of a test, among the properties of its report."""

SHOWN = "mqadmin"
"""Likewise, of a sub-command that it shows."""

Cell = tuple[str, str]


class Table:
    """The results by feature and client, in the order in which tests came."""

    def __init__(self) -> None:
        self._cells: dict[str, dict[str, Cell]] = {}
        self._clients: list[str] = []

    def add(self, feature: str, client: str, cell: Cell) -> None:
        """Take in the result of one test."""
        if client not in self._clients:
            self._clients.append(client)
        row = self._cells.setdefault(feature, {})
        if client not in row or RANK.index(cell[0]) < RANK.index(row[client][0]):
            row[client] = cell

    def markdown(self) -> str:
        """The table, with a numbered reason under it for each gap."""
        clients = sorted(self._clients)
        reasons: list[str] = []
        lines = [
            f"| feature | {' | '.join(clients)} |",
            "|---" * (len(clients) + 1) + "|",
        ]
        for feature, row in self._cells.items():
            cells = [_text(row.get(client), reasons) for client in clients]
            lines.append(f"| {feature} | {' | '.join(cells)} |")
        notes = [f"{number}. {reason}" for number, reason in enumerate(reasons, 1)]
        return "\n".join([HEADER, *lines, "", *notes]).rstrip() + "\n"


def _text(cell: Cell | None, reasons: list[str]) -> str:
    if cell is None:
        return "-"
    result, reason = cell
    if not reason:
        return result
    if reason not in reasons:
        reasons.append(reason)
    return f"{result} ({reasons.index(reason) + 1})"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--compatibility",
        metavar="FILE",
        type=Path,
        help="write the table of clients and features, as the tests found it",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "compatibility(feature, client): a row of docs/compatibility.md"
    )
    config.addinivalue_line(
        "markers", "mqadmin(names): sub-commands of mqadmin that the test shows"
    )
    # With several processes, the one that gives out the work writes the page.
    if not hasattr(config, "workerinput"):
        recorder = Recorder(config.getoption("--compatibility"))
        config.pluginmanager.register(recorder, "compatibility")


class Recorder:
    """Collects what came of the tests, and writes it at the end."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._table = Table()
        self._shown: dict[str, tuple[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == RESULT:
                feature, client, cell = value
                self._table.add(feature, client, tuple(cell))
            elif name == SHOWN:
                self._show(*value)

    def _show(self, sub_command: str, test: str, result: str) -> None:
        """Note what came of a sub-command, unless another test has found worse."""
        known = self._shown.get(sub_command)
        if known is None or RANK.index(result) < RANK.index(known[0]):
            self._shown[sub_command] = (result, test)

    def pytest_sessionfinish(self) -> None:
        if self._path is not None:
            parts = [
                self._table.markdown(),
                listings.sub_commands(self._shown),
                listings.request_codes(),
            ]
            self._path.write_text("\n".join(f"{part.rstrip()}\n" for part in parts))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    marker = item.get_closest_marker("compatibility")
    if marker is not None:
        client = _client(item, marker)
        for cell in _cells(report):
            report.user_properties.append((RESULT, [marker.args[0], client, cell]))
    for one in item.iter_markers("mqadmin"):
        for name in one.args:
            for result, _ in _cells(report):
                report.user_properties.append((SHOWN, [name, item.name, result]))
    return report


def _client(item: pytest.Item, marker: pytest.Mark) -> str:
    if "client" in marker.kwargs:
        return marker.kwargs["client"]
    assert isinstance(item, pytest.Function)
    return item.callspec.params["client"].name


def _cells(report: pytest.TestReport) -> list[Cell]:
    if report.failed:
        return [("fails", "")]
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if reason.startswith(UNSUPPORTED):
            return [("not supported", reason.removeprefix(UNSUPPORTED))]
    if report.passed and report.when == "call":
        return [("works", "")]
    return []
