"""Receipts that are renewed as long as their client is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ropeway.acl.api import Principal
from ropeway.gateway.grpc import renewals
from ropeway.gateway.grpc.protocol import Code
from ropeway.gateway.grpc.receipt_handles import handle
from ropeway.gateway.grpc.renewals import AHEAD_MS, INVISIBLE_MS, LONGEST_MS, Renewals
from ropeway.gateway.grpc.statuses import RefusedError
from tests.remoting import looped

if TYPE_CHECKING:
    import pytest

FIRST = "0 1 60000 0 0 broker-0 0 5"


class Client:
    """A push consumer."""

    closed = False
    client_id = "thin"
    principal: Principal | None = None


class Rig:
    """Renewals with a clock that a test moves, and a broker that notes requests."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ms = 0
        self.asked: list[tuple[str, int]] = []
        self.refuses = False
        self.session: Any = Client()
        self.renewals = Renewals(lambda: self.now_ms)
        monkeypatch.setattr(renewals.receipt_handles, "keep", self._keep)
        self.renewals.begin(self.session, "readers", "orders", handle(FIRST))

    async def _keep(self, _caller, of, _topic, _group, invisible_ms):
        if self.refuses:
            raise RefusedError(Code.INVALID_RECEIPT_HANDLE, "it is done")
        self.asked.append((of.text, invisible_ms))
        return handle(f"0 {1 + len(self.asked)} 60000 0 0 broker-0 0 5")

    async def at(self, now_ms: int) -> None:
        self.now_ms = now_ms
        await self.renewals.look()


@looped
async def test_a_receipt_is_renewed_before_its_time_is_over(monkeypatch):
    rig = Rig(monkeypatch)
    due_ms = INVISIBLE_MS - AHEAD_MS
    await rig.at(due_ms - 1)
    assert rig.asked == []
    await rig.at(due_ms)
    await rig.at(due_ms + 1)
    assert rig.asked == [(FIRST, INVISIBLE_MS)]
    await rig.at(2 * due_ms)
    assert [text.split()[1] for text, _ in rig.asked] == ["1", "2"]
    # The client knows the first one, and what counts is the last.
    assert rig.renewals.end("readers", FIRST).split()[1] == "3"
    assert rig.renewals.end("readers", FIRST) == FIRST
    assert len(rig.renewals) == 0


@looped
async def test_what_a_client_had_that_has_gone_comes_again_soon(monkeypatch):
    rig = Rig(monkeypatch)
    rig.session.closed = True
    await rig.at(1)
    assert rig.asked == [(FIRST, renewals.GIVE_BACK_MS)]
    assert len(rig.renewals) == 0


@looped
async def test_nothing_is_renewed_for_ever(monkeypatch):
    rig = Rig(monkeypatch)
    await rig.at(LONGEST_MS + 2)
    assert rig.asked == [(FIRST, renewals.GIVE_BACK_MS)]
    assert len(rig.renewals) == 0


@looped
async def test_what_cannot_be_renewed_is_let_go(monkeypatch):
    rig = Rig(monkeypatch)
    rig.refuses = True
    await rig.at(INVISIBLE_MS)
    assert len(rig.renewals) == 0


@looped
async def test_what_is_done_is_not_renewed(monkeypatch):
    rig = Rig(monkeypatch)
    assert rig.renewals.end("readers", FIRST) == FIRST
    await rig.at(INVISIBLE_MS)
    assert rig.asked == []


@looped
async def test_clients_that_go_give_back_nothing_of_others(monkeypatch):
    rig = Rig(monkeypatch)
    other: Any = Client()
    second = FIRST.replace("5", "6")
    rig.renewals.begin(other, "readers", "orders", handle(second))
    other.closed = True
    await rig.at(1)
    assert rig.asked == [(second, renewals.GIVE_BACK_MS)]
    assert rig.renewals.end("readers", FIRST) == FIRST


@looped
async def test_what_one_principal_has_no_other_one_ends(monkeypatch):
    rig = Rig(monkeypatch)
    rig.session.principal = Principal("alice", "users")
    for stranger in (Principal("bob", "users"), None):
        assert rig.renewals.end("readers", FIRST, stranger) == FIRST
        assert len(rig.renewals) == 1
    await rig.at(INVISIBLE_MS - AHEAD_MS)
    bob = Principal("bob", "users")
    assert rig.renewals.end("readers", FIRST, bob) == FIRST
    alice = Principal("alice", "users", rule="another password")
    assert rig.renewals.end("readers", FIRST, alice).split()[1] == "2"
    assert len(rig.renewals) == 0
