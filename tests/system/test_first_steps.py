"""From nothing to a message that is received, by the README's words, in containers.

Each container begins with what its test names, and has a network of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pages import blocks
from tests.scripts import test_release
from tests.system import java_projects
from tests.system.container_images import ALPINE, DEBIAN, lacking
from tests.system.containers import Containers, base
from tests.system.deployment import ROOT
from tests.system.java_projects import JAVA

if TYPE_CHECKING:
    from collections.abc import Callable

    Record = Callable[[str, object], None]

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1800)]

IMAGE = "docker.io/library/ropeway:latest"
DJANGO = "Django==5.2.19"
MOST_S = 120
"""From nothing to a message, on a machine that does nothing else."""
MOST_OF_OTHERS = 0.2
"""Of the processors' time, where the machine is said to do nothing else."""
COUNT_CPU = (
    "cat /sys/fs/cgroup/cpuacct/cpuacct.usage /sys/fs/cgroup/cpu.stat"
    " >/steps/cpu 2>/dev/null || true"
)
"""What a container's own cgroup says, the old kind and the new; one is not there."""
SERVED = "until ropeway topic list >/dev/null 2>&1; do sleep 0.2; done"
"""Nobody reads on before the gateway answers."""


def shown(line: str, page: Path = ROOT / "README.md") -> str:
    """A command that a page shows."""
    found = "".join(one.text for one in blocks(page)).splitlines()
    assert any(one.removeprefix("$ ").split("  #")[0] == line for one in found), line
    return line


def within(command: str, page: Path = ROOT / "README.md") -> str:
    """A command that a page names in a sentence."""
    assert f"`{command}`" in page.read_text()
    return command


@pytest.fixture(scope="module")
def containers(tmp_path_factory: pytest.TempPathFactory) -> Containers:
    if (why := lacking(base(), DEBIAN)) is not None:
        pytest.skip(why)
    return Containers(tmp_path_factory.mktemp("podman"))


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository as it is, without what is not in it."""
    folder = tmp_path_factory.mktemp("clone") / "ropeway"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        file = ROOT / name
        if file.is_symlink() or file.exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, folder / name, follow_symlinks=False)
    return folder


def walk(
    containers: Containers,
    image: str,
    work: Path,
    script: str,
    record: Record,
    *volumes: str,
) -> str:
    """Run a script in a new container that has a folder as /steps; what it says.

    Beside others' work the same steps take a multiple of their time and of their CPU.
    So they are held to `MOST_S` where others have taken less than `MOST_OF_OTHERS`.
    """
    (work / "steps.sh").write_text(f"set -eu\n{script}\n{COUNT_CPU}\n")
    began, busy_s = time.monotonic(), machine_s()
    said = containers.once(image, ["sh", "/steps/steps.sh"], f"{work}:/steps", *volumes)
    took_s, busy_s = time.monotonic() - began, machine_s() - busy_s
    record("from nothing to a message, s", round(took_s, 1))
    cpu_s = counted_s((work / "cpu").read_text())
    record("CPU from nothing to a message, s", cpu_s)
    others = (busy_s - (cpu_s or 0)) / (took_s * (os.cpu_count() or 1))
    record("others' part of the processors", round(others, 2))
    print(f"{took_s:.1f} s, CPU {cpu_s} s, others {others:.0%}", said.splitlines()[-1])
    assert took_s < MOST_S or others > MOST_OF_OTHERS
    return said


def machine_s() -> float:
    """Seconds that all processors have worked, or were taken by the machine's host."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(
        int, Path("/proc/stat").read_text().split()[1:9]
    )
    ticks = user + nice + system + irq + softirq + steal
    return ticks / os.sysconf("SC_CLK_TCK")


def counted_s(said: str) -> float | None:
    """Seconds of CPU in what `COUNT_CPU` has found; None where that is nothing."""
    if found := re.search(r"^usage_usec (\d+)$", said, re.MULTILINE):
        return round(int(found[1]) / 1e6, 1)
    if found := re.match(r"(\d+)$", said, re.MULTILINE):
        return round(int(found[1]) / 1e9, 1)
    return None


