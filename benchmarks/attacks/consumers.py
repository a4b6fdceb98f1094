"""Attacks of consumers: what looks at much, waits in number, or names very much."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from benchmarks import requests
from benchmarks.attacks.attack import Attack, Target
from benchmarks.attacks.brokers import many, send
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.commands.pop import PopMessage
from ropeway.gateway.wire.commands.pull import SUBSCRIPTION_FLAG, SUSPEND_FLAG
from ropeway.gateway.wire.properties import dump
from tests.requests import pulling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.gateway.wire.commands.pull import PullMessage
    from ropeway.gateway.wire.commands.send import SendMessage

_BACKLOG = 100_000
_IN_BATCH = 1000
_GROUPS = 1024
_SQL = "SQL92"
LONG = " OR ".join(f"a{number} = 'x'" for number in range(900))
"""An expression that looks up as much as it may."""


def _entry() -> bytes:
    text = dump({"UNIQ_KEY": "7F" * 16, "a": "1", "TAGS": "TagA"}).encode()
    size = 20 + 1 + 2 + len(text)
    return (
        size.to_bytes(4, "big")
        + bytes(12)
        + (1).to_bytes(4, "big")
        + b"x"
        + len(text).to_bytes(2, "big")
        + text
    )


def _backlog(target: Target) -> None:
    """Send what is looked through later."""
    body = _entry() * _IN_BATCH
    frame = target.request(_batch(), body)
    with requests.connect(target.port) as connection:
        for _ in range(_BACKLOG // _IN_BATCH):
            code = requests.ask(connection, frame)
            assert code == 0, code


def _batch() -> SendMessage:
    return send("backlog", batch=True)


def pull(topic: str = "backlog", **changes: Any) -> PullMessage:
    """The header of a pull."""
    return pulling(topic, **changes)


def pop(expression: str, kind: str = _SQL, **changes: object) -> PopMessage:
    """The header of a pop."""
    fields: dict[str, object] = {
        "consumer_group": "poppers",
        "topic": "backlog",
        "queue_id": -1,
        "max_msg_nums": 32,
        "invisible_time": 60_000,
        "poll_time": 0,
        "born_time": 0,
        "init_mode": 0,
        "exp": expression,
        "exp_type": kind,
        **changes,
    }
    return PopMessage(**fields)  # type: ignore[arg-type]


def _pulls(target: Target, _: int) -> Iterator[bytes]:
    asked = pull(subscription=LONG, expression_type=_SQL, max_msg_nums=1024, bulk=True)
    return many(target.request(asked), 1)


def _pulls_by_tag(target: Target, _: int) -> Iterator[bytes]:
    tags = "||".join(f"tag{number}" for number in range(1000))
    return many(
        target.request(pull(subscription=tags, max_msg_nums=1024, bulk=True)), 1
    )


def _pops(target: Target, _: int) -> Iterator[bytes]:
    return many(target.request(pop(LONG)), 1)


def _pops_by_tag(target: Target, number: int) -> Iterator[bytes]:
    asked = pop("nobody", "TAG", consumer_group=f"poppers-{number}")
    return many(target.request(asked), 1)


def _new_expressions(target: Target, number: int) -> Iterator[bytes]:
    for count in itertools.count():
        text = f"n{number} = {count} OR {LONG}"
        wanted = bodies.SubscriptionData("backlog", text, expression_type=_SQL)
        body = bodies.encode(
            bodies.CheckClientBody("me", "readers", subscription_data=wanted)
        )
        yield target.request(RequestCode.CHECK_CLIENT_CONFIG, body)


def _large_pulls(target: Target, _: int) -> Iterator[bytes]:
    return many(target.request(pull(max_msg_nums=1024, bulk=True)))


def _held(target: Target, _: int) -> Iterator[bytes]:
    asked = pull(
        topic="waited",
        sys_flag=SUBSCRIPTION_FLAG | SUSPEND_FLAG,
        suspend_timeout_millis=100_000,
    )
    woken = target.request(send("waited"), b"x")
    return itertools.cycle([woken, target.request(asked) * 1000])


def _heartbeats(target: Target, number: int) -> Iterator[bytes]:
    for count in itertools.count():
        wanted = [bodies.SubscriptionData(f"t{one}", "*") for one in range(4)]
        body = bodies.encode(
            bodies.HeartbeatData(
                client_id=f"me-{number}-{count}",
                consumer_data_set=[
                    bodies.ConsumerData(
                        f"g{count % 50}-{one}", subscription_data_set=wanted
                    )
                    for one in range(_GROUPS)
                ],
            )
        )
        yield target.request(RequestCode.HEART_BEAT, body)


def _same_heartbeats(target: Target, number: int) -> Iterator[bytes]:
    yield from itertools.repeat(next(_heartbeats(target, number)))


def _json(target: Target, _: int) -> Iterator[bytes]:
    body = b'{"clientID":"me","x":[' + b"{}," * 340_000 + b"{}]}"
    return many(target.request(RequestCode.HEART_BEAT, body))


def _locks(target: Target, number: int) -> Iterator[bytes]:
    queues = [bodies.MessageQueue("broker-0", one, "backlog") for one in range(8192)]
    body = bodies.encode(bodies.LockBatchBody("readers", f"me{number}", queues))
    return many(target.request(RequestCode.LOCK_BATCH_MQ, body))


def _registered(target: Target) -> None:
    _backlog(target)
    wanted = [bodies.SubscriptionData("backlog", "*")]
    body = bodies.encode(
        bodies.HeartbeatData(
            client_id="many",
            consumer_data_set=[
                bodies.ConsumerData(f"group-{one}", subscription_data_set=wanted)
                for one in range(_GROUPS)
            ],
        )
    )
    with requests.connect(target.port) as connection:
        requests.ask(connection, target.request(RequestCode.HEART_BEAT, body))


def _asking(code: RequestCode, **fields: str):  # type: ignore[no-untyped-def]
    def stream(target: Target, _: int) -> Iterator[bytes]:
        return many(target.request(code, fields=fields))

    return stream


def _keys(target: Target, _: int) -> Iterator[bytes]:
    fields = {
        "topic": "backlog",
        "key": "7F" * 16,
        "maxNum": "100000",
        "beginTimestamp": "0",
        "endTimestamp": "99999999999999",
        "_UNIQUE_KEY_QUERY": "true",
    }
    return many(target.request(RequestCode.QUERY_MESSAGE, fields=fields))


_STATS = _asking(RequestCode.GET_CONSUME_STATS, consumerGroup="group-1")
_TOPIC_STATS = _asking(RequestCode.GET_TOPIC_STATS_INFO, topic="backlog")
_WHO = _asking(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, topic="backlog")
_ROUTES = _asking(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic="backlog")

ATTACKS = (
    Attack("pulls by SQL92 that match nothing", _pulls, 32, prepare=_backlog),
    Attack("pulls by tags that match nothing", _pulls_by_tag, 32, prepare=_backlog),
    Attack("pops by SQL92 that match nothing", _pops, 32, prepare=_backlog),
    Attack("pops by tags that match nothing", _pops_by_tag, 32, prepare=_backlog),
    Attack("ever new SQL92 expressions", _new_expressions, 16),
    Attack("large pulls", _large_pulls, 16, prepare=_backlog),
    Attack(
        "answers that are not read", _large_pulls, 64, prepare=_backlog, reads=False
    ),
    Attack("waiting pulls without end", _held, 16),
    Attack("heartbeats of ever new groups", _heartbeats, 4),
    Attack("the same heartbeat of 1024 groups", _same_heartbeats, 16),
    Attack("heartbeats of 1 MiB of JSON", _json, 16),
    Attack("locks of 8192 queues", _locks, 16),
    Attack("consume stats of many groups", _STATS, 16, prepare=_registered),
    Attack("topic stats", _TOPIC_STATS, 16, prepare=_registered),
    Attack("who consumes a topic", _WHO, 16, prepare=_registered),
    Attack("routes", _ROUTES, 16, prepare=_registered),
    Attack("queries by a key that all have", _keys, 16, prepare=_backlog),
)
