"""What the differential test of gRPC does as consumers, and what it notes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ropeway.gateway.grpc.protocol import (
    ClientType,
    Duration,
    Encoding,
    FilterExpression,
    FilterType,
    Timestamp,
)
from tests.gateway.grpc.thin import message, sends
from tests.system.grpc_side import Seen, Side, code, codes, note, seen

if TYPE_CHECKING:
    from ropeway.gateway.grpc.protocol import Message
    from tests.system.grpc_scenarios import Scenario
    from tests.system.grpc_side import Consumer


async def prepared(
    side: Side, count: int, kind: ClientType = ClientType.SIMPLE_CONSUMER
) -> Consumer:
    """A consumer of a topic that has so many messages."""
    topic = await side.topic()
    client = side.client("sender")
    for number in range(count):
        one = message(topic, message_id=f"{number}")
        assert code(await client.call("SendMessage", sends(one))) == "OK"
    return await side.consumer(topic, await side.group(topic), kind)


def handle(one: Message) -> str:
    """A message's receipt handle."""
    return str(one.system_properties.receipt_handle)


def name(one: Message) -> str:
    """A message's id."""
    return str(one.system_properties.message_id)


async def messages(side: Side) -> Seen:
    """Everything that a consumer sees of messages, the first time and again."""
    topic = await side.topic()
    client = side.client("sender")
    sent = [
        message(
            topic,
            b"body",
            message_id="full",
            tag="T",
            keys=["one", "two"],
            born_timestamp=Timestamp(seconds=1_700_000_000, nanos=123_000_000),
            born_host="somewhere",
            trace_context="00-trace-01",
            body_encoding=Encoding.IDENTITY,
            pairs={"user": "Grüße"},
        ),
        message(topic, b"\0\xff", message_id="bare"),
        message(topic, b"zipped", message_id="packed", body_encoding=Encoding.GZIP),
    ]
    for one in sent:
        assert code(await client.call("SendMessage", sends(one))) == "OK"
    reader = await side.consumer(topic, await side.group(topic))
    told: Seen = {}
    for time in ("first", "second"):
        for one in await reader.receive(len(sent)):
            note(told, f"{name(one)}, {time} time", one)
            await reader.change(handle(one), 0)
    return told


async def filters(side: Side) -> Seen:
    """Which messages come, by tag and by SQL; and filters that are none."""
    topic = await side.topic()
    client = side.client("sender")
    for number, tag in enumerate("ABA"):
        one = message(topic, message_id=f"{number}", tag=tag, pairs={"n": f"{number}"})
        await client.call("SendMessage", sends(one))
    asked = {
        "A": (FilterType.TAG, "A", 2),
        "B or C": (FilterType.TAG, "B || C", 1),
        "none of them": (FilterType.TAG, "D", 0),
        "by SQL": (FilterType.SQL, "n > 0", 2),
        "no SQL": (FilterType.SQL, "n >", 0),
        "empty SQL": (FilterType.SQL, "", 0),
        "no tag": (FilterType.TAG, "||", 0),
        "of no type": (FilterType.FILTER_TYPE_UNSPECIFIED, "A", 2),
    }
    told: Seen = {}
    for number, (what, (kind, expression, count)) in enumerate(asked.items()):
        reader = await side.consumer(topic, await side.group(topic, f"{number}-"))
        chosen = FilterExpression(type=kind, expression=expression)
        if count:
            found = await reader.receive(count, filter_expression=chosen)
            told[what] = sorted(map(name, found))
        else:
            told[what] = await reader.look(filter_expression=chosen)
    return told


