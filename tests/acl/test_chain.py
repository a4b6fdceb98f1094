"""The guard asks hooks in their order, remembers, forgets, and lets no failure in."""

import asyncio
import gc

import pytest
from structlog.testing import capture_logs

from ropeway.acl.api import (
    Action,
    Credentials,
    Decision,
    Hook,
    Principal,
    Refused,
    Verdict,
)
from ropeway.acl.audit import Audit
from ropeway.acl.chain import MAX_NAME, Chain
from ropeway.common.eager import begin
from tests.acl.hooks import HERE, topic

ALICE = Principal("alice", "first")
BOSS = Principal("boss", "first", super=True, rule="the list of supers")
NEEDS = (topic("orders", Action.PUB),)
YES = Decision(allowed=True, rule="yes")
NO = Decision(allowed=False, rule="a secret rule", remark="ask your operator")
SAID = Credentials(access_key="alice", signature="s")


class Scripted:
    """A hook that answers what it is told, and counts."""

    def __init__(self, *, identity=None, opinion=None, later=False) -> None:
        self.identity, self.opinion, self.later = identity, opinion, later
        self.asked = 0

    def _answer(self, value):
        self.asked += 1

        def say():
            if isinstance(value, Exception):
                raise value
            return value

        if not self.later:
            return say()

        async def wait():
            await asyncio.sleep(0)
            return say()

        return wait()

    def authenticate(self, *_):
        return self._answer(self.identity)

    def authorize(self, *_):
        return self._answer(self.opinion)


def chained(*hooks, now=lambda: 0.0, **more) -> Chain:
    chain = Chain(Audit(600, lambda: 0.0, lambda: 0), now, **more)
    for number, one in enumerate(hooks):
        chain.add(str(number), Hook(authenticator=one, authorizer=one))
    return chain


def settled(asked) -> Verdict:
    answer = begin(asked)
    if isinstance(answer, Verdict):
        return answer

    async def wait():
        return await answer

    return asyncio.run(wait())


async def admitted(chain) -> Verdict:
    """Ask both questions, as is done for each request."""
    identified = await chain.identify(SAID, HERE, "r")
    if not identified.allowed:
        return identified
    return await chain.permit(identified.principal, NEEDS, HERE, "r")


@pytest.mark.parametrize("later", [False, True])
def test_the_first_that_knows_somebody_decides(later):
    hooks = [
        Scripted(later=later),
        Scripted(identity=ALICE, later=later),
        Scripted(identity=Refused("never asked")),
    ]
    assert settled(chained(*hooks).identify(SAID, HERE, "r")).principal is ALICE
    assert hooks[2].asked == 0


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("wrong", [None, Refused("bad"), ValueError("bug")])
def test_who_is_not_known_is_refused(later, wrong):
    with capture_logs() as logs:
        verdict = settled(
            chained(Scripted(identity=wrong, later=later)).identify(SAID, HERE, "r")
        )
    assert not verdict.allowed
    assert "bug" not in verdict.remark
    assert "bad" not in verdict.remark
    assert any(one["event"] == "refused" for one in logs)


@pytest.mark.parametrize("later", [False, True])
def test_a_request_is_admitted_where_it_is_known_and_permitted(later):
    def allowed(identity, opinion):
        chain = chained(Scripted(identity=identity, opinion=opinion, later=later))
        with capture_logs() as logs:
            verdict = settled(admitted(chain))
            again = settled(admitted(chain))
        assert again.allowed == verdict.allowed == (not logs)
        return verdict.allowed

    assert allowed(ALICE, YES)
    assert not allowed(ALICE, NO)
    assert not allowed(None, YES)
    assert not allowed(Refused("bad"), YES)


@pytest.mark.parametrize("later", [False, True])
def test_what_is_admitted_in_a_dry_run_is_written_all_the_same(later):
    for identity, opinion in ((None, YES), (ALICE, NO)):
        hook = Scripted(identity=identity, opinion=opinion, later=later)
        with capture_logs() as logs:
            chain = chained(hook, dry_run=True)
            assert settled(admitted(chain)).allowed
        assert [one["event"] for one in logs] == ["would be refused"]


def test_a_client_cannot_tell_a_wrong_name_from_a_wrong_secret():
    remarks = {
        settled(chained(Scripted(identity=one)).identify(SAID, HERE, "r")).remark
        for one in (None, Refused("wrong signature"))
    }
    assert len(remarks) == 1


