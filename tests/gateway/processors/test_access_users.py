"""Users are administered over the wire, and nobody makes himself more than he is."""

import msgspec
import pytest

from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.access_bodies import UserInfo
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.auth import (
    CreateUser,
    DeleteUser,
    GetUser,
    ListUsers,
    UpdateUser,
)
from tests.guarded import ALICE, NOBODY, PASSWORD, ROOT, allow, ask, guarded
from tests.remoting import looped, running
from tests.requests import sending

DENIED = ResponseCode.NO_PERMISSION


def info(**given) -> bytes:
    return bodies.encode(UserInfo(**given))


@looped
async def test_a_user_is_made_used_changed_and_deleted(tmp_path):
    async with guarded(tmp_path) as (_, client):
        body = info(password="p", user_type="Normal")
        assert (await ask(client, ROOT, CreateUser("bob"), body)).code == 0
        again = await ask(client, ROOT, CreateUser("bob"), body)
        assert (again.code, again.remark) == (DENIED, "The user is existed")
        got = await ask(client, ROOT, GetUser("bob"))
        assert msgspec.json.decode(got.body) == {
            "username": "bob",
            "password": "p",
            "userType": "Normal",
            "userStatus": "enable",
        }
        body = info(user_type="Super", user_status="disable")
        assert (await ask(client, ROOT, UpdateUser("bob"), body)).code == 0
        disabled = await ask(client, "bob", sending("t"), b"x", password="p")
        assert disabled.code == DENIED
        listed = await ask(client, ROOT, ListUsers(filter="o"))
        names = [one["username"] for one in msgspec.json.decode(listed.body)]
        assert names == ["bob", NOBODY, ROOT]
        assert (await ask(client, ROOT, DeleteUser("bob"))).code == 0
        assert (await ask(client, ROOT, GetUser("bob"))).body == b""
        assert (await ask(client, ROOT, ListUsers(filter="bob"))).body == b""


@looped
async def test_an_administrator_who_is_not_super_makes_nobody_super(tmp_path):
    async with guarded(tmp_path, allow("Cluster:*")) as (_, client):
        assert (
            await ask(client, ALICE, CreateUser("bob"), info(password="p"))
        ).code == 0
        body = info(password="p", user_type="Super")
        for header in (CreateUser("eve"), UpdateUser("bob"), UpdateUser(ALICE)):
            assert (await ask(client, ALICE, header, body)).code == DENIED
        for header in (UpdateUser(ROOT), DeleteUser(ROOT)):
            answer = await ask(client, ALICE, header, info(password="mine"))
            assert answer.code == DENIED
        for header in (GetUser(ROOT), ListUsers()):
            seen = await ask(client, ALICE, header)
            assert seen.code == 0
            assert PASSWORD.encode() not in seen.body


@looped
@pytest.mark.parametrize(
    ("header", "body", "code"),
    [
        (CreateUser(), b"{}", ResponseCode.INVALID_PARAMETER),
        (CreateUser("bob"), b"", DENIED),
        (CreateUser("bob"), b"nonsense", ResponseCode.SYSTEM_ERROR),
        (CreateUser("bob"), info(password="p", user_type="God"), 29),
        (CreateUser("\u0430lice"), info(password="p"), DENIED),
        (UpdateUser("none"), info(password="p"), DENIED),
        (GetUser(), b"", ResponseCode.INVALID_PARAMETER),
    ],
)
async def test_what_makes_no_sense_is_an_answer(tmp_path, header, body, code):
    async with guarded(tmp_path) as (_, client):
        answer = await ask(client, ROOT, header, body)
        assert answer.code == code
        assert answer.remark


@looped
async def test_without_access_control_there_are_no_users(tmp_path):
    async with running(tmp_path) as (_, client):
        answer = await client.ask(ListUsers())
        assert answer.code == ResponseCode.ILLEGAL_OPERATION
        assert "acl.hooks" in answer.remark
