"""What another package brings works, with nothing of Ropeway changed for it."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.send import SendReply
from ropeway.testing import GatewayStartError, running_gateway
from tests.gateway.cli.test_serve import refused_here
from tests.remoting import connect, looped
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from ropeway.testing import Gateway

POINTS = """\
[ropeway.logs]
outside = outsider:open_log

[ropeway.routes]
outside = outsider:open_routes

[ropeway.acl]
guests = outsider:open_hook

[ropeway.processors]
outside = outsider
"""
SETTINGS = """\
routes = "outside://{kept}/routes.db"

[limits]
send_wait_ms = 60_000

[log]
url = "outside://{kept}/log"

[acl]
hooks = ["guests"]
"""


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the package, as an installation leaves it."""
    folder = tmp_path / "packages"
    about = folder / "outsider-1.0.dist-info"
    about.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("outsider.py"), folder)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: outsider\n")
    (about / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "ropeway.toml"
    path.write_text(SETTINGS.format(kept=tmp_path / "kept"))
    return path


@pytest.mark.usefixtures("packages")
def test_a_log_routes_a_hook_and_a_request_come_from_elsewhere(
    tmp_path: Path, settings: Path
):
    @looped
    async def talk(gateway: Gateway, before: int) -> None:
        host, port = gateway.address.split(":")
        async with connect(SimpleNamespace(host=host, port=int(port))) as client:
            sent = await client.ask(sending("orders"), b"x")
            assert sent.read(SendReply).queue_offset == before
            pulled = await client.ask(pulling("orders", queue_offset=before))
            assert [one.body for one in pulled.messages()] == [b"x"]
            refused = await client.ask(sending("cellar"), b"x")
            assert refused.code == ResponseCode.NO_PERMISSION
            counted = await client.ask(31_000, fields={"prefix": "ord"})
            assert (counted.code, counted.fields["count"]) == (0, "1")
            lacking = await client.ask(31_000)
            assert lacking.code == ResponseCode.SYSTEM_ERROR
            assert "COUNT_TOPICS: field prefix is missing" in lacking.remark

    data = tmp_path / "data"
    with running_gateway(data, ("--config", str(settings))) as gateway:
        talk(gateway, 0)
        gateway.restart()
        talk(gateway, 1)
    assert [*(tmp_path / "kept" / "log").iterdir()]
    assert not (data / "log").exists()
    assert not (data / "routes.db").exists()


def test_what_a_package_lacks_is_said_at_the_start(packages: Path, settings: Path):
    (packages / "outsider.py").write_text("import nowhere_to_be_had\n")
    with (
        pytest.raises(GatewayStartError) as failed,
        running_gateway(packages / "data", ("--config", str(settings))),
    ):
        pass
    printed = str(failed.value)
    assert "Error: outsider brings 'outside' for ropeway.processors" in printed
    assert "needs nowhere_to_be_had; install that, or remove outsider" in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ('routes = "redis://h"', "routes has 'redis'; allowed: zookeeper"),
        ('[log]\nurl = "redis://h"', "log.url has 'redis'; allowed: none is installed"),
        (
            '[log]\nurl = "redis://h"\n[tier]\nurl = "file:///x"',
            "tier is given, and log.url is redis://h; allowed: one of them",
        ),
        (
            '[log]\nurl = "redis://h"\n[pulsar]',
            "pulsar is given, and log.url is redis://h; allowed: one of them",
        ),
    ],
)
def test_what_nothing_brings_is_a_complaint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings, complaint
):
    path = tmp_path / "ropeway.toml"
    path.write_text(settings)
    code, line = refused_here(monkeypatch, tmp_path / "data", "--config", str(path))
    assert code == 2
    assert complaint in line