@pytest.mark.parametrize("later", [False, True])
def test_the_first_opinion_counts_and_none_at_all_denies(later):
    quiet = Scripted(later=later)
    no, yes = Scripted(opinion=NO, later=later), Scripted(opinion=YES, later=later)
    assert not settled(chained(quiet, no, yes).permit(ALICE, NEEDS, HERE, "r")).allowed
    assert settled(chained(quiet, yes, no).permit(ALICE, NEEDS, HERE, "r")).allowed
    assert not settled(chained(quiet).permit(ALICE, NEEDS, HERE, "r")).allowed
    assert not settled(chained().permit(ALICE, NEEDS, HERE, "r")).allowed


@pytest.mark.parametrize("later", [False, True])
def test_all_needs_must_be_met(later):
    class Orders(Scripted):
        def authorize(self, _, need, __):
            return self._answer(YES if need.resource.name == "orders" else NO)

    needs = (*NEEDS, topic("secret", Action.SUB))
    chain = chained(Orders(later=later))
    verdict = settled(chain.permit(ALICE, needs, HERE, "r"))
    assert not verdict.allowed
    assert "alice may not Sub Topic:secret from 192.0.2.7" in verdict.remark
    assert "ask your operator" in verdict.remark
    assert "a secret rule" not in verdict.remark
    assert settled(chain.permit(ALICE, (), HERE, "r")).allowed


@pytest.mark.parametrize("later", [False, True])
def test_a_hook_that_fails_refuses(later):
    chain = chained(
        Scripted(opinion=ValueError("secret"), later=later),
        Scripted(opinion=YES, later=later),
    )
    with capture_logs() as logs:
        verdict = settled(chain.permit(ALICE, NEEDS, HERE, "r"))
    assert not verdict.allowed
    assert "secret" not in verdict.remark
    assert any(one["event"] == "a hook failed" for one in logs)


def test_a_decision_that_took_time_is_remembered():
    hook = Scripted(opinion=YES, later=True)
    chain = chained(hook)
    for _ in range(2):
        assert settled(chain.permit(ALICE, NEEDS, HERE, "r")).allowed
    assert hook.asked == 1


def test_decisions_are_remembered_until_rules_change():
    hook = Scripted(opinion=YES)
    chain = chained(hook)
    for _ in range(3):
        settled(chain.permit(ALICE, NEEDS, HERE, "r"))
    assert hook.asked == 1
    hook.opinion = NO
    chain.forget()
    assert not settled(chain.permit(ALICE, NEEDS, HERE, "r")).allowed


def test_decisions_are_remembered_for_as_long_as_they_say():
    now = [0.0]
    hook = Scripted(opinion=Decision(allowed=True, rule="", valid_s=60))
    chain = chained(hook, now=lambda: now[0])
    for at in (0, 59, 61):
        now[0] = at
        settled(chain.permit(ALICE, NEEDS, HERE, "r"))
    assert hook.asked == 2
    hook.opinion = Decision(allowed=True, rule="", valid_s=0)
    chain.forget()
    for _ in range(2):
        settled(chain.permit(ALICE, NEEDS, HERE, "r"))
    assert (hook.asked, chain.remembered) == (4, 0)


def test_an_answer_of_before_a_change_is_not_remembered():
    hook = Scripted(opinion=YES, later=True)
    chain = chained(hook)

    async def main():
        answer = begin(chain.permit(ALICE, NEEDS, HERE, "r"))
        chain.forget()
        assert (await answer).allowed

    asyncio.run(main())
    assert chain.remembered == 0


def test_memory_is_bounded_in_number_and_in_length():
    chain = chained(Scripted(opinion=YES), max_remembered=10)
    for number in range(50):
        settled(chain.permit(ALICE, (topic(f"t{number}", Action.PUB),), HERE, "r"))
    assert chain.remembered == 10
    # A hundred thousand make no collection of garbage longer.
    gc.collect()
    assert not any(map(gc.is_tracked, chain._remembered))
    assert not any(map(gc.is_tracked, chain._remembered.values()))
    # Those are the last ones.
    hook = chain._authorizers[0][1]
    for number in range(40, 50):
        settled(chain.permit(ALICE, (topic(f"t{number}", Action.PUB),), HERE, "r"))
    assert hook.asked == 50
    chain.forget()
    settled(chain.permit(ALICE, (topic("x" * (MAX_NAME + 1), Action.PUB),), HERE, "r"))
    assert chain.remembered == 0


def test_who_watches_is_told_of_changes():
    chain = chained(Scripted())
    told = []
    for number in range(2):
        chain.watch(lambda number=number: told.append(number))
    chain.forget()
    assert told == [0, 1]


