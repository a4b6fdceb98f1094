"""A real RocketMQ 4.9.7 name server and broker, which may check who asks (ACL 1.0)."""

from pathlib import Path
from typing import Any

from tests import builds
from tests.system.process import ports_in_a_row
from tests.system.rocketmq import HERE, SMALL, RocketMQ


class RocketMQ4(RocketMQ):
    """A name server and a broker, two processes on 127.0.0.1.

    Args:
        directory: as in `RocketMQ`, and so are the others that have names.
        accounts: the text of plain_acl.yml; none: nobody is checked.
    """

    name = "RocketMQ 4.9.7"

    def __init__(self, directory: Path, *, accounts: str = "", **given: Any) -> None:
        settings = {**SMALL, **given.pop("settings", {})}
        settings["aclEnable"] = str(bool(accounts)).lower()
        super().__init__(directory, settings=settings, **given)
        # It listens for replicas a port above its own, whatever its settings say.
        _, _, self._broker_port, self._ha_port = ports_in_a_row(4)
        self._conf = directory / "conf"
        self._accounts = accounts

    def start(self) -> None:
        """Start what is this one's, and return when a client could send."""
        self._conf.mkdir(parents=True, exist_ok=True)
        for part in ("broker", "namesrv"):
            (self._conf / f"logback_{part}.xml").write_text("<configuration/>")
        (self._conf / "plain_acl.yml").write_text(self._accounts)
        super().start()

    def _classpath(self) -> str:
        return builds.classpath(HERE / "rocketmq_4.xml")
