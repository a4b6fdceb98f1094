"""Sessions end: by time, and where one principal has too many."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ropeway.acl.api import Channel, Principal, Source, Verdict
from ropeway.acl.audit import Audit
from ropeway.client.credentials import Credentials
from ropeway.gateway.http import sessions as module
from ropeway.gateway.http.attempts import FREE
from ropeway.gateway.http.params import RefusedError
from ropeway.gateway.http.sessions import IDLE_S, Sessions
from ropeway.gateway.http.state import State
from tests.remoting import looped

SOURCE = Source("10.0.0.7", Channel.HTTP)
ALICE = Credentials(access_key="alice", secret_key="s")
BOB = Credentials(access_key="bob", secret_key="s")


class Part:
    """What is started and closed with a session."""

    running = 0

    def start(self):
        Part.running += 1
        return self

    def __await__(self):
        yield from ()

    async def close(self):
        Part.running -= 1


class Everybody:
    """A guard that takes everybody's word."""

    async def identify(self, credentials, source, request):  # noqa: ARG002
        principal = Principal(credentials.access_key, "test")
        return Verdict(allowed=True, principal=principal)


async def _refused(*_: object) -> Verdict:
    return Verdict(allowed=False, remark="no")


@pytest.fixture
def clock():
    return SimpleNamespace(now_s=0.0)


@pytest.fixture
def sessions(clock, tmp_path):
    Part.running = 0

    def begin(source, principal):
        user = SimpleNamespace(source=source, principal=principal)
        return State(None, None, Part(), Part(), None, user)

    audit = Audit(600, lambda: clock.now_s, lambda: 0, tmp_path / "audit")
    yield Sessions(Everybody(), audit, begin, lambda: clock.now_s)
    audit.close()


@looped
async def test_who_looks_stays_and_who_does_not_goes(sessions, clock):
    token = await sessions.open(ALICE, SOURCE)
    clock.now_s = IDLE_S - 1
    elsewhere = Source("10.0.0.8", Channel.HTTP)
    found = await sessions.find(token, elsewhere)
    assert found.user.principal.name == "alice"
    assert found.user.source is elsewhere
    clock.now_s += IDLE_S - 1
    assert await sessions.find(token, SOURCE) is found
    clock.now_s += IDLE_S
    assert await sessions.find(token, SOURCE) is None
    assert Part.running == 0


@looped
async def test_of_too_many_of_one_its_own_that_looked_longest_ago_goes(
    sessions, monkeypatch
):
    monkeypatch.setattr(module, "MOST_OF_ONE", 2)
    bob = await sessions.open(BOB, SOURCE)
    first, second = [await sessions.open(ALICE, SOURCE) for _ in range(2)]
    await sessions.find(first, SOURCE)
    third = await sessions.open(ALICE, SOURCE)
    assert await sessions.find(second, SOURCE) is None
    for token in (first, third, bob):
        assert await sessions.find(token, SOURCE) is not None
    assert len(sessions) == 3
    await sessions.close_all()
    assert Part.running == 0


@looped
async def test_sign_ins_of_one_end_nobody_elses(sessions):
    bob = await sessions.open(BOB, SOURCE)
    for _ in range(3 * module.MOST):
        await sessions.open(ALICE, SOURCE)
    assert len(sessions) == module.MOST_OF_ONE + 1
    assert await sessions.find(bob, SOURCE) is not None


@looped
async def test_where_all_places_are_taken_who_comes_waits_and_nobody_goes(
    sessions, monkeypatch, clock
):
    monkeypatch.setattr(module, "MOST", 2)
    bob = await sessions.open(BOB, SOURCE)
    await sessions.open(ALICE, SOURCE)
    with pytest.raises(RefusedError, match="2 sessions are open") as refused:
        await sessions.open(ALICE, SOURCE)
    assert refused.value.status == 503
    assert await sessions.find(bob, SOURCE) is not None
    clock.now_s += IDLE_S
    await sessions.open(ALICE, SOURCE)
    assert len(sessions) == 1


@looped
async def test_wrong_attempts_slow_down_and_a_session_is_not_one(sessions, monkeypatch):
    token = await sessions.open(ALICE, SOURCE)
    with monkeypatch.context() as patch:
        patch.setattr(Everybody, "identify", _refused)
        for _ in range(FREE):
            with pytest.raises(RefusedError) as wrong:
                await sessions.open(ALICE, SOURCE)
            assert wrong.value.status == 401
    with pytest.raises(RefusedError, match="too many wrong") as slow:
        await sessions.open(ALICE, SOURCE)
    assert slow.value.status == 429
    for _ in range(3 * FREE):
        assert await sessions.find(token, SOURCE)
    elsewhere = Source("10.0.0.8", Channel.HTTP)
    assert await sessions.open(ALICE, elsewhere)


@looped
async def test_a_token_that_nobody_has_finds_nobody(sessions):
    await sessions.open(ALICE, SOURCE)
    for token in ("", "x", "\0", "é" * 10_000):
        assert await sessions.find(token, SOURCE) is None
    await sessions.close("x")
    assert len(sessions) == 1
    await sessions.close_all()


@looped
async def test_who_is_no_longer_known_is_out(sessions, monkeypatch):
    token = await sessions.open(ALICE, SOURCE)
    monkeypatch.setattr(Everybody, "identify", _refused)
    with pytest.raises(RefusedError, match="no"):
        await sessions.find(token, SOURCE)
    assert len(sessions) == Part.running == 0


@looped
async def test_when_rules_change_who_is_no_longer_known_is_signed_out(
    sessions, monkeypatch
):
    await sessions.open(ALICE, SOURCE)
    bob = await sessions.open(BOB, SOURCE)
    await sessions.judge()
    assert len(sessions) == 2

    async def identify(_, credentials, *__):
        return Verdict(allowed=credentials.access_key == "bob")

    monkeypatch.setattr(Everybody, "identify", identify)
    await sessions.judge()
    assert len(sessions) == 1
    assert await sessions.find(bob, SOURCE)
    assert Part.running == 2
