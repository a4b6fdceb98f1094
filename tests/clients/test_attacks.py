"""RocketMQ's own client attacks, as a user who may do little: all is refused."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.gateway.wire.codes import RequestCode as Code
from ropeway.gateway.wire.codes import ResponseCode
from tests.audited import lines
from tests.clients.harness import Session
from tests.clients.programs import JAVA_5, each
from tests.clients.test_access import (
    LEAVING,
    PLAIN,
    ROOT,
    SECRET,
    USER,
    accounts,
    folder,
    guarded,
    until,
)
from tests.promptness import Starved
from tests.requests import heartbeat

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.clients.fixtures import Agents
    from tests.clients.harness import Call, Event
    from tests.clients.programs import Client
    from tests.system.ropeway import Ropeway

__all__ = ["folder", "guarded"]

DENIED = ResponseCode.NO_PERMISSION
NOTHING_YET = (
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)
OWNED = "client-of-root"
SYSTEM_TOPICS = (
    "SCHEDULE_TOPIC_XXXX",
    "rmq_sys_wheel_timer",
    "TRANS_CHECK_MAX_TIME_TOPIC",
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "rmq_sys_REVIVE_LOG_DefaultCluster",
    "RMQ_SYS_TRACE_TOPIC",
)


HOLD_MS = 120_000
"""For so long a pull or a pop waits."""
HOLDING = 2 | 4
"""A pull that may wait, and brings its subscription."""
LOOK_MS, PROMISED_MS = 1000, 1000
MUCH = 3
"""So much more than a thread of the test's a busy server may want for a processor."""


def pulling(topic: str, group: str, wait_ms: int = 0) -> dict[str, Any]:
    fields = {
        "consumerGroup": group,
        "topic": topic,
        "queueId": 0,
        "queueOffset": 0,
        "maxMsgNums": 32,
        "sysFlag": HOLDING if wait_ms else 0,
        "commitOffset": 0,
        "suspendTimeoutMillis": wait_ms,
        "subscription": "*",
        "subVersion": 0,
    }
    return {"code": Code.PULL_MESSAGE, "fields": fields}


def popping(topic: str, group: str, wait_ms: int = 0) -> dict[str, Any]:
    fields = {
        "consumerGroup": group,
        "topic": topic,
        "queueId": -1,
        "maxMsgNums": 32,
        "invisibleTime": 60_000,
        "pollTime": wait_ms,
        "bornTime": int(time.time() * 1000) if wait_ms else 0,
        "initMode": 0,
        "expType": "TAG",
        "exp": "*",
        "order": "false",
    }
    return {"code": Code.POP_MESSAGE, "fields": fields}


def replying() -> dict[str, Any]:
    pairs = {"CORRELATION_ID": "guessed", "REPLY_TO_CLIENT": OWNED, "TTL": "9000"}
    fields = {
        "producerGroup": "mine",
        "topic": "DefaultCluster_REPLY_TOPIC",
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": 4,
        "queueId": 0,
        "sysFlag": 0,
        "bornTimestamp": 1,
        "flag": 0,
        "reconsumeTimes": 0,
        "properties": "".join(f"{name}\1{value}\2" for name, value in pairs.items()),
    }
    return {"code": Code.SEND_REPLY_MESSAGE, "fields": fields, "body": "forged"}


def beating(*given: Any, **more: Any) -> dict[str, Any]:
    return {"code": Code.HEART_BEAT, "body": heartbeat(*given, **more).decode()}


ATTACKS = {
    "consumes as a denied group": beating("thief", "others", topic="orders"),
    "takes a client id": beating(OWNED, "mine", topic="orders"),
    "pulls a denied group's retries": pulling("%RETRY%others", "mine"),
    "pulls them as that group": pulling("%RETRY%others", "others"),
    "pops a denied group's retries": popping("%RETRY%others", "mine"),
    "pops a denied topic's retries": popping("%RETRY%mine_hidden", "mine"),
    "pops them by version 2": popping("%RETRY%mine+hidden", "mine"),
    "replies to who waits for nothing": replying(),
    **{f"pulls {topic}": pulling(topic, "mine") for topic in SYSTEM_TOPICS},
    **{f"pops {topic}": popping(topic, "mine") for topic in SYSTEM_TOPICS},
}


ACL_1_AND_2 = pytest.mark.parametrize(
    "account", [PLAIN, USER], ids=["ACL 1.0", "ACL 2.0"]
)


class Asking:
    """Asks as one user or another, each on a connection of its own."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def start(self, who: str, request: dict[str, Any]) -> Call:
        signing = {"access_key": who, "secret_key": SECRET}
        return self.session.call("ask", **signing, **request)

    def __call__(self, who: str, request: dict[str, Any]) -> Event:
        (answered,) = self.start(who, request).finish().events("answered")
        return answered


@pytest.fixture
def asking(agents: Agents, guarded: Ropeway) -> Callable[[Client], Asking]:
    """A client's agent, asking the gateway that guards."""
    return lambda client: Asking(Session(agents.of(client), guarded.name_server))


