"""A producer keeps its order and its entries, whatever happens to its connections."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.storage.pulsar.commands import (
    Access,
    CloseProducer,
    Connect,
    OpenProducer,
    ProducerSuccess,
    Refused,
    Send,
    SendError,
    SendReceipt,
)
from ropeway.storage.pulsar.entry import Position
from ropeway.storage.pulsar.errors import (
    FencedError,
    NotAllowedError,
    PulsarError,
    PulsarUnavailableError,
    TopicNotFoundError,
)
from ropeway.storage.pulsar.frames import command_frame
from ropeway.storage.pulsar.send_entry import EntryMetadata
from tests.remoting import looped
from tests.storage.pulsar.broker import TOPIC
from tests.storage.pulsar.producing import sending


@looped
async def test_entries_are_acknowledged_in_order_with_their_positions():
    async with sending() as one:
        producer = await one.open()
        assert (producer.last_sequence_id, producer.topic_epoch) == (-1, 3)
        one.send(0, 5, 9)
        assert (producer.pending, producer.pending_bytes, one.done) == (3, 30, [])
        await one.finished(3)
        assert one.done == [(n, Position(7, i), None) for i, n in enumerate([0, 5, 9])]
        assert (producer.pending, producer.pending_bytes) == (0, 0)


@looped
async def test_a_broker_is_asked_only_while_this_producer_may_write():
    """Also at the next try: much may have changed since the first one."""
    refusals: list[PulsarError] = [
        *(FencedError("another leads"), PulsarUnavailableError("another may lead")),
    ]

    def permit() -> None:
        if refusals:
            raise refusals.pop()

    async with sending() as one:
        with pytest.raises(FencedError, match="another leads"):
            await one.open(permit=permit)
        assert (refusals, one.broker.of(OpenProducer)) == ([], [])
        refusals.append(PulsarUnavailableError("another may lead"))
        await one.open(permit=permit)
        assert len(one.broker.of(OpenProducer)) == 1


@looped
async def test_a_sequence_id_that_the_broker_would_drop_is_refused():
    async with sending() as one:
        one.broker.answers[OpenProducer] = lambda _, asked: ProducerSuccess(
            asked.request_id, "w", last_sequence_id=41
        )
        assert (await one.open()).last_sequence_id == 41
        with pytest.raises(ValueError, match="sequence id 41; allowed: from 42"):
            one.send(41)
        one.send(42)
        with pytest.raises(ValueError, match="sequence id 42; allowed: from 43"):
            one.send(42)
        await one.finished(1)


@looped
async def test_an_entry_that_is_too_long_is_refused_before_it_is_sent():
    async with sending() as one:
        producer = await one.open()
        with pytest.raises(ValueError, match=r"entry of \d+ \+ 999 bytes; allowed"):
            producer.send([bytes(999)], 1, lambda *_: None, EntryMetadata(1))
        one.send(1)
        await one.finished(1)


@looped
async def test_what_an_earlier_try_stored_is_done_without_a_position():
    async with sending() as one:
        usual = one.broker.answers[Send]

        def stores_and_dies(peer, send):
            one.broker.answers[Send] = usual
            usual(peer, send)
            peer.transport.abort()

        one.broker.answers[Send] = stores_and_dies
        await one.open()
        one.send(1)
        await one.finished(1)
        one.send(2)
        await one.finished(2)
        assert one.done == [(1, None, None), (2, Position(7, 1), None)]


@looped
async def test_a_repeat_that_we_never_sent_is_the_entry_of_somebody_else():
    async with sending() as one:
        await one.open()
        one.broker.last_sequence_id = 5
        one.send(3)
        await one.finished(1)
        assert [type(error) for _, _, error in one.done] == [FencedError]
        assert str(await one.loss()) == f"{TOPIC} has sequence id 3 of another w"


@looped
async def test_a_topic_with_entries_of_another_by_our_name_is_not_written_to():
    async with sending() as one:
        await one.open()
        one.send(3)
        await one.finished(1)
        one.broker.last_sequence_id = 4
        one.broker.peers[0].tell(CloseProducer(1, -1))
        assert str(await one.loss()) == f"{TOPIC} has sequence id 4 of another w"


@looped
async def test_what_is_not_acknowledged_is_sent_again_with_the_same_epoch():
    async with sending() as one:
        usual = one.broker.answers[Send]

        def third_kills(peer, send):
            if send.sequence_id == 3:
                one.broker.answers[Send] = usual
                peer.transport.abort()
                return None
            return usual(peer, send)

        one.broker.answers[Send] = third_kills
        await one.open()
        one.send(1, 2, 3, 4, 5)
        assert await one.finished(5) == [1, 2, 3, 4, 5]
        first, second = one.broker.of(OpenProducer)
        assert (first.topic_epoch, second.topic_epoch) == (None, 3)
        assert first.user_provided_producer_name
        assert second.producer_name == "w"
        again = [send.sequence_id for send in one.broker.of(Send)][-3:]
        assert again == [3, 4, 5]
        assert one.lost == []


@looped
async def test_entries_sent_while_there_is_no_connection_follow_in_order():
    async with sending() as one:
        await one.open()
        one.broker.refuse(OpenProducer, 6, times=3)
        one.broker.peers[0].tell(CloseProducer(1, -1))
        await one.broker.wait(OpenProducer, 2)
        one.send(1, 2, 3)
        assert await one.finished(3) == [1, 2, 3]
        assert len(one.broker.of(Connect)) == 1
        ids = [each.producer_id for each in one.broker.of(OpenProducer)]
        assert len(set(ids)) == len(ids)


@looped
async def test_an_entry_that_was_not_stored_is_sent_again_with_those_behind_it():
    async with sending() as one:
        usual = one.broker.answers[Send]

        def fails(peer, send):
            # As all behind a failed one do, until the producer opens again.
            if send.producer_id == 1 and send.sequence_id >= 2:
                return SendError(send.producer_id, send.sequence_id, 2, "no bookie")
            return usual(peer, send)

        one.broker.answers[Send] = fails
        await one.open()
        one.send(1, 2, 3)
        assert await one.finished(3) == [1, 2, 3]
        assert [send.sequence_id for send in one.broker.of(Send)] == [1, 2, 3, 2, 3]
        assert len(one.broker.of(CloseProducer)) == 1


@pytest.mark.parametrize(
    ("code", "kind"), [(15, PulsarError), (22, NotAllowedError), (9, PulsarError)]
)
@looped
async def test_an_entry_that_is_refused_for_good_ends_the_producer(code, kind):
    async with sending() as one:
        one.broker.answers[Send] = lambda _, send: SendError(
            send.producer_id, send.sequence_id, code, "never"
        )
        await one.open()
        one.send(1, 2)
        await one.finished(2)
        assert [type(error) for _, _, error in one.done] == [kind, kind]
        assert len(one.lost) == 1
        assert (one.producer.pending, one.producer.pending_bytes) == (0, 0)


@looped
async def test_a_fenced_producer_sends_nothing_any_more():
    async with sending() as one:
        one.broker.answers.pop(Send)
        await one.open()
        one.send(1, 2)
        one.broker.refuse(OpenProducer, 25)
        await one.broker.wait(Send, 2)
        one.broker.peers[0].tell(CloseProducer(1, -1))
        await one.finished(2)
        one.send(3)
        assert len(one.done) == 2, "done is never called from inside"
        await one.finished(3)
        assert {type(error) for _, _, error in one.done} == {FencedError}
        assert [type(error) for error in one.lost] == [FencedError]
        assert len(one.broker.of(Send)) == 2
        with pytest.raises(FencedError):
            await one.producer.confirm()


@looped
async def test_a_topic_that_forgot_what_it_acknowledged_is_not_written_to():
    async with sending() as one:
        await one.open()
        one.send(7)
        await one.finished(1)
        one.broker.last_sequence_id = -1
        one.broker.peers[0].tell(CloseProducer(1, -1))
        error = await one.loss()
        assert isinstance(error, TopicNotFoundError)
        assert "knows sequence id -1 as the last of w, and acknowledged 7" in str(error)


@looped
async def test_a_shared_producer_goes_on_where_repeats_are_not_dropped():
    async with sending() as one:
        await one.open(access=Access.SHARED)
        one.send(7)
        await one.finished(1)
        one.broker.last_sequence_id = -1
        one.broker.peers[0].tell(CloseProducer(1, -1))
        one.send(8)
        assert await one.finished(2) == [7, 8]
        assert one.lost == []


@looped
async def test_a_receipt_for_an_entry_that_is_not_first_makes_all_be_sent_again():
    async with sending() as one:
        usual = one.broker.answers[Send]

        def skips(peer, send):
            one.broker.answers[Send] = usual
            return SendReceipt(send.producer_id, send.sequence_id + 1)

        one.broker.answers[Send] = skips
        await one.open()
        one.send(1)
        assert await one.finished(1) == [1]
        assert len(one.broker.of(Connect)) == 2


@looped
async def test_a_receipt_that_came_before_is_passed_over():
    async with sending() as one:
        usual = one.broker.answers[Send]

        def twice(peer, send):
            receipt = usual(peer, send)
            peer.tell(receipt)
            return receipt

        one.broker.answers[Send] = twice
        await one.open()
        one.send(1)
        await one.finished(1)
        one.broker.answers[Send] = usual
        one.send(2)
        assert await one.finished(2) == [1, 2]


@looped
async def test_a_close_that_overtakes_the_opening_is_noticed():
    async with sending() as one:
        usual = one.broker.answers[OpenProducer]

        def closes(peer, asked):
            one.broker.answers[OpenProducer] = usual
            answer = usual(peer, asked)
            close = CloseProducer(asked.producer_id, -1)
            peer.transport.write(command_frame(answer) + command_frame(close))

        one.broker.answers[OpenProducer] = closes
        await one.open()
        one.send(1)
        await one.finished(1)
        assert len(one.broker.of(OpenProducer)) == 2


@looped
async def test_confirming_asks_the_broker_where_nothing_is_on_its_way():
    async with sending() as one:
        producer = await one.open()
        await producer.confirm()
        first, second = one.broker.of(OpenProducer)
        assert (second.producer_id, second.topic_epoch) == (first.producer_id, 3)


@looped
async def test_an_entry_sent_after_the_call_confirms_once_it_is_acknowledged():
    async with sending() as one:
        store = one.broker.answers.pop(Send)
        producer = await one.open()
        one.send(1)
        confirming = asyncio.create_task(producer.confirm())
        await one.broker.wait(Send, 1)
        one.send(2)
        sends = await one.broker.wait(Send, 2)
        assert not confirming.done()
        for send in sends:
            one.broker.peers[0].tell(store(one.broker.peers[0], send))
        await confirming
        assert len(one.broker.of(OpenProducer)) == 1


@looped
async def test_an_entry_sent_before_the_call_confirms_nothing():
    async with sending() as one:
        store = one.broker.answers.pop(Send)
        producer = await one.open()
        one.send(1)
        confirming = asyncio.create_task(producer.confirm())
        (send,) = await one.broker.wait(Send, 1)
        one.broker.peers[0].tell(store(one.broker.peers[0], send))
        await confirming
        assert len(one.broker.of(OpenProducer)) == 2


@looped
async def test_confirming_finds_out_that_the_producer_is_fenced():
    async with sending() as one:
        producer = await one.open()
        one.broker.refuse(OpenProducer, 25)
        with pytest.raises(FencedError):
            await producer.confirm()
        assert [type(error) for error in one.lost] == [FencedError]


@looped
async def test_confirming_finds_what_another_wrote_while_we_were_out():
    async with sending() as one:
        producer = await one.open()
        one.send(3)
        await one.finished(1)
        one.broker.last_sequence_id = 4
        with pytest.raises(FencedError, match="has sequence id 4 of another w"):
            await producer.confirm()
        assert [type(error) for error in one.lost] == [FencedError]


@looped
async def test_confirming_ends_in_time_where_no_broker_answers():
    async with sending() as one:
        producer = await one.open()
        one.broker.answers[OpenProducer] = lambda _, asked: Refused(
            asked.request_id, 6, "starting"
        )
        with pytest.raises(PulsarUnavailableError, match="ServiceNotReady: starting"):
            await producer.confirm()
        one.client.request_timeout_s = 0.2
        with pytest.raises(PulsarUnavailableError, match=r"not confirmed in 0\.2 s"):
            await producer.confirm()


@looped
async def test_closing_ends_what_is_pending_and_is_not_told_as_a_loss():
    async with sending() as one:
        one.broker.answers.pop(Send)
        producer = await one.open()
        one.send(1)
        await producer.close()
        await producer.close()
        assert [type(error) for _, _, error in one.done] == [PulsarUnavailableError]
        assert one.lost == []
        assert len(one.broker.of(CloseProducer)) == 1
        with pytest.raises(PulsarUnavailableError, match="the producer was closed"):
            await producer.confirm()
