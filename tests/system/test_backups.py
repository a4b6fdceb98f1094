"""Pulsar and ZooKeeper are lost and restored, both or one: docs/deployment.md."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from ropeway.acl.vault import new_key
from ropeway.gateway.cli.main import main
from tests.guarded import ALICE, PASSWORD, ROOT
from tests.system.cluster import Cluster
from tests.system.pulsar import Pulsar
from tests.system.ropeway import Ropeway
from tests.system.zookeeper import ZooKeeper
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.jvm,
    pytest.mark.server,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

SETTINGS = """\
[acl]
hooks = ["users"]
key_file = "{folder}/key"
[acl.options.users]
superuser = "root"
superuser_password_file = "{folder}/password"
"""
DECLARED = f"""\
topics:
  orders: {{queues: 2, attributes: {{message.type: NORMAL}}}}
  fresh: {{queues: 2}}
groups:
  readers: {{retries: 3}}
users:
  {ALICE}: {{password_file: {{folder}}/password}}
policies:
- {{user: {ALICE}, resource: "Topic:orders", actions: [Pub]}}
quotas:
- {{topic: orders, send_bytes: 1000000}}
- {{group: readers, read_bytes: 1000000}}
"""
EARLY = [str(number) for number in range(30)]
READ = 10
FAR = "86400"


class Place:
    """Two nodes, the servers that they need, and a copy of what these store."""

    def __init__(self, folder: Path) -> None:
        self._servers = folder / "servers"
        self._backup = folder / "backup"
        self.pulsar = Pulsar(self._servers / "pulsar")
        self.zookeeper = ZooKeeper(self._servers / "zookeeper")
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (("key", new_key()), ("password", PASSWORD)):
            (folder / name).write_text(text)
            (folder / name).chmod(0o600)
        self._declared = DECLARED.replace("{folder}", str(folder))
        self.cluster = Cluster(
            folder / "nodes",
            self.pulsar,
            self.zookeeper.address,
            settings=SETTINGS.format(folder=folder),
        )

    @property
    def node(self) -> Ropeway:
        return self.cluster.nodes[0]

    def start(self) -> None:
        self.zookeeper.start()
        self.pulsar.start()
        self.cluster.start()

    def kill(self) -> None:
        self.cluster.kill()
        self.pulsar.kill()
        self.zookeeper.kill()

    def back_up(self) -> None:
        """Copy ZooKeeper's files while all runs, and then Pulsar's, while it is off."""
        self._copy("zookeeper/version-2", self._servers, self._backup)
        self.cluster.stop()
        self.pulsar.stop()
        self._copy("pulsar/data", self._servers, self._backup)
        self.pulsar.start()
        self.cluster.start()

    def restore(self) -> None:
        """Lose all that servers have, and start them with the copies."""
        self.kill()
        for one in ("zookeeper/version-2", "pulsar/data"):
            shutil.rmtree(self._servers / one)
            self._copy(one, self._backup, self._servers)
        self.start()

    def lose_zookeeper(self) -> None:
        self.cluster.stop()
        self.zookeeper.stop()
        shutil.rmtree(self._servers / "zookeeper/version-2")
        self.zookeeper.start()

    def adopt(self, owner: str, directory: Path) -> Ropeway:
        """The first node, as it is started once to take the namespace over."""
        options = [*self.node._options, "--adopt", owner]
        return Ropeway(directory, options=options, port=self.node.broker_port)

    def run(self, *line: str, stdin: str = "", code: int = 0, who: str = ROOT) -> str:
        """What `ropeway` prints, of a line that somebody gives."""
        environment = {
            "ROPEWAY_NAME_SERVER": self.cluster.name_server,
            "ROPEWAY_ACCESS_KEY": who,
            "ROPEWAY_SECRET_KEY": PASSWORD,
            "XDG_CONFIG_HOME": str(self._backup),
        }
        done = CliRunner().invoke(main, line, input=stdin, env=environment)
        assert done.exit_code == code, (line, done.output, done.exception)
        return done.stdout

    def json(self, *line: str) -> Any:
        """What it prints as JSON."""
        return json.loads(self.run(*line, "--json"))

    def declare(self, code: int = 0, *, command: str = "apply") -> str:
        """Have the cluster be as the file says, or say how it differs."""
        options = ("--yes",) if command == "apply" else ()
        return self.run(command, "-f", "-", *options, stdin=self._declared, code=code)

    def send(self, topic: str, *messages: str, who: str = ROOT) -> list[int]:
        """The offsets that messages get in the first queue."""
        told = self.run(
            "produce", topic, "--queue", "0", stdin="\n".join(messages), who=who
        )
        return [int(one) for one in re.findall(r"queue=0 offset=(\d+)", told)]

    def stored(self, topic: str) -> list[str]:
        """What the first queue has, from its first offset on."""
        printed = self.run("consume", topic, "--exit-at-end", "--json").splitlines()
        found = [one for one in map(json.loads, printed) if one["queue_id"] == 0]
        assert [one["offset"] for one in found] == [*range(len(found))]
        return [one["body"] for one in found]

    def until_timed(self, *topics: str) -> None:
        """Return when messages of these topics wait for their time, and no others."""

        def timed() -> bool:
            # A node that has just started takes them in behind its start.
            return [one["topic"] for one in self.json("timer", "list")] == [*topics]

        until(timed)

    def check(self, orders: list[str]) -> None:
        """All is as declared, and as it was left."""
        assert self.declare(command="diff") == ""
        assert self.stored("orders") == orders
        assert self.stored("fresh") == EARLY[:5]
        at = self.json("offset", "show", "readers", "orders")
        assert {one["queue_id"]: one["committed"] for one in at}[0] == READ
        refused = self.run("topic", "create", "x", who=ALICE, code=6)
        assert refused == ""

    def _copy(self, what: str, source: Path, target: Path) -> None:
        shutil.copytree(source / what, target / what)


@contextmanager
def running(folder: Path) -> Iterator[Place]:
    place = Place(folder)
    try:
        place.start()
        yield place
    finally:
        place.kill()


def test_what_was_backed_up_is_there_after_both_were_lost_and_after_one(
    tmp_path: Path,
) -> None:
    with running(tmp_path) as place:
        place.declare()
        assert place.send("orders", *EARLY) == [*range(30)]
        place.run("consume", "orders", "--group", "readers", "--count", str(READ))
        place.send("fresh", "old")
        place.run("topic", "delete", "fresh", "--yes")
        place.declare()
        assert place.send("fresh", *EARLY[:5]) == [*range(5)]
        place.run("produce", "orders", "timed", "--delay", FAR)
        place.check(EARLY)

        place.back_up()
        assert place.send("orders", "late", who=ALICE) == [30]
        place.run("produce", "fresh", "late", "--delay", FAR)
        place.run("group", "update", "readers", "--retries", "5")
        place.run("user", "delete", ALICE, "--yes")
        place.run("quota", "delete", "--topic", "orders", "--yes")
        place.declare(command="diff", code=1)

        place.restore()
        place.check(EARLY)
        place.until_timed("orders")
        assert place.send("orders", "new", who=ALICE) == [30]

        place.lose_zookeeper()
        with pytest.raises(RuntimeError) as refused:
            place.node.start()
        said = re.search(r"--adopt ([0-9a-f]+)", str(refused.value))
        assert said, refused.value
        place.node.kill()
        adopting = place.adopt(said[1], tmp_path / "adopting")
        try:
            adopting.start()
        finally:
            adopting.stop()
        place.cluster.start()
        place.declare()
        place.check([*EARLY, "new"])
        place.until_timed("orders")
        assert place.send("orders", "newer", who=ALICE) == [31]
