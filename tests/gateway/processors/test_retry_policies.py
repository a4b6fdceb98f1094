"""Retry policies of groups are kept and shown as they were sent."""

import msgspec
import pytest

from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import CreateGroup
from ropeway.gateway.wire.commands.group_admin import GetGroupConfig
from ropeway.routing.api import RetryPolicy
from tests.remoting import looped, running


def asking(policy: object) -> bytes:
    return msgspec.json.encode({"groupName": "g", "groupRetryPolicy": policy})


EXPONENTIAL = {
    "exponentialRetryPolicy": {"initial": 100, "max": 900, "multiplier": 3},
    "type": "EXPONENTIAL",
}
CUSTOMIZED = {"customizedRetryPolicy": {"next": [1, 2]}, "type": "CUSTOMIZED"}


@looped
@pytest.mark.parametrize(
    ("sent", "kept", "shown"),
    [
        (
            EXPONENTIAL,
            RetryPolicy(exponential=True, initial_ms=100, max_ms=900, multiplier=3),
            EXPONENTIAL,
        ),
        (CUSTOMIZED, RetryPolicy(delays_ms=(1, 2)), CUSTOMIZED),
        ({"type": "CUSTOMIZED"}, RetryPolicy(), {"type": "CUSTOMIZED"}),
        (
            {"type": None, "customizedRetryPolicy": None},
            RetryPolicy(),
            {"type": "CUSTOMIZED"},
        ),
        (
            {"type": "EXPONENTIAL"},
            RetryPolicy(exponential=True),
            {
                "exponentialRetryPolicy": {
                    "initial": 5_000,
                    "max": 7_200_000,
                    "multiplier": 2,
                },
                "type": "EXPONENTIAL",
            },
        ),
    ],
)
async def test_a_policy_is_kept_and_shown(tmp_path, sent, kept, shown):
    async with running(tmp_path) as (app, client):
        assert (await client.ask(CreateGroup(), asking(sent))).code == 0
        assert app.node.groups.get("g").retry_policy == kept
    # It is there after a restart too.
    async with running(tmp_path) as (_, client):
        answer = await client.ask(GetGroupConfig(group="g"))
        assert msgspec.json.decode(answer.body)["groupRetryPolicy"] == shown
        config = bodies.decode(bodies.GroupConfig, answer.body)
        assert (await client.ask(CreateGroup(), bodies.encode(config))).code == 0


@looped
@pytest.mark.parametrize(
    ("policy", "remark"),
    [
        ({"type": "ODD"}, "'ODD'; allowed: CUSTOMIZED, EXPONENTIAL"),
        ({"customizedRetryPolicy": {"next": []}}, "next of groupRetryPolicy is []"),
        ({"customizedRetryPolicy": {"next": [1, -1]}}, "allowed: from 0 on"),
        (
            {"type": "EXPONENTIAL", "exponentialRetryPolicy": {"multiplier": -1}},
            "multiplier of groupRetryPolicy is [-1]",
        ),
    ],
)
async def test_what_is_no_policy_is_refused(tmp_path, policy, remark):
    async with running(tmp_path) as (app, client):
        answer = await client.ask(CreateGroup(), asking(policy))
        assert answer.code == ResponseCode.INVALID_PARAMETER
        assert remark in answer.remark
        assert app.node.groups.get("g") is None


@looped
async def test_so_many_times_are_kept_and_no_more(tmp_path):
    """Each gRPC client of the group is told all of them."""
    async with running(tmp_path) as (_, client):
        for count, code in ((256, 0), (257, ResponseCode.INVALID_PARAMETER)):
            policy = {"customizedRetryPolicy": {"next": [1] * count}}
            answer = await client.ask(CreateGroup(), asking(policy))
            assert answer.code == code
