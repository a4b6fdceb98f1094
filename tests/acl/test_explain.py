"""What would be decided is told, and nothing is remembered or written of it."""

import asyncio

from structlog.testing import capture_logs

from ropeway.acl import certificates
from ropeway.acl.api import Hook, Principal, Refused
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


def test_an_access_key_is_judged_by_the_hook_that_would_check_its_signature():
    chain = chained()
    by_certificate = certificates.Certificates("mtls", certificates.Options())
    chain.add("mtls", Hook(authenticator=by_certificate, find=by_certificate.find))
    signs = Scripted(identity=Refused("wrong signature"), opinion=NO, later=True)
    chain.add(
        "first",
        Hook(authenticator=signs, authorizer=signs, find={"alice": ALICE}.get),
    )
    for name in ("alice", "first:alice"):
        found = asyncio.run(chain.explain(name, NEEDS[0], HERE))
        assert found.principal == ALICE
    found = asyncio.run(chain.explain("mtls:alice", NEEDS[0], HERE))
    assert str(found.principal) == "mtls:alice"


def test_who_has_no_access_key_is_found_by_name():
    chain = chained()
    by_certificate = certificates.Certificates("mtls", certificates.Options())
    chain.add("mtls", Hook(authenticator=by_certificate, find=by_certificate.find))
    found = asyncio.run(chain.explain("alice", NEEDS[0], HERE))
    assert str(found.principal) == "mtls:alice"


def test_an_address_that_is_let_in_unasked_decides_as_when_it_sends():
    chain = chained()
    white = Principal("10.*", "first", super=True, rule="white address 10.*")
    lets_in = Scripted(identity=white)
    chain.add("first", Hook(authenticator=lets_in, find={"alice": ALICE}.get))
    found = asyncio.run(chain.explain("alice", NEEDS[0], HERE))
    assert (found.principal, found.decision.allowed) == (white, True)
