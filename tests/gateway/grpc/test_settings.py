"""Settings: completed as RocketMQ's proxy does, and refused where they say nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.grpc import settings
from ropeway.gateway.grpc.protocol import ClientType, Code, Settings
from ropeway.gateway.grpc.statuses import RefusedError
from ropeway.routing.api import Group, RetryPolicy
from tests.gateway.grpc.thin import consumer, in_order, producer, serving
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_producers_learn_limits_and_how_to_try_again(tmp_path: Path):
    async with serving(tmp_path) as (_, client):
        stream, answer = await client.telemetry(producer("orders"))
        given = answer.settings
        assert given.publishing.max_body_size == 4 << 20
        assert given.publishing.validate_message_type
        assert given.backoff_policy.max_attempts == 3
        back_off = given.backoff_policy.exponential_backoff
        assert (back_off.initial.nanos, back_off.max.seconds) == (10_000_000, 1)
        assert back_off.multiplier == 2
        assert not given.metric.on
        stream.cancel()


@looped
async def test_consumers_learn_what_their_group_is(tmp_path: Path):
    async with serving(tmp_path) as (app, client):
        await in_order(app, "ordered", retry_max_times=4)
        policy = RetryPolicy(exponential=True)
        await app.node.groups.put(Group(name="patient", retry_policy=policy))
        stream, answer = await client.telemetry(consumer("orders", "ordered"))
        given = answer.settings
        assert given.subscription.fifo
        assert given.subscription.receive_batch_size == 32
        assert given.subscription.long_polling_timeout.seconds == 20
        assert given.backoff_policy.max_attempts == 5
        assert len(given.backoff_policy.customized_backoff.next) == 18
        stream.cancel()
        stream, answer = await client.telemetry(consumer("orders", "patient"))
        back_off = answer.settings.backoff_policy.exponential_backoff
        assert back_off.initial.seconds == policy.initial_ms // 1000
        stream.cancel()


def test_settings_that_say_nothing_are_refused():
    with pytest.raises(RefusedError) as refused:
        settings.check(Settings(client_type=ClientType.PRODUCER))
    assert refused.value.code == Code.BAD_REQUEST


@pytest.mark.parametrize(
    "pairs",
    [{"1": "x"}, {"a" * 65: "x"}, {"a": "x" * 257}, {f"a{n}": "" for n in range(33)}],
)
def test_client_properties_have_limits(pairs):
    wanted = producer("orders")
    wanted.client_properties.update(pairs)
    with pytest.raises(RefusedError) as refused:
        settings.check(wanted)
    assert refused.value.code == Code.INVALID_CLIENT_PROPERTIES


def test_client_properties_within_the_limits_are_fine():
    wanted = producer("orders")
    wanted.client_properties.update({"app.name-1": "shop"})
    settings.check(wanted)
