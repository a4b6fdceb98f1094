"""`ropeway tier` where the log is on Pulsar: what is offloaded, and errors."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from ropeway.gateway.cli.main import main
from ropeway.gateway.cli.offload import _in_words
from ropeway.storage.pulsar import open_log
from ropeway.storage.pulsar.offload import NOT_SET, Policy
from tests.contracts.log import begin, opened, record
from tests.gateway.cli.printed import valid
from tests.storage.pulsar.logs import settings_for

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.pulsar import Pulsar


def invoke(*args: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, args)
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize(
    ("threshold_bytes", "threshold_s", "driver", "text"),
    [
        (NOT_SET, NOT_SET, None, "nothing, unless it is asked to"),
        (5, NOT_SET, "s3", "what is more than 5 bytes of a topic, with driver s3"),
        (5, 60, None, "more than 5 bytes of a topic and what is older than 60 s"),
    ],
)
def test_a_policy_is_told_in_words(threshold_bytes, threshold_s, driver, text) -> None:
    policy = Policy("public/default", driver, threshold_bytes, threshold_s)
    told = _in_words(policy)
    assert told.startswith("public/default: Pulsar offloads ")
    assert told.endswith(text)


def test_without_pulsar_there_is_nothing_to_offload(tmp_path: Path) -> None:
    config = tmp_path / "ropeway.toml"
    config.write_text("")
    said = invoke("tier", "offload", "orders", "--config", str(config), code=2)
    assert "an embedded log has [tier] instead" in said
    assert "allowed: one" in invoke("tier", "status", code=2)


@pytest.mark.jvm
@pytest.mark.server
def test_a_pulsar_without_an_offloader_says_so(
    tmp_path: Path, pulsar: Pulsar, pulsar_namespace: str
) -> None:
    tenant, namespace = pulsar_namespace.split("/")
    config = tmp_path / "ropeway.toml"
    config.write_text(
        f'[pulsar]\nservice_url = "{pulsar.service_url}"\n'
        f'admin_url = "{pulsar.admin_url}"\n'
        f'tenant = "{tenant}"\nnamespace = "{namespace}"\n'
    )

    async def fill() -> None:
        log = await open_log(settings_for(pulsar, pulsar_namespace), prepare=True)
        await log.create("orders", [0])
        await begin(await opened(log, 0, "orders"), record("one coffee"))
        await log.close()

    asyncio.run(fill())
    # Closes the ledger that is written to.
    path = f"persistent/{pulsar_namespace}/orders-partition-0"
    pulsar.admin("PUT", f"{path}/unload")
    where = ["--config", str(config)]
    said = invoke("tier", "offload", "orders", *where, code=4)
    assert "managedLedgerOffloadDriver" in said
    assert "orders, partition 0: " in said
    printed = invoke("tier", "status", *where, "--json")
    valid(["tier", "status"], printed)
    shown = json.loads(printed)
    (one,) = (row for row in shown["partitions"] if row["topic"] == "orders")
    assert (one["offloaded"], one["status"]) == (0, "ERROR")
    assert one["error"]
    assert "nothing, unless it is asked to" in invoke("tier", "status", *where)
