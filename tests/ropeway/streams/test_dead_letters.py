"""What a step failed at is a message, with the reason."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.client import BulkReader
from ropeway.gateway.wire.properties import parse
from ropeway.spark.options import read_options
from ropeway.streams.dead_letters import ERROR, LATE, DeadLetters, LateLetters
from ropeway.streams.records import StepError
from tests.ropeway.client.scenario import PATIENT

if TYPE_CHECKING:
    from tests.spark_session import Topics


def test_letters_have_the_body_as_it_came_and_say_why(ropeway_topics: Topics) -> None:
    topic = ropeway_topics.make(1)
    options = read_options({"nameServer": ropeway_topics.name_server})
    failed = [
        ((None, b"\xff", 5), StepError("step 'a' failed:\nline \x01\x02 two")),
        (("key", {"value": 1}, 6), StepError("step 'b' failed")),
    ]
    DeadLetters(options, topic)(failed)

    async def read() -> list[tuple[bytes, str | None]]:
        async with BulkReader(
            ropeway_topics.name_server, "tests", config=PATIENT
        ) as reader:
            (queue,) = await reader.queues(topic)
            return [
                (body, parse(properties.decode()).get(ERROR))
                async for columns in reader.read(queue, 0, 2)
                for body, properties in zip(
                    columns.bodies, columns.properties, strict=True
                )
            ]

    assert asyncio.run(read()) == [
        (b"\xff", "step 'a' failed: line    two"),
        (b"{'value': 1}", "step 'b' failed"),
    ]


def test_late_records_are_json_where_it_has_them() -> None:
    letters = LateLetters(read_options({"nameServer": "127.0.0.1:9"}), "late")
    assert letters.body((("k", 1), {"n": 2}, 5)) == b'[["k", 1], {"n": 2}, 5]'
    assert letters.body(("k", {1, 2}, 5)) == b'["k", "{1, 2}", 5]'
    assert letters.body(("k", {(1, 2): 3}, 5)) == b"('k', {(1, 2): 3}, 5)"
    letter = letters._letter(("k", 1, 5), "step 'sum' is at 10")
    assert letter.properties == {LATE: "step 'sum' is at 10"}


def test_an_empty_message_has_a_letter_too() -> None:
    letters = DeadLetters(read_options({"nameServer": "127.0.0.1:9"}), "dead")
    assert letters.body((None, b"", 5)) == b"b''"
