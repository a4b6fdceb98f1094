"""Users and their policies, as a program changes them."""

import asyncio

import pytest

from ropeway.client import Admin, ClientConfig, Credentials, admin_users
from ropeway.client.errors import AdminError
from ropeway.gateway.wire.access_bodies import PolicyEntryInfo, UserInfo
from tests.guarded import ALICE, NOBODY, PASSWORD, ROOT, guarded
from tests.ropeway.client.scenario import PATIENCE

CONFIG = ClientConfig(
    **PATIENCE, credentials=Credentials(access_key=ROOT, secret_key=PASSWORD)
)


def test_users_and_policies_are_made_changed_and_deleted(tmp_path):
    async def main() -> None:
        async with (
            guarded(tmp_path / "data") as (app, _),
            Admin(app.server.listeners[0].advertised, config=CONFIG) as admin,
        ):
            assert await admin_users.policies(admin) == []
            bobby = UserInfo(username="bobby", password=PASSWORD, user_type="Normal")
            await admin_users.create(admin, bobby)
            with pytest.raises(AdminError, match="user bobby exists already"):
                await admin_users.create(admin, bobby)
            names = [user.username for user in await admin_users.users(admin)]
            assert names == [ALICE, "bobby", NOBODY, ROOT]
            entry = PolicyEntryInfo(
                resource="Topic:orders", actions=["Pub"], decision="Allow"
            )
            await admin_users.put_policy(admin, "User:bobby", entry)
            (found,) = await admin_users.policies(admin, "bobby")
            assert found.subject == "User:bobby"
            await admin_users.delete_policies(admin, "User:bobby", "Topic:orders")
            assert await admin_users.policies(admin) == []
            await admin_users.update(
                admin, UserInfo(username="bobby", user_status="disable")
            )
            await admin_users.delete(admin, "bobby")
            with pytest.raises(AdminError, match="user bobby does not exist"):
                await admin_users.delete(admin, "bobby")

    asyncio.run(main())
