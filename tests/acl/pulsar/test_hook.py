"""The hook as the server uses it: against an admin REST, with keys that change."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.json import encode

from ropeway.acl.api import (
    Action,
    Channel,
    Credentials,
    Hook,
    HookError,
    Need,
    Principal,
    Refused,
    Resource,
    ResourceKind,
    Setting,
    Source,
)
from ropeway.acl.pulsar import hook, open_hook
from ropeway.acl.pulsar.admin import Admin
from ropeway.acl.pulsar.tokens import Tokens
from tests.acl.pulsar.issuing import SECRET, token
from tests.acl.pulsar.test_admin import FakePulsar, asking
from tests.remoting import looped, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SOURCE = Source("10.0.0.1", Channel.REMOTING)
ORDERS = Resource(ResourceKind.TOPIC, "acme|blue%orders")


class Opened:
    """A hook, and what it says has changed."""

    def __init__(self, fake: FakePulsar, hook: Hook, changes: list[None]) -> None:
        self.fake = fake
        self.hook = hook
        self.changes = changes

    def who(self, access_key: str) -> Any:
        assert self.hook.authenticator is not None
        return self.hook.authenticator.authenticate(
            Credentials(access_key=access_key), SOURCE
        )

    async def may(self, role: str, action: Action) -> bool:
        assert self.hook.authorizer is not None
        principal = self.who(token({"sub": role}))
        found = self.hook.authorizer.authorize(
            principal, Need(ORDERS, (action,)), SOURCE
        )
        if isinstance(found, Awaitable):
            found = await found
        assert found is not None
        return found.allowed


class Clock:
    """The time by which tokens end: it stands until the test lets it go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = time.time()
        standing = SimpleNamespace(time=lambda: self.now_s, monotonic=time.monotonic)
        monkeypatch.setattr(hook, "time", standing)


class LogsRest:
    """The admin REST, asked as a log does that says who it is in a way of its own."""

    def __init__(self, fake: FakePulsar) -> None:
        self.fake = fake
        self.asked: list[str] = []

    async def get(self, path: str) -> tuple[int, bytes]:
        self.asked.append(path)
        found = self.fake.answers.get(f"/admin/v2/{path}", 404)
        if isinstance(found, Exception):
            raise found
        return (found, b"") if isinstance(found, int) else (200, encode(found))


@asynccontextmanager
async def opened(
    key: Path,
    answers: dict[str, Any] | None = None,
    log: LogsRest | None = None,
    **options: Any,
) -> AsyncIterator[Opened]:
    key.write_bytes(SECRET)  # noqa: ASYNC240 - before anything runs
    changes: list[None] = []
    async with asking() as (fake, _):
        fake.answers |= answers or {}
        if log is not None:
            log.fake = fake
        options = {
            **({} if log else {"admin_url": fake.url}),
            "token_secret_key": str(key),
            "refresh_s": 0.05,
            **options,
        }
        more: Any = {"store": None, "vault": None, "environment": {}, "audit": None}
        setting = Setting(
            name="pulsar",
            options=options,
            cluster="c",
            pulsar=log,
            changed=lambda: changes.append(None),
            **more,
        )
        hook = await open_hook(setting)
        assert hook.close is not None
        try:
            yield Opened(fake, hook, changes)
        finally:
            await hook.close()


@looped
async def test_tokens_permissions_and_superusers_work_together(tmp_path: Path):
    async with opened(tmp_path / "key") as one:
        assert await one.may("writer", Action.PUB)
        assert not await one.may("writer", Action.SUB)
        assert await one.may("boss", Action.DELETE)
        assert one.who(token({"sub": "root"})).super
        assert not one.who(token({"sub": "boss"})).super
        assert one.hook.find is not None
        assert one.hook.find("root") == one.who(token({"sub": "root"}))


@looped
async def test_the_log_is_asked_where_the_options_name_no_admin_rest(tmp_path: Path):
    log = LogsRest(FakePulsar())
    async with opened(tmp_path / "key", log=log) as one:
        assert await one.may("writer", Action.PUB)
        assert one.who(token({"sub": "root"})).super
        assert one.fake.tokens == []
        # What is not answered is no answer, and what was known counts on.
        broken = {path: OSError("away") for path in one.fake.answers}
        one.fake.answers |= broken
        assert await one.may("writer", Action.PUB)
        assert not await one.may("stranger", Action.PUB)
    asked = len(log.asked)
    async with opened(tmp_path / "key", log=log, token_file="absent") as one:
        assert not await one.may("writer", Action.PUB)
    assert len(log.asked) == asked


@looped
async def test_what_changes_in_pulsar_is_seen_while_it_runs(tmp_path: Path):
    async with opened(tmp_path / "key") as one:
        assert await one.may("writer", Action.PUB)
        one.fake.answers["/admin/v2/namespaces/acme/blue"] = {}
        await until(lambda: one.changes)
        assert not await one.may("writer", Action.PUB)
        one.fake.answers["/admin/v2/brokers/configuration/runtime"] = {
            "superUserRoles": "[writer]"
        }
        await until(lambda: one.who(token({"sub": "writer"})).super)
        assert not one.who(token({"sub": "root"})).super


