"""Java projects use a gateway: ropeway-junit, and frameworks with RocketMQ inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway import __version__
from tests.pages import DOCS, blocks, files
from tests.system import java_projects
from tests.system.java_projects import (
    IN_CONTAINERS,
    JAVA,
    PROJECTS,
    Name,
    Reports,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

STARTER = "Spring starter 2.3.5"
GRPC_STARTER = "Spring gRPC starter 2.3.1"
BINDER = "Spring Cloud Stream 2023.0.3.3"
CAMEL = "Camel 4.17.0"
FEATURES: Mapping[Name, tuple[str, str]] = {
    ("StarterTest", "syncSend"): ("producer, synchronous", STARTER),
    ("StarterTest", "asyncSend"): ("producer, asynchronous", STARTER),
    ("StarterTest", "sendOneWay"): ("producer, one-way", STARTER),
    ("StarterTest", "syncSendOfABatch"): ("producer, batch", STARTER),
    ("StarterTest", "listenerByTag"): ("push consumer, tag filter", STARTER),
    ("StarterTest", "syncSendOrderlyToAnOrderlyListener"): (
        "push consumer, orderly",
        STARTER,
    ),
    ("StarterTest", "delayLevelAndDelayTime"): ("producer, delay levels", STARTER),
    ("StarterTest", "aListenerThatThrowsGetsTheMessageAgain"): (
        "push consumer, retry",
        STARTER,
    ),
    ("StarterTest", "sendMessageInTransaction"): (
        "transactions: commit, rollback, and asking back",
        STARTER,
    ),
    ("StarterTest", "sendAndReceive"): ("request and reply", STARTER),
    ("GrpcStarterTest", "syncSendNormalMessage"): (
        "producer, synchronous",
        GRPC_STARTER,
    ),
    ("GrpcStarterTest", "asyncSendNormalMessage"): (
        "producer, asynchronous",
        GRPC_STARTER,
    ),
    ("GrpcStarterTest", "syncSendFifoMessage"): (
        "gRPC: push consumer, message groups in order",
        GRPC_STARTER,
    ),
    ("GrpcStarterTest", "syncSendDelayMessage"): (
        "gRPC: delivery times",
        GRPC_STARTER,
    ),
    ("GrpcStarterTest", "sendMessageInTransaction"): (
        "gRPC: transactions, commit, rollback and asking back",
        GRPC_STARTER,
    ),
    ("GrpcStarterTest", "receiveAndAck"): ("gRPC: simple consumer", GRPC_STARTER),
    ("StreamBinderTest", "aFunctionBetweenTwoTopics"): (
        "push consumer, concurrent",
        BINDER,
    ),
    ("CamelTest", "aRouteFromATopic"): ("push consumer, tag filter", CAMEL),
    ("CamelTest", "requestAndReply"): ("request and reply", CAMEL),
}
"""The rows and columns of docs/compatibility.md that tests of frameworks fill."""

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(1800)]


def cases() -> list[object]:
    """A parameter for each test, with the marker of its feature."""
    found = []
    for name in java_projects.written():
        marks = []
        if name in FEATURES:
            feature, client = FEATURES[name]
            marks = [pytest.mark.compatibility(feature, client=client)]
        found.append(pytest.param(name, id=".".join(name), marks=marks))
    return found


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """What came of all Java tests, in one run of Maven."""
    return java_projects.run(tmp_path_factory.mktemp("java"))


@pytest.mark.parametrize("name", cases())
def test_it_passes(name: Name, reports: Reports) -> None:
    assert name in reports.failures, reports.output
    assert not reports.failures[name], f"{reports.failures[name]}\n{reports.output}"


def test_no_test_is_left_out(reports: Reports) -> None:
    assert set(reports.failures) == set(java_projects.written())
    assert set(java_projects.written()) >= set(FEATURES)


def test_the_readme_shows_what_is_run() -> None:
    shown = blocks(JAVA / "ropeway-junit" / "README.md")
    sources = {
        "java": "".join(file.read_text() for file in JAVA.rglob("*Test.java")),
        "xml": (JAVA / "spring-tests" / "pom.xml").read_text(),
    }
    assert {"java", "xml"} <= {one.language for one in shown}
    for one in shown:
        if one.language in sources:
            for line in one.text.splitlines():
                assert line.strip() in sources[one.language], line


def test_the_tutorial_shows_what_is_run() -> None:
    page = DOCS / "tutorial-spring.md"
    tested = JAVA / "spring-tests" / "src" / "test" / "java" / "tutorial"
    shown = files(page)
    assert shown.keys() == {"application.properties"} | {
        one.name for one in tested.iterdir()
    }
    for name in shown.keys() - {"application.properties"}:
        assert shown[name] == (tested / name).read_text(), name
    pom = (JAVA / "spring-tests" / "pom.xml").read_text()
    for block in blocks(page, "xml"):
        for line in block.text.splitlines():
            assert line.strip() in pom, line
    settings = shown["application.properties"].splitlines()
    text = (tested / "OrdersTest.java").read_text()
    for line in settings:
        name, _, value = line.partition("=")
        assert name in text, line
        assert value in text or name == "rocketmq.name-server", line


@pytest.mark.parametrize("project", ["", *PROJECTS, IN_CONTAINERS])
def test_a_project_has_the_version_of_ropeway(project: str) -> None:
    text = (JAVA / project / "pom.xml").read_text()
    assert f"</artifactId>\n  <version>{__version__}</version>" in text
