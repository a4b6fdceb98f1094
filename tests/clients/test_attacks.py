"""RocketMQ's own client attacks, as a user who may do little: all is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ropeway.gateway.wire.codes import RequestCode as Code
from ropeway.gateway.wire.codes import ResponseCode
from tests.clients.harness import Session
from tests.clients.programs import JAVA_5, each
from tests.clients.test_access import PLAIN, ROOT, SECRET, USER, folder, guarded
from tests.remoting import heartbeat

if TYPE_CHECKING:
    from tests.clients.fixtures import Agents
    from tests.clients.harness import Event
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


def pulling(topic: str, group: str) -> dict[str, Any]:
    fields = {
        "consumerGroup": group,
        "topic": topic,
        "queueId": 0,
        "queueOffset": 0,
        "maxMsgNums": 32,
        "sysFlag": 0,
        "commitOffset": 0,
        "suspendTimeoutMillis": 0,
        "subscription": "*",
        "subVersion": 0,
    }
    return {"code": Code.PULL_MESSAGE, "fields": fields}


def popping(topic: str, group: str) -> dict[str, Any]:
    fields = {
        "consumerGroup": group,
        "topic": topic,
        "queueId": -1,
        "maxMsgNums": 32,
        "invisibleTime": 60_000,
        "pollTime": 0,
        "bornTime": 0,
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


@each(JAVA_5)
@pytest.mark.parametrize("account", [PLAIN, USER], ids=["ACL 1.0", "ACL 2.0"])
def test_a_user_of_few_rights_gets_in_by_no_request_of_the_java_client(
    client: Client, account: str, agents: Agents, guarded: Ropeway
) -> None:
    session = Session(agents.of(client), guarded.name_server)

    def ask(who: str, request: dict[str, Any]) -> Event:
        signing = {"access_key": who, "secret_key": SECRET}
        asked = session.call("ask", **signing, **request).finish()
        (answered,) = asked.events("answered")
        return answered

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
