"""A node goes to the end of its broker's nodes when it is asked to."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.gateway.node.leadership import HandOverError, Leadership
from ropeway.routing.api import RouteStoreUnavailableError
from tests.gateway.node.test_leadership import Contest, Routes
from tests.remoting import looped


@looped
async def test_who_steps_back_gives_up_first_and_is_the_last():
    contest = Contest("us", "them", "others")
    leadership = contest.leadership
    await leadership.settle()
    await leadership.step_back("them")
    assert contest.book == ["+a", "+b", "-b", "-a"]
    order = [one.node for one in contest.routes.brokers["broker-0"]]
    assert order == ["them", "others", "us"]
    assert (await leadership.settle()).node == "them"
    contest.routes.choose("us")
    assert await leadership.settle() is None
    await leadership.close()


@looped
async def test_a_slave_that_steps_back_makes_room_for_the_next():
    contest = Contest("them", "us", "others")
    await contest.leadership.step_back()
    order = [one.node for one in contest.routes.brokers["broker-0"]]
    assert order == ["them", "others", "us"]
    assert contest.book == []
    await contest.leadership.close()


@looped
async def test_who_cannot_be_replaced_goes_on():
    contest = Contest("us", "them")
    leadership = contest.leadership
    await leadership.settle()
    with pytest.raises(HandOverError, match=r"the next node .* is them, not others"):
        await leadership.step_back("others")
    assert leadership.leads
    contest.routes.fails = True
    with pytest.raises(RouteStoreUnavailableError):
        await leadership.step_back()
    assert await leadership.settle() is None
    assert contest.book == ["+a", "+b", "-b", "-a", "+a", "+b"]
    contest.routes.choose("us")
    with pytest.raises(HandOverError, match="has no node but us"):
        await leadership.step_back()
    await leadership.close()


@looped
async def test_a_node_of_an_embedded_log_never_steps_back():
    alone = Leadership("broker-0", "us", Routes("us", "them"), [])
    await alone.lead()
    with pytest.raises(HandOverError, match="embedded log"):
        await alone.step_back()
    assert alone.leads


@looped
async def test_who_waits_for_a_node_to_step_back_is_told_that_it_ends():
    contest = Contest("us", "them")
    await contest.leadership.settle()
    asked = asyncio.create_task(contest.leadership.step_back())
    await asyncio.sleep(0)
    await contest.leadership.close()
    with pytest.raises(HandOverError, match="ends"):
        await asked