@pytest.mark.parametrize(
    ("said", "cpu_s"),
    [
        ("usage_usec 19500000\nuser_usec 12000000\n", 19.5),
        ("19500000000\n", 19.5),
        ("nr_periods 0\nnr_throttled 0\n", None),
        ("19500000000\nnr_periods 0\n", 19.5),
        ("", None),
    ],
)
def test_cpu_is_read_as_each_kind_of_cgroup_says_it(
    said: str, cpu_s: float | None
) -> None:
    assert counted_s(said) == cpu_s


def test_on_an_empty_debian_the_demo_and_the_commands_work(
    containers: Containers, clone: Path, tmp_path: Path, record_property: Record
) -> None:
    shutil.copytree(clone, tmp_path / "ropeway", symlinks=True)
    said = walk(
        containers,
        DEBIAN,
        tmp_path,
        f"""
        cd /steps/ropeway
        {shown("./demo")}
        {shown(".venv/bin/ropeway serve --data ./data")} &
        PATH=$PWD/.venv/bin:$PATH
        {SERVED}
        {shown("ropeway produce orders 'one coffee' --tag paid")}
        {shown("ropeway consume orders --group kitchen")}
        """,
        record_property,
    )
    assert "received: 'hello from Ropeway'" in said
    assert said.splitlines()[-1] == "one coffee"


def test_on_an_empty_alpine_the_wheel_is_installed_and_the_commands_work(
    containers: Containers, tmp_path: Path, record_property: Record
) -> None:
    if (why := lacking(ALPINE)) is not None:
        pytest.skip(why)
    tree = test_release.clone(tmp_path / "tree")
    wheel = test_release.build_wheel(tree, tmp_path / "dist", "x86_64-linux-musl")
    said = walk(
        containers,
        ALPINE,
        tmp_path,
        f"""
        cat /etc/alpine-release
        python -m venv /venv
        PATH=/venv/bin:$PATH
        pip install --quiet /steps/dist/{wheel.name}
        ropeway demo
        python -c '{test_release.COMPILED}'
        {shown(".venv/bin/ropeway serve --data ./data").removeprefix(".venv/bin/")} &
        {SERVED}
        {shown("ropeway produce orders 'one coffee' --tag paid")}
        {shown("ropeway consume orders --group kitchen")}
        """,
        record_property,
    )
    assert re.match(r"3\.23\.\d+\n", said)
    assert "received: 'hello from Ropeway'" in said
    assert said.count("is whole: True") == test_release.MODULES
    assert said.splitlines()[-1] == "one coffee"


VIEWS = """\
from django.http import HttpResponse
from ropeway.client import Message
from ropeway.client.sync import SyncProducer
from django.conf import settings

def order(request):
    with SyncProducer(settings.NAME_SERVER, "shop") as producer:
        sent = producer.send(Message(request.GET["topic"], request.body))
    return HttpResponse(sent.msg_id)
"""
TESTS = """\
from django.test import Client
from ropeway.client import ConsumeFrom
from ropeway.client.sync import SyncPullConsumer

import gateway
import storage


def test_an_order_is_placed(ropeway_gateway, ropeway_topic, settings):
    assert (gateway.MINE, storage.MINE) == (True, True)
    settings.NAME_SERVER = ropeway_gateway.name_server
    path = f"/order?topic={ropeway_topic}"
    assert Client().post(path, b"one coffee", content_type="text/plain").content
    with SyncPullConsumer(
        ropeway_gateway.name_server, "kitchen", consume_from=ConsumeFrom.FIRST_OFFSET
    ) as consumer:
        consumer.subscribe(ropeway_topic)
        (message,) = consumer.poll(60)
    assert message.body == b"one coffee"
    print("received", message.body)
"""


