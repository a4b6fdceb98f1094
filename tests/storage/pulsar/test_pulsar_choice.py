"""A Pulsar cluster is told from another one by its id, and others are refused."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import LogForeignError
from ropeway.storage.pulsar.admin import Admin
from ropeway.storage.pulsar.pulsar_choice import check, note
from ropeway.storage.pulsar.pulsar_id import (
    PulsarIds,
    definition,
    id_in,
    schema_topic,
)
from tests.storage.pulsar.test_admin import Rest, run

if TYPE_CHECKING:
    from tests.system.pulsar import Pulsar

SPACE = "rocketmq/DefaultCluster"
PATH = f"/admin/v2/schemas/{SPACE}/__ropeway%40cluster-0/schema"
NONE = (404, {"reason": "Schema not found"})
IDS = PulsarIds("aa", "bb")


def shows(pulsar_id: str) -> tuple[int, object]:
    return 200, {"version": 0, "type": "AVRO", "data": definition(pulsar_id)}


def checked(
    answer: tuple[int, object] | None,
    ids: PulsarIds = IDS,
    *,
    adopts: bool = False,
    has_topics: bool = True,
) -> str | None:
    """What `check` says of a cluster that answers so; None: without the namespace."""
    found: list[str | None] = []

    async def test(admin: Admin, _: Rest) -> None:
        found.append(
            await check(
                *(admin, SPACE, ids),
                is_there=answer is not None,
                adopts=adopts,
                has_topics=has_topics,
            )
        )

    run({("GET", PATH): [] if answer is None else [answer]}, test)
    return found[0]


def test_the_cluster_that_has_the_messages_is_known_again() -> None:
    assert checked(shows("aa")) == "aa"


def test_a_first_cluster_gets_the_next_id_whatever_is_there() -> None:
    first = PulsarIds(None, "bb")
    assert checked(None, first) == checked(NONE, first) == "bb"
    assert checked(shows("bb"), first) == checked(shows("cc"), first) == "bb"


@pytest.mark.parametrize("answer", [None, NONE, shows("cc")])
def test_another_cluster_is_refused_unless_it_is_adopted(
    answer: tuple[int, object] | None,
) -> None:
    with pytest.raises(LogForeignError, match=r"another cluster .* --adopt replica"):
        checked(answer)
    assert checked(answer, adopts=True) == "bb"
    # Another node of the same start has done it.
    assert checked(shows("bb")) == "bb"
    # Nothing is there that could be lost.
    assert checked(answer, has_topics=False) == "bb"


def test_nobody_adopts_while_others_run() -> None:
    running = PulsarIds("aa", "bb", ("two of broker-0",))
    with pytest.raises(LogForeignError, match="nodes run: two of broker-0; stop all"):
        checked(NONE, running, adopts=True)
    assert checked(shows("aa"), running, adopts=True) == "aa"


@pytest.mark.parametrize("answer", [(403, {"reason": "no"}), (405, {"reason": "no"})])
def test_a_pulsar_that_does_not_show_schemas_is_used_as_it_is(
    answer: tuple[int, object],
) -> None:
    assert checked(answer) is None

    async def test(admin: Admin, _: Rest) -> None:
        assert await note(admin, SPACE, "bb") is None

    run({("GET", PATH): [NONE], ("POST", PATH): [answer]}, test)


@pytest.mark.jvm
@pytest.mark.server
def test_a_real_pulsar_shows_one_id_after_the_other(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def test() -> None:
        admin = Admin(pulsar.admin_url)
        try:
            topic = schema_topic(pulsar_namespace)
            assert await admin.schema(topic) is None
            for one in ("aa", "bb", "cc"):
                assert await note(admin, pulsar_namespace, one) == one
                assert id_in(await admin.schema(topic)) == one
        finally:
            await admin.close()

    asyncio.run(test())
