"""`ropeway log`."""

import asyncio
import json

from click.testing import CliRunner

from ropeway.gateway.cli.main import main
from ropeway.testing import running_gateway
from tests.contracts.log import TOPIC
from tests.storage.compaction.logs import closing, compacted, partition_of, send


def invoke(*args: str, code: int):
    result = CliRunner().invoke(main, args)
    assert result.exit_code == code, result.output
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
    assert f"{data}, place 0: not what was written" in problem


def test_a_directory_without_a_log_is_an_error(tmp_path):
    assert "no log in" in invoke("log", "verify", str(tmp_path), code=1).stderr


def test_the_state_of_each_nodes_log_is_shown(run):
    (row,) = json.loads(run("log", "status", "--json").stdout)
    assert (row["broker"], row["log"], row["state"]) == ("broker-0", "embedded", "ok")
    assert row["facts"]["flush"] == "async"
    assert "flush=async" in run("log", "status").stdout
