"""Rules are administered and explained over the wire."""

import msgspec
import pytest

from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.auth import (
    CreateAcl,
    DeleteAcl,
    GetAcl,
    ListAcls,
    UpdateAcl,
)
from ropeway.gateway.wire.commands.explain import ExplainAccess
from tests.guarded import ALICE, NOBODY, ROOT, allow, ask, guarded
from tests.remoting import looped, running
from tests.requests import sending

DENIED = ResponseCode.NO_PERMISSION
SUBJECT = f"User:{NOBODY}"


def acl(*entries, policy_type="Custom", subject=SUBJECT) -> bytes:
    policies = [{"policyType": policy_type, "entries": list(entries)}]
    return msgspec.json.encode({"subject": subject, "policies": policies})


def entry(resource="Topic:orders", decision="Allow", **more):
    return {
        "resource": resource,
        "actions": ["Pub", "Sub"],
        "sourceIps": ["127.0.0.0/8"],
        "decision": decision,
        **more,
    }


@looped
async def test_rules_are_made_used_changed_and_deleted(tmp_path):
    async with guarded(tmp_path) as (_, client):

        async def send():
            return (await ask(client, NOBODY, sending("orders"), b"x")).code

        assert await send() == DENIED
        made = await ask(client, ROOT, CreateAcl(SUBJECT), acl(entry()))
        assert (made.code, await send()) == (0, 0)
        got = await ask(client, ROOT, GetAcl(SUBJECT))
        assert got.body == acl(entry())
        listed = await ask(client, ROOT, ListAcls(subject_filter="nobo"))
        assert msgspec.json.decode(listed.body) == [msgspec.json.decode(acl(entry()))]
        for header in (ListAcls(resource_filter="xyz"), ListAcls("xyz")):
            assert (await ask(client, ROOT, header)).body == b""
        denied = acl(entry(decision="Deny"))
        assert (await ask(client, ROOT, UpdateAcl(SUBJECT), denied)).code == 0
        assert await send() == DENIED
        default = acl(entry("*"), policy_type="Default")
        assert (await ask(client, ROOT, UpdateAcl(SUBJECT), default)).code == 0
        one = DeleteAcl(SUBJECT, policy_type="Custom", resource="Topic:orders")
        assert (await ask(client, ROOT, one)).code == 0
        assert await send() == 0
        assert (await ask(client, ROOT, DeleteAcl(SUBJECT))).code == 0
        assert await send() == DENIED
        assert (await ask(client, ROOT, GetAcl(SUBJECT))).body == b""


@looped
@pytest.mark.parametrize(
    ("header", "body", "remark"),
    [
        (CreateAcl(SUBJECT), b"", "body of acl is null"),
        (CreateAcl(SUBJECT), acl(), "policies is empty"),
        (CreateAcl(SUBJECT), acl(entry(decision="Maybe")), "decision"),
        (CreateAcl(SUBJECT), acl(entry(resource="")), "resource is null"),
        (CreateAcl(SUBJECT), acl(entry(resource="orders")), "allowed"),
        (CreateAcl(SUBJECT), acl(entry(actions=["Any"])), "allowed"),
        (CreateAcl(SUBJECT), acl(entry(sourceIps=["here"])), "allowed"),
        (CreateAcl(SUBJECT), acl(entry(), policy_type="Best"), "allowed"),
        (CreateAcl("User:none"), acl(entry(), subject="User:none"), "not exist"),
        (DeleteAcl(SUBJECT), b"", "not exist"),
        (DeleteAcl(), b"", "User:NAME"),
    ],
)
async def test_what_makes_no_sense_is_an_answer(tmp_path, header, body, remark):
    async with guarded(tmp_path) as (_, client):
        answer = await ask(client, ROOT, header, body)
        assert answer.code in (DENIED, ResponseCode.INVALID_PARAMETER)
        assert remark in answer.remark


@looped
async def test_a_decision_is_explained(tmp_path):
    async with guarded(tmp_path, allow("Topic:orders", "Pub")) as (_, client):
        asked = ExplainAccess(ALICE, "PUB", "topic:orders", "10.0.0.7")
        answer = await ask(client, ROOT, asked)
        assert msgspec.json.decode(answer.body) == {
            "principal": "users:alice",
            "allowed": True,
            "rule": "Custom policy Topic:orders Pub allow",
            "reason": "",
            "hook": "users",
            "dryRun": False,
        }
        assert (await ask(client, ALICE, asked)).code == DENIED


@looped
@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        ({"action": "FLY"}, "allowed: Pub"),
        ({"resource": "orders"}, "allowed: KIND:NAME"),
        ({"address": "here"}, "allowed: an IP address"),
    ],
)
async def test_a_question_that_makes_no_sense_is_refused(tmp_path, change, allowed):
    asked = ExplainAccess(ALICE, "PUB", "topic:orders", "10.0.0.7")
    async with guarded(tmp_path) as (_, client):
        answer = await ask(client, ROOT, msgspec.structs.replace(asked, **change))
        assert answer.code == ResponseCode.INVALID_PARAMETER
        assert allowed in answer.remark


@looped
async def test_where_nothing_is_guarded_that_is_said(tmp_path):
    async with running(tmp_path) as (_, client):
        asked = ExplainAccess(ALICE, "PUB", "topic:orders", "10.0.0.7")
        answer = await client.ask(asked)
        assert answer.code == ResponseCode.ILLEGAL_OPERATION
        assert "everybody may do everything" in answer.remark
