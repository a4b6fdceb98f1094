"""A namespace is one cluster's, or refused with whose it is and what can be done."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from storage.api import LogForeignError
from storage.pulsar.admin import Admin
from storage.pulsar.catalog import Catalog
from storage.pulsar.owner import EMPTY, PREFIX, Owner, complaints, note, owners, take
from storage.pulsar.selftest import PulsarUnfitError
from tests.storage.pulsar.logs import settings_for
from tests.storage.pulsar.test_admin import Rest, run

if TYPE_CHECKING:
    from tests.system.pulsar import Pulsar

OURS = Owner("aa", "DefaultCluster", frozenset())
SPACE = "rocketmq/DefaultCluster"
PATH = f"/admin/v2/namespaces/{SPACE}"


def marked(*ids: str) -> dict[str, Any]:
    return {"properties": {PREFIX + one: f"cluster-{one}" for one in ids}}


def catalog(*topics: str) -> Catalog:
    made = Catalog(Admin("http://127.0.0.1:1"), Settings(("acme/blue",)))
    made.topics = dict.fromkeys(topics, 1)
    return made


class Settings(msgspec.Struct):
    namespaces: tuple[str, ...]
    tenant: str = "rocketmq"
    namespace: str = "DefaultCluster"


def test_other_properties_say_nothing_of_owners() -> None:
    assert owners({"properties": {"team": "orders"}}) == {}
    assert owners({"properties": None}) == owners({}) == {}
    assert owners(marked("aa")) == {"aa": "cluster-aa"}


def test_a_namespace_of_nobody_or_of_this_cluster_is_taken() -> None:
    assert complaints(OURS, SPACE, {}, catalog()) == []
    assert complaints(OURS, SPACE, None, catalog()) == []
    assert complaints(OURS, SPACE, marked("aa"), catalog()) == []


def test_one_of_others_is_taken_by_who_names_each_of_them() -> None:
    (said,) = complaints(OURS, SPACE, marked("aa", "bb"), catalog())
    assert f"{SPACE} of Pulsar belongs to another cluster, cluster-bb of the" in said
    assert said.endswith("--adopt bb")
    adopting = msgspec.structs.replace(OURS, adopts="bb")
    assert complaints(adopting, SPACE, marked("bb"), catalog()) == []
    assert len(complaints(adopting, SPACE, marked("bb", "cc"), catalog())) == 1


def test_topics_of_routes_are_looked_for_in_the_namespace_that_they_are_in() -> None:
    names = frozenset({"orders", "bills", "acme|blue%orders"})
    with_topics = msgspec.structs.replace(OURS, topics=names)
    (said,) = complaints(with_topics, SPACE, {}, catalog("acme|blue%orders", "x"))
    assert f"namespace {SPACE} of Pulsar has 2 topics, like bills, and it has" in said
    assert complaints(with_topics, SPACE, {}, catalog("orders")) == []
    (said,) = complaints(with_topics, "acme/blue", None, catalog("orders"))
    assert "and it is not there; set pulsar.tenant" in said
    anew = msgspec.structs.replace(with_topics, adopts=EMPTY)
    assert complaints(anew, SPACE, None, catalog()) == []


def test_of_two_clusters_that_come_at_the_same_moment_one_stays_at_most() -> None:
    async def test(admin: Admin, rest: Rest) -> None:
        with pytest.raises(LogForeignError, match="cluster-bb of the id bb"):
            await note(admin, SPACE, OURS)
        asked = [one[0] for one in rest.asked]
        assert asked == ["GET", "PUT", "GET", "GET", "DELETE"]

    run(
        {
            ("GET", PATH): [(200, {}), (200, marked("bb")), (200, marked("aa", "bb"))],
            ("PUT", f"{PATH}/properties"): [(204, None)],
            ("DELETE", f"{PATH}/property/{PREFIX}aa"): [(204, None)],
        },
        test,
    )


def test_who_may_not_note_it_is_told_the_command() -> None:
    async def test(admin: Admin, _: Rest) -> None:
        command = f"set-property -k {PREFIX}aa -v DefaultCluster {SPACE}"
        with pytest.raises(PulsarUnfitError, match=command):
            await note(admin, SPACE, OURS)

    run(
        {
            ("GET", PATH): [(200, {})],
            ("PUT", f"{PATH}/properties"): [(403, None)],
        },
        test,
    )


def test_public_default_is_not_even_noted_in() -> None:
    async def test(admin: Admin, rest: Rest) -> None:
        await note(admin, "public/default", OURS)
        assert [asked[0] for asked in rest.asked] == ["GET"]

    run({("GET", "/admin/v2/namespaces/public/default"): [(200, {})]}, test)


@pytest.mark.jvm
@pytest.mark.server
def test_a_real_pulsar_keeps_its_owner_however_many_come_then(
    pulsar: Pulsar,
) -> None:
    space = "rocketmq/owned"

    async def come(number: int) -> str | None:
        admin = Admin(pulsar.admin_url)
        made = Catalog(admin, settings_for(pulsar, space))
        try:
            owner = Owner(f"{number:02}", "c", frozenset())
            await take(admin, made, owner, prepare=True)
        except LogForeignError:
            return None
        finally:
            await admin.close()
        return owner.id

    async def main() -> None:
        assert await come(0) == "00"
        assert await asyncio.gather(*map(come, range(1, 8))) == [None] * 7
        assert [*owners(pulsar.admin("GET", f"namespaces/{space}"))] == ["00"]
        assert await come(0) == "00"

    asyncio.run(main())
