"""What is said of a cluster, and what to do about it."""

import msgspec
import pytest

from ropeway.client import Admin, admin_doctor
from ropeway.client.admin_nodes import Node
from tests.ropeway.client.scenario import PATIENT, scenario
from tests.ropeway.client.test_admin_nodes import stands

WELL = Node(
    broker="x",
    cluster="c",
    rank=0,
    address="h:1",
    status=stands("a", "x", leads=True),
    clock_ms=3,
    round_trip_ms=2,
)


def changed(**status) -> Node:
    assert WELL.status is not None
    return msgspec.structs.replace(
        WELL, status=msgspec.structs.replace(WELL.status, **status)
    )


def states(node: Node) -> dict[str, str]:
    return {one.check: one.state for one in admin_doctor.of_node(node)}


@scenario
async def test_a_running_node_is_well(ropeway_gateway):
    async with Admin(ropeway_gateway.name_server, config=PATIENT) as admin:
        found = await admin_doctor.examine(admin)
    wrong = [one for one in found if one.state == "problem" and one.check != "disk"]
    assert wrong == []
    assert {"name-server", "node", "clock", "log", "disk", "routes", "leader"} <= {
        one.check for one in found
    }


@scenario
async def test_without_a_name_server_that_is_all_there_is_to_say():
    async with Admin("127.0.0.1:1") as admin:
        (found,) = await admin_doctor.examine(admin)
    assert (found.check, found.state) == ("name-server", "problem")
    assert "127.0.0.1:1" in found.text
    assert "--name-server" in found.advice


@pytest.mark.parametrize(
    ("clock_ms", "state"),
    [
        (0, "ok"),
        (-499, "ok"),
        (600, "warning"),
        (-5_100, "problem"),
        (86_400_000, "problem"),
    ],
)
def test_a_clock_that_is_off_is_told_with_how_much(clock_ms, state):
    node = msgspec.structs.replace(WELL, clock_ms=clock_ms)
    (clock,) = (one for one in admin_doctor.of_node(node) if one.check == "clock")
    assert clock.state == state
    assert f"{abs(clock_ms)} ms" in clock.text
    assert bool(clock.advice) == (state != "ok")


def test_what_may_be_the_networks_delay_is_not_the_clocks_fault():
    late = msgspec.structs.replace(WELL, clock_ms=900, round_trip_ms=1_000)
    assert states(late)["clock"] == "ok"


@pytest.mark.parametrize(
    ("status", "check", "state"),
    [
        ({"overdue_ms": 700}, "log", "problem"),
        ({"routes_held": False}, "routes", "problem"),
        (
            {"log_facts": {"disk_bytes": "100", "disk_free_bytes": "4"}},
            "disk",
            "problem",
        ),
        (
            {"log_facts": {"disk_bytes": "100", "disk_free_bytes": "9"}},
            "disk",
            "warning",
        ),
        ({"log_facts": {"disk_bytes": "100", "disk_free_bytes": "90"}}, "disk", "ok"),
    ],
)
def test_each_fault_of_a_node_has_its_check(status, check, state):
    assert states(WELL) == dict.fromkeys(("node", "clock", "log", "routes"), "ok")
    assert states(changed(**status)) == {**states(WELL), check: state}


def test_a_node_that_does_not_answer_is_a_problem_and_a_foreign_one_is_not():
    silent = msgspec.structs.replace(WELL, status=None, trouble="h:1: no connection")
    assert states(silent) == {"node": "problem"}
    foreign = msgspec.structs.replace(silent, trouble="is no node of Ropeway")
    assert states(foreign) == {"node": "warning"}


def test_a_broker_that_is_being_drained_is_told():
    status = msgspec.structs.replace(WELL.status, drained=True)
    drained = msgspec.structs.replace(WELL, status=status)
    found = {one.check: one for one in admin_doctor.of_broker([drained])}
    assert found["broker"].state == "warning"
    assert "ropeway broker undrain" in found["broker"].advice
    assert "broker" not in {one.check for one in admin_doctor.of_broker([WELL])}


def test_a_broker_needs_a_leader_and_a_second_node():
    found = {one.check: one for one in admin_doctor.of_broker([WELL])}
    assert found["leader"].state == "ok"
    assert found["standby"].state == "warning"
    (leader,) = admin_doctor.of_broker([changed(leads=False), changed(leads=False)])
    assert (leader.check, leader.state) == ("leader", "problem")


@pytest.mark.parametrize(
    ("before", "after", "state", "words"),
    [
        (0, 0, "ok", "is current"),
        (500, 0, "ok", "is current"),
        (500, 700, "ok", "is current"),
        (5000, 4000, "ok", "4000 records behind the log, and catches up"),
        (5000, 5000, "warning", "5000 records behind the log, 0 more"),
        (5000, 7000, "warning", "7000 records behind the log, 2000 more"),
    ],
)
def test_a_store_that_falls_behind_the_log_is_told(before, after, state, words):
    found = admin_doctor.of_derived_store("node a of b", "timers", before, after)
    assert (found.check, found.state) == ("derived-store", state)
    assert words in found.text
