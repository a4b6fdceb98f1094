"""`ropeway log`."""

import asyncio
import json
import shutil
import time

import pytest
from click.testing import CliRunner

from ropeway.gateway.cli.main import main
from ropeway.testing import running_gateway
from tests.contracts.log import TOPIC
from tests.gateway.cli.printed import valid
from tests.storage.compaction.logs import closing, compacted, partition_of, send


def until(condition):
    """Look until it is so: the timer's thread follows the log."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def invoke(*args: str, code: int):
    result = CliRunner().invoke(main, args)
    assert result.exit_code == code, result.output
    if "--json" in args:
        valid(args, result.stdout)
    return result


def test_a_whole_log_has_no_problem_and_a_damaged_one_names_the_place(tmp_path):
    data = tmp_path / "data"
    with running_gateway(data) as gateway:
        sent = ["produce", "orders", "one coffee", "--name-server", gateway.name_server]
        invoke(*sent, code=0)
        in_use = invoke("log", "verify", str(data), code=1)
        assert f"is in use by process {gateway.pid}" in in_use.stderr
    whole = invoke("log", "verify", str(data), code=0)
    assert whole.stdout.endswith("1 messages, 0 problems\n")
    assert (
        json.loads(invoke("log", "verify", str(data / "log"), "--json", code=0).stdout)[
            "problems"
        ]
        == []
    )
    (segment,) = (
        path for path in (data / "log").iterdir() if b"one coffee" in path.read_bytes()
    )
    content = segment.read_bytes()
    segment.write_bytes(content.replace(b"one coffee", b"two coffee"))
    damaged = invoke("log", "verify", str(data), code=1)
    assert str(segment) in damaged.stdout
    assert damaged.stderr == f"Error: the log in {data} is damaged\n"


def test_compacted_files_are_looked_at_too(tmp_path):
    async def fill() -> None:
        async with closing(compacted(tmp_path)) as log:
            partition = await partition_of(log)
            await send(partition, ["a=1", "b=2", "a=3"])
            await log.compact(TOPIC)

    asyncio.run(fill())
    whole = invoke("log", "verify", str(tmp_path), code=0)
    assert whole.stdout.endswith("1 compacted files, 2 messages, 0 problems\n")
    (data,) = (tmp_path / "compaction").rglob("*.data")
    data.write_bytes(data.read_bytes().replace(b"a=3", b"a=4"))
    damaged = invoke("log", "verify", str(tmp_path), "--json", code=1)
    (problem,) = json.loads(damaged.stdout)["compacted"]["problems"]
    assert f"{data}: block 0 at 0: not what was written" in problem


def test_a_directory_without_a_log_is_an_error(tmp_path):
    assert "no log in" in invoke("log", "verify", str(tmp_path), code=1).stderr


def test_the_state_of_each_nodes_log_is_shown(run):
    (row,) = json.loads(run("log", "status", "--json").stdout)
    assert (row["broker"], row["log"], row["state"]) == ("broker-0", "embedded", "ok")
    assert row["facts"]["flush"] == "async"
    assert "flush=async" in run("log", "status").stdout


@pytest.mark.slow
def test_stores_ahead_of_a_log_that_a_backup_has_restored_are_named_and_made_again(
    tmp_path,
):
    data, backup = tmp_path / "data", tmp_path / "backup"

    def send_timed(gateway, number):
        sent = ["produce", "orders", f"{number}", "--delay", "3600"]
        invoke(*sent, "--name-server", gateway.name_server, code=0)

    def waiting(gateway):
        listed = ["timer", "list", "--json", "--name-server", gateway.name_server]
        return len(json.loads(invoke(*listed, code=0).stdout))

    with running_gateway(data) as gateway:
        send_timed(gateway, 1)
        until(lambda: waiting(gateway) == 1)
    shutil.copytree(data / "log", backup)
    with running_gateway(data) as gateway:
        send_timed(gateway, 2)
        until(lambda: waiting(gateway) == 2)
    assert "ahead" not in invoke("log", "verify", str(data), code=0).stdout
    shutil.rmtree(data / "log")
    shutil.copytree(backup, data / "log")
    shown = invoke("log", "verify", str(data), code=0).stdout
    assert f"{data / 'timer'} is ahead of the log: it has followed " in shown
    assert "to 2, and the log ends at 1; it is made again" in shown
    as_json = json.loads(invoke("log", "verify", str(data), "--json", code=0).stdout)
    (line,) = as_json["stores"]
    assert line in shown
    with running_gateway(data) as gateway:
        until(lambda: waiting(gateway) == 1)
    assert "ahead" not in invoke("log", "verify", str(data), code=0).stdout
