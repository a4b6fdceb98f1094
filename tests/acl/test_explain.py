"""What would be decided is told, and nothing is remembered or written of it."""

import asyncio

from structlog.testing import capture_logs

from ropeway.acl.api import Hook, Principal
from tests.acl.hooks import HERE
from tests.acl.test_chain import ALICE, NEEDS, NO, Scripted, chained


def test_decisions_are_explained_without_a_trace():
    chain = chained()
    hook = Scripted(opinion=NO, later=True)
    chain.add(
        "first",
        Hook(
            authorizer=hook,
            find=lambda name: ALICE if name == "alice" else None,
        ),
    )
    with capture_logs() as logs:
        found = asyncio.run(chain.explain("first:alice", NEEDS[0], HERE))
        unknown = asyncio.run(chain.explain("bob", NEEDS[0], HERE))
    assert (found.hook, found.decision, found.principal) == ("first", NO, ALICE)
    assert (unknown.principal, unknown.decision.allowed) == (None, False)
    assert (logs, chain.remembered) == ([], 0)


def test_who_is_super_may_and_who_has_no_rule_may_not():
    chain = chained()
    root = Principal("root", "first", super=True, rule="account root")
    known = {"alice": ALICE, "root": root}
    chain.add("first", Hook(find=known.get))
    found = asyncio.run(chain.explain("root", NEEDS[0], HERE))
    assert (found.principal, found.decision.allowed) == (root, True)
    assert found.decision.rule == "account root is super"
    found = asyncio.run(chain.explain("alice", NEEDS[0], HERE))
    assert found.decision.rule == "no hook has a rule for it"
