"""A namespace is one cluster's, or refused with whose it is and what can be done."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from ropeway.storage.api import LogForeignError, LogUnavailableError
from ropeway.storage.pulsar import owner as owner_module
from ropeway.storage.pulsar.admin import Admin
from ropeway.storage.pulsar.catalog import Catalog
from ropeway.storage.pulsar.owner import (
    EMPTY,
    PREFIX,
    Owner,
    complaints,
    note,
    owners,
    take,
)
from ropeway.storage.pulsar.selftest import PulsarUnfitError
from tests.storage.pulsar.logs import settings_for, until
from tests.storage.pulsar.test_admin import Rest, run

if TYPE_CHECKING:
    from collections.abc import Iterable

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


CLAIM = f"/admin/v2/persistent/{SPACE}/__ropeway%40cluster-"
PATHS = [f"{CLAIM}{number}/partitions" for number in range(3)]
NOBODY = (404, None)


def claimed(one: str) -> tuple[int, object]:
    return 200, {"partitions": 1, "deleted": False} | marked(one)


def test_who_comes_second_at_the_same_moment_is_refused_with_nothing_noted() -> None:
    async def test(admin: Admin, rest: Rest) -> None:
        with pytest.raises(LogForeignError, match="cluster-bb of the id bb"):
            await note(admin, SPACE, OURS, {})
        assert [one[0] for one in rest.asked] == ["GET", "PUT", "GET", "GET", "GET"]

    run(
        {
            # It is not shown at once to who was told that it is there.
            ("GET", PATHS[0]): [NOBODY, NOBODY, claimed("bb")],
            ("PUT", PATHS[0]): [(409, None)],
            ("GET", PATHS[1]): [NOBODY],
        },
        test,
    )


def test_who_ended_behind_its_claim_goes_on_with_the_note() -> None:
    async def test(admin: Admin, rest: Rest) -> None:
        await note(admin, SPACE, OURS, {})
        asked = [one[0] for one in rest.asked]
        # Pulsar loses one of two changes at the same moment, whosever they are.
        assert asked == ["GET", "GET", "PUT", "GET", "PUT", "GET"]

    run(
        {
            ("GET", PATHS[0]): [claimed("aa")],
            ("GET", PATHS[1]): [NOBODY],
            ("PUT", f"{PATH}/properties"): [(204, None)] * 2,
            ("GET", PATH): [(200, {}), (200, marked("aa"))],
        },
        test,
    )


def test_who_adopts_claims_behind_the_one_that_it_names() -> None:
    adopting = msgspec.structs.replace(OURS, adopts="bb")

    async def test(admin: Admin, rest: Rest) -> None:
        await note(admin, SPACE, adopting, marked("bb"))
        claim, _, noted, _ = rest.asked[-4:]
        properties = {PREFIX + "aa": "DefaultCluster"}
        assert msgspec.json.decode(claim[2])["properties"] == properties
        assert msgspec.json.decode(noted[2]) == properties

    run(
        {
            ("GET", PATHS[0]): [claimed("cc")],
            ("GET", PATHS[1]): [claimed("bb")],
            ("GET", PATHS[2]): [NOBODY],
            ("PUT", PATHS[2]): [(204, None)],
            ("DELETE", f"{PATH}/property/{PREFIX}bb"): [(204, None)],
            ("PUT", f"{PATH}/properties"): [(204, None)],
            ("GET", PATH): [(200, marked("aa"))],
        },
        test,
    )


def test_what_a_deletion_left_is_named_where_it_is_in_the_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(owner_module, "SHOWN_S", (0.01,))

    async def test(admin: Admin, _: Rest) -> None:
        with pytest.raises(LogUnavailableError, match=r"cluster-0-partition-0, and"):
            await note(admin, SPACE, OURS, {})

    run(
        {
            ("GET", PATHS[0]): [NOBODY] * 100,
            ("PUT", PATHS[0]): [(409, None)],
        },
        test,
    )


@pytest.mark.parametrize("refused", ["claim", "note"])
def test_who_may_not_note_it_is_told_the_command(refused: str) -> None:
    async def test(admin: Admin, _: Rest) -> None:
        command = f"set-property -k {PREFIX}aa -v DefaultCluster {SPACE}"
        with pytest.raises(PulsarUnfitError, match=command):
            await note(admin, SPACE, OURS, {})

    run(
        {
            ("GET", PATHS[0]): [NOBODY],
            ("PUT", PATHS[0]): [(403 if refused == "claim" else 204, None)],
            ("PUT", f"{PATH}/properties"): [(403, None)],
        },
        test,
    )


def test_public_default_is_not_even_noted_in() -> None:
    async def test(admin: Admin, rest: Rest) -> None:
        await note(admin, "public/default", OURS, {})
        assert rest.asked == []

    run({}, test)


@pytest.mark.jvm
@pytest.mark.server
def test_of_eight_that_come_first_at_once_a_real_pulsar_takes_one(
    pulsar: Pulsar,
) -> None:
    async def come(space: str, number: int, adopts: str | None = None) -> str | None:
        admin = Admin(pulsar.admin_url)
        made = Catalog(admin, settings_for(pulsar, space))
        owner = Owner(f"{number:02}", "c", frozenset(), adopts)
        try:
            await take(admin, made, owner, prepare=True)
        except LogForeignError:
            return None
        finally:
            await admin.close()
        return owner.id

    async def first(
        space: str, numbers: Iterable[int], adopts: str | None = None
    ) -> str:
        came = await asyncio.gather(*(come(space, one, adopts) for one in numbers))
        (won,) = [one for one in came if one is not None]
        # It notes it again where others' changes of policies have undone that.
        assert await come(space, int(won)) == won
        await until(
            lambda: [*owners(pulsar.admin("GET", f"namespaces/{space}"))] == [won]
        )
        return won

    async def main() -> None:
        for turn in range(3):
            space = f"rocketmq/owned-{turn}"
            won = await first(space, range(8))
            # Nor do those that come later, or at once to take it over.
            assert await first(space, range(8)) == won
            others = [one for one in range(8) if one != int(won)]
            taken = await first(space, others, adopts=won)
            assert await come(space, int(won)) is None
            # It can be given back, too.
            assert await come(space, int(won), adopts=taken) == won
            assert await first(space, range(8)) == won

    asyncio.run(main())
