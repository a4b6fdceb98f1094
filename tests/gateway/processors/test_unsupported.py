"""Every code of RocketMQ is handled, or refused with a reason, and never both."""

import pytest

import ropeway.gateway.processors.all
import ropeway.gateway.wire.commands
from ropeway.gateway.processors.registry import PROCESSORS
from ropeway.gateway.processors.unsupported import _FAMILIES, REASONS
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.header import ROWS
from tests.remoting import looped, running

assert ropeway.gateway.processors.all
assert ropeway.gateway.wire.commands


@pytest.mark.rule(
    "processors.md", "each code that RocketMQ knows is handled or in that list"
)
def test_every_code_is_handled_or_listed_with_a_reason():
    assert set(RequestCode) == set(PROCESSORS) | set(REASONS)


def test_every_handled_command_is_declared():
    assert set(PROCESSORS) <= set(ROWS)


def test_no_command_is_both_handled_and_listed():
    assert not set(PROCESSORS) & set(REASONS)


def test_no_command_is_listed_with_two_reasons():
    assert sum(map(len, _FAMILIES.values())) == len(REASONS)


@looped
async def test_every_listed_command_is_refused_with_its_reason(tmp_path):
    async with running(tmp_path) as (_, client):
        for code, reason in REASONS.items():
            answer = await client.ask(code, fields={})
            assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            name = RequestCode(code).name
            assert answer.remark == (
                f"request type {int(code)} {name} not supported: {reason}"
            )


@pytest.mark.rule(
    "README.md", "A request gets exactly one answer, unless it is one-way."
)
@looped
@pytest.mark.parametrize("body", [b"", b"{}", b"\0"], ids=["none", "json", "other"])
async def test_every_code_is_answered_even_where_the_request_says_nothing(
    tmp_path, body
):
    async with running(tmp_path) as (_, client):
        for code in RequestCode:
            answer = await client.ask(code, body, fields={})
            refused = answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            assert refused == (code in REASONS), code.name
            assert answer.code == ResponseCode.SUCCESS or answer.remark, code.name


@looped
async def test_a_code_that_nobody_knows_is_refused_too(tmp_path):
    async with running(tmp_path) as (_, client):
        answer = await client.ask(9999, fields={})
        assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
        assert answer.remark == "request type 9999 not supported"
