"""The admin REST asked with a token: which host, and with which token."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.acl.pulsar.admin import Admin, AdminError
from ropeway.acl.pulsar.token_rest import TokenRest
from tests.acl.pulsar.test_admin import asking
from tests.remoting import looped
from tests.system.process import free_ports

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_the_next_host_is_asked_where_one_does_not_answer():
    async with asking(dead_first=True) as (fake, admin):
        assert (await admin.permissions("acme", "blue")).admins == {"boss"}
        fake.answers.clear()
    rest = TokenRest(f"http://127.0.0.1:{free_ports(1)[0]}", None, None, None)
    with pytest.raises(AdminError, match="does not answer"):
        await Admin(rest).permissions("acme", "blue")
    await rest.close()


@looped
async def test_our_token_is_read_each_time(tmp_path: Path):
    file = tmp_path / "token"
    async with asking(file) as (fake, admin):
        with pytest.raises(AdminError, match="has no token"):
            await admin.superusers()
        for token in ("one", "two"):
            file.write_text(f"{token}\n")
            await admin.superusers()
        assert fake.tokens == ["Bearer one", "Bearer two"]
    for given, sent in ((None, None), ("three", "Bearer three")):
        async with asking(None, given) as (fake, admin):
            await admin.superusers()
            assert fake.tokens == [sent]