def test_in_a_django_project_with_folders_of_our_names_a_view_sends(
    containers: Containers, clone: Path, tmp_path: Path, record_property: Record
) -> None:
    shutil.copytree(clone, tmp_path / "ropeway", symlinks=True)
    for name in ("acl", "gateway", "routing", "storage"):
        (tmp_path / "files" / name).mkdir(parents=True)
        (tmp_path / "files" / name / "__init__.py").write_text("MINE = True\n")
    (tmp_path / "files" / "views.py").write_text(VIEWS)
    (tmp_path / "files" / "test_orders.py").write_text(TESTS)
    said = walk(
        containers,
        base(),
        tmp_path,
        f"""
        python -m venv /venv
        PATH=/venv/bin:$PATH
        cd /steps/ropeway
        {within("pip install .")} --quiet
        pip install --quiet {DJANGO} pytest pytest-django
        django-admin startproject shop /steps/files
        cd /steps/files
        mv views.py shop/views.py
        echo "from shop import views; urlpatterns = [path('order', views.order)]" \\
            >> shop/urls.py
        echo "ALLOWED_HOSTS = ['*']; MIDDLEWARE = []" >> shop/settings.py
        DJANGO_SETTINGS_MODULE=shop.settings pytest -s test_orders.py
        """,
        record_property,
    )
    assert "received b'one coffee'" in said
    assert "1 passed" in said


JAVA_HOME = "/usr/lib/jvm/java-17-openjdk-amd64"
OF_MAVEN = (
    *("/usr/lib/jvm", "/usr/share/maven", "/usr/share/java", "/usr/share/maven-repo"),
    *("/etc/maven", "/etc/java-17-openjdk"),
)
"""Java 17 and Maven, as Debian's packages have them, and this machine's settings."""
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId><artifactId>shop</artifactId><version>1</version>
  <properties><maven.compiler.release>17</maven.compiler.release></properties>
  <dependencies>
{dependency}
    <dependency>
      <groupId>org.apache.rocketmq</groupId>
      <artifactId>rocketmq-client</artifactId>
      <version>5.5.0</version>
    </dependency>
    <dependency>
      <groupId>org.junit.jupiter</groupId>
      <artifactId>junit-jupiter</artifactId>
      <version>5.14.4</version>
      <scope>test</scope>
    </dependency>
  </dependencies>
  <build>
    <plugins>
      <plugin>
        <artifactId>maven-resources-plugin</artifactId><version>3.3.1</version>
      </plugin>
      <plugin>
        <artifactId>maven-compiler-plugin</artifactId><version>3.14.1</version>
      </plugin>
      <plugin>
        <artifactId>maven-surefire-plugin</artifactId><version>3.5.4</version>
      </plugin>
    </plugins>
  </build>
</project>
"""


def test_in_a_maven_project_a_test_sends_and_receives(
    containers: Containers, clone: Path, tmp_path: Path, record_property: Record
) -> None:
    if not all(Path(one).exists() for one in (JAVA_HOME, *OF_MAVEN)):
        pytest.skip("Java 17 and Maven are not those of Debian's packages here")
    readme = JAVA / "ropeway-junit" / "README.md"
    (dependency,) = (one.text for one in blocks(readme, "xml"))
    shutil.copytree(clone, tmp_path / "ropeway", symlinks=True)
    project = tmp_path / "shop"
    (project / "src/test/java/example").mkdir(parents=True)
    (project / "pom.xml").write_text(POM.format(dependency=dependency))
    test = JAVA / "ropeway-junit/src/test/java/example/OrdersTest.java"
    shutil.copy(test, project / "src/test/java/example")
    kept = Path.home() / ".m2"
    said = walk(
        containers,
        base(),
        tmp_path,
        f"""
        export JAVA_HOME={JAVA_HOME} MAVEN_OPTS=-Dmaven.repo.local=/m2/repository
        python -m venv /venv
        PATH=/venv/bin:/usr/share/maven/bin:$PATH
        cd /steps/ropeway
        {within("pip install '.[grpc]'", readme)} --quiet
        cd java/ropeway-junit
        {within("mvn install -DskipTests", readme)} -q -B
        cd /steps/shop
        mvn -B test
        """,
        record_property,
        f"{kept}:/m2:O",
        *(f"{one}:{one}:ro" for one in OF_MAVEN),
    )
    assert "Tests run: 1, Failures: 0, Errors: 0, Skipped: 0" in said


def test_a_container_is_started_by_testcontainers(
    containers: Containers, tmp_path: Path
) -> None:
    """As Docker's own socket, podman's serves Testcontainers."""
    containers.build_ours(IMAGE)
    with containers.socket(tmp_path / "podman.sock") as url:
        reports = java_projects.run_in_containers(tmp_path, url)
    assert reports.failures == {("ContainerTest", "anOrderThatIsSentIsReceived"): ""}, (
        reports.output
    )