async def acks(side: Side) -> Seen:
    """Acknowledgements by handles that count, and that do not."""
    reader = await prepared(side, 3)
    one, two, three = await reader.receive(3)
    parts = handle(two).split(" ")

    def forged(at: int, value: str) -> str:
        return " ".join([*parts[:at], value, *parts[at + 1 :]])

    return {
        "one": codes(await reader.ack(one)),
        "again": codes(await reader.ack(one)),
        "none": codes(await reader.ack()),
        "one that counts, one that does not": codes(await reader.ack(one, three)),
        "empty": codes(await reader.ack(two, handle="")),
        "of one word": codes(await reader.ack(two, handle="abc")),
        "cut off": codes(await reader.ack(two, handle=" ".join(parts[:5]))),
        "no number": codes(await reader.ack(two, handle=forged(1, "x"))),
        "another time": codes(await reader.ack(two, handle=forged(1, "1"))),
        "no such broker": codes(await reader.ack(two, handle=forged(5, "other"))),
        "no such queue": codes(await reader.ack(two, handle=forged(6, "99"))),
        "beyond the end": codes(await reader.ack(two, handle=forged(7, "999"))),
        "left": await reader.look(),
    }


async def changes(side: Side) -> Seen:
    """Invisible times that are changed, with all their limits."""
    reader = await prepared(side, 1)
    (one,) = await reader.receive()
    told: Seen = {}
    current = handle(one)
    for what, after_ms in (
        ("negative", -1000),
        ("13 hours", 13 * 3_600_000),
        ("a minute", 60_000),
    ):
        answer = await reader.change(current, after_ms)
        told[what] = seen(answer)
        current = answer.receipt_handle or current
    told["by the old handle"] = seen(await reader.change(handle(one), 60_000))
    told["by no handle"] = seen(await reader.change("abc", 60_000))
    told["ack by the old handle"] = codes(await reader.ack(one))
    told["ack by the new handle"] = codes(await reader.ack(one, handle=current))
    told["changed after the ack"] = seen(await reader.change(current, 60_000))
    return told


async def dead_letters(side: Side) -> Seen:
    """Messages that are sent to the dead letters, by handles good and bad."""
    reader = await prepared(side, 2)
    one, two = await reader.receive(2)
    dead = f"%DLQ%{reader.group}"
    told: Seen = {"sent": seen(await reader.bury(one))}
    await side.stored(dead, 1)
    told["by no handle"] = seen(await reader.bury(two, "abc"))
    told["ack afterwards"] = codes(await reader.ack(one))
    told["left"] = await reader.look()
    told["dead"] = await side.end(dead)
    return told


async def order(side: Side) -> Seen:
    """A group in order: what is out keeps what follows."""
    topic = await side.topic("FIFO")
    group = await side.group(topic, consume_message_orderly=True)
    client = side.client("sender")
    for number in range(3):
        one = message(topic, message_id=f"{number}", message_group="one")
        await client.call("SendMessage", sends(one))
    reader = await side.consumer(topic, group, ClientType.PUSH_CONSUMER)
    (first,) = await reader.receive(batch_size=1)
    told: Seen = {}
    note(told, "first", first)
    told["meanwhile"] = await reader.look()
    told["ack"] = codes(await reader.ack(first))
    (second,) = await reader.receive(batch_size=1)
    note(told, "second", second)
    changed = await reader.change(handle(second), 0)
    told["given back"] = seen(changed)
    again = await reader.receive(batch_size=2)
    told["again"] = [name(one) for one in again]
    told["attempt"] = again[0].system_properties.delivery_attempt
    return told


async def renewal(side: Side) -> Seen:
    """What a push consumer gets whose receipts are renewed."""
    reader = await prepared(side, 1, ClientType.PUSH_CONSUMER)
    (one,) = await reader.receive(auto_renew=True)
    return {
        "received": seen(one),
        "changed": seen(await reader.change(handle(one), 10_000)),
    }


async def limits(side: Side) -> Seen:
    """Receiving beyond what is allowed."""
    reader = await prepared(side, 1)
    told: Seen = {}

    async def look(what: str, **more: Any) -> None:
        told[what] = await reader.look(**more)

    await look("invisible for 1 s", invisible_duration=Duration(seconds=1))
    await look("invisible for 13 h", invisible_duration=Duration(seconds=46_800))
    await look("invisible for less", invisible_duration=Duration(seconds=-5))
    await look("no message", batch_size=0)
    await look("less than none", batch_size=-1)
    await look("too many", batch_size=10_000)
    return told


CONSUMING: list[Scenario] = [
    messages,
    filters,
    acks,
    changes,
    dead_letters,
    order,
    renewal,
    limits,
]
