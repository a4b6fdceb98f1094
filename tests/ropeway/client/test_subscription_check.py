"""SQL conditions: brokers evaluate them, and refuse those that they cannot read."""

import pytest

from ropeway.client import Message, Producer, PushConsumer, ResponseError, Sql
from ropeway.client.message import ConsumeFrom
from ropeway.testing import Gateway
from tests.ropeway.client.scenario import CONSUMER, PATIENT_PRODUCER, Inbox, scenario


@pytest.fixture
def gateway(tmp_path):
    server = Gateway(tmp_path / "data", [])
    server.start()
    yield server
    server.kill()


def consumer(gateway: Gateway) -> PushConsumer:
    first = ConsumeFrom.FIRST_OFFSET
    return PushConsumer(
        gateway.name_server, "readers", consume_from=first, config=CONSUMER
    )


@scenario
async def test_only_what_a_condition_wants_is_received(gateway):
    async with Producer(
        gateway.name_server, "writers", config=PATIENT_PRODUCER
    ) as producer:
        for price in ("3", "12", "7", "30"):
            sent = Message("books", price.encode(), properties={"price": price})
            await producer.send(sent)
    inbox = Inbox()
    reader = consumer(gateway)
    reader.subscribe("books", Sql("price > 5 AND price < 20"), inbox)
    async with reader:
        await inbox.wait_for(b"12", b"7")
    assert sorted(inbox.bodies) == [b"12", b"7"]


@scenario
async def test_a_malformed_condition_is_refused_at_the_start(gateway):
    async with Producer(
        gateway.name_server, "writers", config=PATIENT_PRODUCER
    ) as producer:
        await producer.send(Message("books", b"x"))
    reader = consumer(gateway)
    reader.subscribe("books", Sql("price >"), Inbox())
    with pytest.raises(ResponseError, match="invalid SQL92 expression"):
        async with reader:
            raise AssertionError