def test_one_principals_decisions_are_not_anothers():
    class ByName(Scripted):
        def authorize(self, principal, *_):
            return YES if principal == ALICE else NO

    chain = chained(ByName())
    assert settled(chain.permit(ALICE, NEEDS, HERE, "r")).allowed
    for other in (
        Principal("alice", "second"),
        Principal("alice", "first", namespace="n"),
        Principal("alice", "first", roles=("r",)),
    ):
        assert not settled(chain.permit(other, NEEDS, HERE, "r")).allowed


def test_a_superuser_may_do_everything_and_nobody_is_asked():
    hook = Scripted(opinion=NO)
    root = Principal("root", "first", super=True)
    assert settled(chained(hook).permit(root, NEEDS, HERE, "r")).allowed
    assert hook.asked == 0


def test_a_dry_run_refuses_nothing_and_writes_everything():
    chain = chained(Scripted(opinion=NO), dry_run=True)
    with capture_logs() as logs:
        identified = settled(chain.identify(SAID, HERE, "r"))
        assert identified.allowed
        assert settled(chain.permit(identified.principal, NEEDS, HERE, "r")).allowed
        assert settled(chain.permit(ALICE, NEEDS, HERE, "r")).allowed
    assert [one["event"] for one in logs] == ["would be refused"] * 2


def test_every_hook_is_closed_also_after_one_that_fails():
    closed = []

    async def fail():
        raise ValueError

    async def close():
        closed.append(1)

    chain = chained()
    chain.add("a", Hook(close=fail))
    chain.add("b", Hook(close=close))
    asyncio.run(chain.close())
    assert closed == [1]


def test_the_audit_log_has_no_token_but_how_it_begins():
    shown = Credentials(access_key="eyJhbGciOiJIUzI1NiJ9." + "secret" * 40)
    for wrong in (None, Refused("ended")):
        with capture_logs() as logs:
            settled(chained(Scripted(identity=wrong)).identify(shown, HERE, "r"))
        (line,) = (one for one in logs if one["event"] == "refused")
        assert line["claimed"] == "eyJhbGci... of 261 characters"
        assert (line["address"], line["channel"]) == (HERE.address, "remoting")
        assert line["request"] == "r"
        assert "secret" not in str(logs)


def test_a_refusal_is_written_with_all_that_is_known_of_it():
    known = {
        "request": "SEND",
        "principal": str(ALICE),
        "resource": str(NEEDS[0].resource),
        "address": HERE.address,
        "channel": "remoting",
    }
    for opinion, more in (
        (NO, {"action": Action.PUB, "rule": "a secret rule"}),
        (
            Decision(allowed=False, rule="a rule", reason="Pulsar is down"),
            {"action": Action.PUB, "rule": "a rule", "reason": "Pulsar is down"},
        ),
        (ValueError("bug"), {"reason": "hook 0 failed"}),
    ):
        with capture_logs() as logs:
            chain = chained(Scripted(opinion=opinion))
            verdict = settled(chain.permit(ALICE, NEEDS, HERE, "SEND"))
        assert (verdict.allowed, verdict.principal) == (False, ALICE)
        assert verdict.remark
        assert "bug" not in verdict.remark
        (line,) = (one for one in logs if one["event"] == "refused")
        assert known | more | {"event": "refused", "log_level": "warning"} == line


def test_who_is_permitted_is_named_with_the_verdict():
    for who, needs in ((ALICE, NEEDS), (ALICE, ()), (BOSS, NEEDS)):
        chain = chained(Scripted(opinion=YES))
        for _ in range(2):
            verdict = settled(chain.permit(who, needs, HERE, "r"))
            assert (verdict.allowed, verdict.principal) == (True, who)


def test_a_super_user_is_explained_by_what_makes_it_one():
    chain = chained()
    chain.add("first", Hook(find=lambda _: BOSS))
    found = asyncio.run(chain.explain("boss", NEEDS[0], HERE))
    assert (found.principal, found.decision.allowed) == (BOSS, True)
    assert found.decision.rule == "the list of supers is super"


@pytest.mark.parametrize("later", [False, True])
def test_who_shows_nothing_is_refused_as_such_and_not_as_a_stranger(later):
    said = []
    for shown in (Credentials(), SAID):
        with capture_logs() as logs:
            chain = chained(Scripted(later=later))
            verdict = settled(chain.identify(shown, HERE, "r"))
        (line,) = (one for one in logs if one["event"] == "refused")
        said.append((verdict.allowed, verdict.remark, line["reason"]))
    nothing, stranger = said
    assert nothing[0] is stranger[0] is False
    assert "no access key or token was given" in nothing[1]
    assert nothing[2] == "no credentials"
    assert stranger[1:] != nothing[1:]
