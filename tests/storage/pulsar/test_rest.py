"""Requests to the admin REST: who does not answer is passed over, refusals are told."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.pulsar import rest as module
from ropeway.storage.pulsar.admin import Admin
from ropeway.storage.pulsar.pulsar_id import Expected, definition, schema_topic
from ropeway.storage.pulsar.rest import (
    AdminRefusedError,
    ForeignAdminError,
    NotPermittedError,
)
from tests.storage.pulsar.test_admin import Rest, run
from tests.system.process import free_ports


@pytest.mark.parametrize(
    "failed",
    [
        (500, {"reason": "Not enough non-faulty bookies available"}),
        # While a topic moves between brokers; a node ended by it at its start.
        (412, {"reason": "Failed to find ownership for topic:persistent://p/d/a"}),
    ],
)
def test_what_a_broker_failed_at_is_asked_again_for_a_while(
    monkeypatch, failed: tuple[int, dict[str, str]]
) -> None:
    async def test(admin: Admin, rest: Rest) -> None:
        await admin.create_plain("persistent://public/default/a")
        assert len(rest.asked) == 3
        monkeypatch.setattr(module, "_RETRY_FOR_S", 0.0)
        with pytest.raises(AdminRefusedError, match=r"500 Not enough|412 Failed to"):
            await admin.create_plain("persistent://public/default/a")
        assert len(rest.asked) == 4

    monkeypatch.setattr(module, "_RETRY_EVERY_S", 0.01)
    path = "/admin/v2/persistent/public/default/a"
    run({("PUT", path): [failed, failed, (204, None), failed]}, test)


def test_who_may_not_is_told_which_request_it_was() -> None:
    async def test(admin: Admin, _: Rest) -> None:
        with pytest.raises(
            NotPermittedError, match=r"not permit GET .*public/x: 401 no"
        ):
            await admin.policies("public/x")
        assert await admin.configuration() is None

    run(
        {
            ("GET", "/admin/v2/namespaces/public/x"): [(401, {"reason": "no"})],
            ("GET", "/admin/v2/brokers/configuration/runtime"): [(403, "text")],
        },
        test,
    )


def test_a_host_that_does_not_answer_is_passed_over() -> None:
    async def test(admin: Admin, rest: Rest) -> None:
        for _ in range(2):
            assert await admin.policies("public/x") is None
        assert len(rest.asked) == 2

    gone = (404, {"reason": "no such namespace"})
    run({("GET", "/admin/v2/namespaces/public/x"): [gone] * 2}, test, dead_first=True)


def test_another_broker_that_a_broker_names_gets_the_same_with_the_token() -> None:
    async def test(admin: Admin, rest: Rest) -> None:
        await admin.set_policy("public/x", "deduplication", True)
        assert rest.asked == [("POST", path, "true"), ("POST", onward, "true")]
        assert rest.tokens == ["Bearer secret"] * 2

    path = "/admin/v2/namespaces/public/x/deduplication"
    onward = f"{path}?authoritative=true"
    run(
        {
            # The same server; to an HTTP client it is another one.
            ("POST", path): [(307, f"http://localhost:PORT{onward}")],
            ("POST", onward): [(204, None)],
        },
        test,
    )


def test_a_broker_that_is_named_and_gone_is_waited_for(monkeypatch) -> None:
    async def test(admin: Admin, rest: Rest) -> None:
        await admin.create_plain("persistent://public/default/a")
        assert len(rest.asked) == 3
        monkeypatch.setattr(module, "_RETRY_FOR_S", 0.0)
        with pytest.raises(AdminRefusedError, match=f"{dead}, .*does not answer"):
            await admin.create_plain("persistent://public/default/a")

    monkeypatch.setattr(module, "_RETRY_EVERY_S", 0.01)
    path = "/admin/v2/persistent/public/default/a"
    dead = f"127.0.0.1:{free_ports(1)[0]}"
    away = (307, f"http://{dead}{path}")
    run({("PUT", path): [away, away, (204, None), away]}, test)


@pytest.mark.parametrize(
    ("onward", "times"),
    [("https://127.0.0.1:PORT/x", 1), ("", 6), ("http://127.0.0.1:PORT{path}", 6)],
)
def test_the_token_is_not_carried_in_circles_nor_out_of_its_scheme(
    onward: str, times: int
) -> None:
    async def test(admin: Admin, rest: Rest) -> None:
        with pytest.raises(AdminRefusedError, match="307 sent on to http"):
            await admin.policies("public/x")
        assert len(rest.asked) == times

    path = "/admin/v2/namespaces/public/x"
    away = (307, onward.replace("{path}", path))
    run({("GET", path): [away] * times}, test)


def test_when_no_host_answers_all_are_named() -> None:
    async def main() -> None:
        ports = free_ports(2)
        admin = Admin(f"http://127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}")
        with pytest.raises(LogUnavailableError, match=rf"{ports[0]}.*does not answer"):
            await admin.version()
        await admin.close()

    asyncio.run(main())


SPACE = "rocketmq/DefaultCluster"
SCHEMA = f"/admin/v2/schemas/{SPACE}/__ropeway%40cluster-0/schema"


def shows(pulsar_id: str) -> tuple[int, object]:
    return 200, {"version": 0, "type": "AVRO", "data": definition(pulsar_id)}


def test_a_host_of_another_cluster_is_not_asked() -> None:
    async def test(admin: Admin, rest: Rest) -> None:
        admin.expected = Expected(schema_topic(SPACE), "aa")
        with pytest.raises(ForeignAdminError, match="is of another Pulsar cl"):
            await admin.topics(SPACE)
        assert [one[1] for one in rest.asked] == [SCHEMA]
        await admin.look_at_hosts()
        # It is looked at again, and once it fits it is asked without.
        assert await admin.topics(SPACE) == await admin.topics(SPACE) == []
        listed = f"/admin/v2/persistent/{SPACE}"
        assert [one[1] for one in rest.asked] == [*[SCHEMA] * 3, listed, listed]

    run(
        {
            ("GET", SCHEMA): [shows("cc"), (503, {"reason": "away"}), shows("aa")],
            ("GET", f"/admin/v2/persistent/{SPACE}"): [(200, [])] * 2,
        },
        test,
    )