@each(JAVA_5)
@ACL_1_AND_2
def test_a_user_of_few_rights_gets_in_by_no_request_of_the_java_client(
    client: Client, account: str, asking: Callable[[Client], Asking]
) -> None:
    ask = asking(client)
    assert ask(ROOT, beating(OWNED, producers=("hidden",)))["code"] == 0
    # What it may do is done: the attacks are refused for nothing but its rights.
    assert ask(account, beating(account, "mine", topic="orders"))["code"] == 0
    pulled = ask(account, pulling("orders", "mine"))
    assert pulled["code"] in NOTHING_YET, pulled
    got_in = {}
    for name, request in ATTACKS.items():
        answer = ask(account, request)
        refusals = (
            (DENIED,) if "replies" not in name else (DENIED, ResponseCode.SYSTEM_ERROR)
        )
        if answer["code"] not in refusals:
            got_in[name] = answer
    assert got_in == {}


@each(JAVA_5)
@ACL_1_AND_2
def test_who_may_not_send_is_asked_about_no_transaction_as_a_producer_of_its_group(
    client: Client, account: str, asking: Callable[[Client], Asking]
) -> None:
    ask = asking(client)
    bank = f"bank-of-{account}"
    before = ask(account, beating("thief", producers=(bank,)))["checked"]
    bodies = [f"half {number}" for number in range(4)]
    signing = {"access_key": ROOT, "secret_key": SECRET}
    producer = ask.session.start(
        "transact",
        topic="hidden",
        group=bank,
        messages=[
            {"body": body, "properties": {"check": "rollback"}} for body in bodies
        ],
        **signing,
    )
    # Each message is asked about, and only there where it was sent.
    producer.wait(
        lambda found: set(bodies) <= {one["body"] for one in found}, "checked"
    )
    producer.stop()
    # Who may send is asked that way, in turn with who sent what is not decided yet.
    rightful = beating("rightful", producers=(bank,))
    known = ask(ROOT, rightful)["checked"]
    undecided = ask.session.start(
        "transact",
        topic="hidden",
        group=bank,
        messages=[{"body": "undecided"}],
        **signing,
    )
    until(lambda: ask(ROOT, rightful)["checked"] > known)
    undecided.stop()
    assert ask(account, beating("thief", producers=(bank,)))["checked"] == before


def told(folder: Path, who: str, since_ms: float) -> list[Event]:
    """A change of somebody's rules since a time, and what was refused them by it."""
    later = [one for one in lines(folder, "audit") if one["time_ms"] >= int(since_ms)]
    changed = next(one for one in later if one["event"] == "changed")
    refusals = [
        one
        for one in later
        if one["event"] == "refused"
        and who in (one.get("claimed"), one.get("principal", "").partition(":")[2])
    ]
    return [changed, *sorted(refusals, key=lambda one: one["request"])]


@each(JAVA_5)
@ACL_1_AND_2
def test_who_loses_its_rights_is_told_while_it_waits_by_the_java_client(
    client: Client, account: str, asking: Callable[[Client], Asking], folder: Path
) -> None:
    ask, leaving = asking(client), LEAVING[account]
    held = [
        ask.start(leaving, pulling("shown", "mine", HOLD_MS)),
        ask.start(leaving, popping("shown", "mine", HOLD_MS)),
    ]
    for _ in range(3):
        assert ask(leaving, beating(leaving, "mine", topic="shown"))["code"] == 0
    assert not any(one.events("answered") for one in held)
    starved, began_ms = Starved(), time.time() * 1000
    if account == PLAIN:
        (folder / "plain_acl.yml").write_text(accounts(PLAIN))
    else:
        gone = {"subject": f"User:{leaving}"}
        deleted = ask(ROOT, {"code": Code.AUTH_DELETE_ACL, "fields": gone})
        assert deleted["code"] == 0, deleted
    for one in held:
        (answered,) = one.wait_for(1, "answered")
        assert answered["code"] == DENIED, answered
    late_ms = starved.end() * 1000
    # By the server's own clock, but for the time in which it had no processor.
    changed, *refusals = told(folder, leaving, began_ms)
    assert [one["request"] for one in refusals] == [
        "11 PULL_MESSAGE",
        "200050 POP_MESSAGE",
    ]
    most_ms = PROMISED_MS + MUCH * late_ms
    assert refusals[-1]["time_ms"] - changed["time_ms"] <= most_ms
    # The file is looked at each second.
    assert changed["time_ms"] - began_ms <= LOOK_MS + most_ms
    assert ask(leaving, pulling("shown", "mine"))["code"] == DENIED