@looped
async def test_a_new_key_is_used_and_a_broken_one_is_not(tmp_path: Path):
    key = tmp_path / "key"
    old, new = token({"sub": "a"}), token({"sub": "a"}, secret=b"new" * 20)
    async with opened(key) as one:
        assert isinstance(one.who(old), Principal)
        key.write_bytes(b"half")
        asked = len(one.fake.tokens)
        await until(lambda: len(one.fake.tokens) > asked + 3)
        assert isinstance(one.who(old), Principal)
        key.write_bytes(b"new" * 20)
        await until(lambda: isinstance(one.who(new), Principal))
        assert isinstance(one.who(old), Refused)


@looped
async def test_rounds_that_see_nothing_new_tell_nobody(tmp_path: Path):
    async with opened(tmp_path / "key") as one:
        assert await one.may("writer", Action.PUB)
        asked = len(one.fake.tokens)
        await until(lambda: len(one.fake.tokens) > asked + 20)
        assert not one.changes


@looped
async def test_it_opens_while_pulsar_is_down_and_lets_nobody_in_until_it_is_up(
    tmp_path: Path,
):
    async with opened(tmp_path / "key") as up:
        address = up.fake.answers.pop("/admin/v2/namespaces/acme/blue")
        up.fake.answers["/admin/v2/namespaces/acme/blue"] = 503
        assert not await up.may("writer", Action.PUB)
        up.fake.answers["/admin/v2/namespaces/acme/blue"] = address
        await until(lambda: up.changes)
        assert await up.may("writer", Action.PUB)


@looped
async def test_superusers_that_nobody_knows_at_the_start_are_known_later(
    tmp_path: Path,
):
    path = "/admin/v2/brokers/configuration/runtime"
    async with opened(tmp_path / "key", {path: 503}) as one:
        assert not one.who(token({"sub": "root"})).super
        one.fake.answers[path] = {"superUserRoles": "[root]"}
        await until(lambda: one.who(token({"sub": "root"})).super)


@looped
async def test_what_ends_a_token_is_told_to_who_waits_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    key = tmp_path / "key"
    clock = Clock(monkeypatch)
    async with opened(key) as one:
        assert isinstance(one.who(token({"sub": "a"})), Principal)
        ends = token({"sub": "b", "exp": clock.now_s + 60})
        assert isinstance(one.who(ends), Principal)
        assert not one.changes
        clock.now_s += 61
        await until(lambda: len(one.changes) == 1)
        key.write_bytes(b"new" * 20)
        await until(lambda: len(one.changes) == 2)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"token_secret_key": "/not/there"}, "cannot be read"),
        ({"ca_certificate": "/not/there"}, "cannot be used"),
        ({"admin": "http://127.0.0.1:1"}, "admin"),
    ],
)
@looped
async def test_options_that_cannot_be_used_are_refused(tmp_path, options, complaint):
    with pytest.raises(HookError, match=complaint):
        async with opened(tmp_path / "key", **options):
            pass


@looped
async def test_a_hook_that_is_closed_asks_nothing_more(tmp_path: Path):
    async with opened(tmp_path / "key"):
        assert at_work()
    assert not at_work()


@looped
async def test_a_hook_that_is_closed_leaves_no_question_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asked = asyncio.Event()

    async def forever(*_: object) -> None:
        asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Admin, "permissions", forever)
    async with opened(tmp_path / "key") as one:
        asking = asyncio.ensure_future(one.may("writer", Action.PUB))
        await asked.wait()
    assert not at_work()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


def at_work() -> list[asyncio.Task[Any]]:
    """The tasks of hooks."""
    return [
        one
        for one in asyncio.all_tasks()
        if "/acl/pulsar/" in one.get_coro().cr_code.co_filename
        and "/tests/" not in one.get_coro().cr_code.co_filename
    ]


@looped
async def test_it_looks_again_after_a_fault_that_nobody_foresaw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    key = tmp_path / "key"
    clock = Clock(monkeypatch)
    failed = []

    def fail_once(name: str) -> None:
        original = getattr(Tokens, name)

        def step(self, *given):
            if name not in failed:
                failed.append(name)
                raise ValueError("a fault of this test")
            return original(self, *given)

        monkeypatch.setattr(Tokens, name, step)

    async with opened(key) as one:
        fail_once("use")
        fail_once("expire")
        await until(lambda: len(failed) == 2)
        key.write_bytes(b"new" * 20)
        await until(lambda: len(one.changes) == 1)
        ends = token({"sub": "b", "exp": clock.now_s + 60}, secret=b"new" * 20)
        assert isinstance(one.who(ends), Principal)
        clock.now_s += 61
        await until(lambda: len(one.changes) == 2)
