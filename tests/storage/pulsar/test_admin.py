"""The admin REST: what is so already is fine, and any other refusal is told."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.pulsar import admin as module
from ropeway.storage.pulsar.admin import Admin
from ropeway.storage.pulsar.authentication import Token
from ropeway.storage.pulsar.rest import AdminRefusedError
from ropeway.storage.pulsar.topic_names import PulsarName
from tests.system.process import free_ports

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ORDERS = PulsarName("public", "default", "%RETRY%orders")
SPACE = "/admin/v2/persistent/public/default"
PATH = f"{SPACE}/%25RETRY%25orders"

Answers = dict[tuple[str, str], list[tuple[int, object]]]


class Rest:
    """A server that gives the answers it was told, and keeps what it was asked."""

    def __init__(self, answers: Answers) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self.tokens: list[str | None] = []
        self._answers = answers

    async def answer(self, request: web.Request) -> web.Response:
        text = await request.text()
        self.asked.append((request.method, request.raw_path, text))
        self.tokens.append(request.headers.get("Authorization"))
        status, body = self._answers[request.method, request.raw_path].pop(0)
        if status == HTTPStatus.TEMPORARY_REDIRECT:
            onward = str(body).replace("PORT", str(request.url.port))
            return web.Response(status=status, headers={"Location": onward})
        return web.json_response(body, status=status)


def run(
    answers: Answers,
    test: Callable[[Admin, Rest], Awaitable[None]],
    *,
    dead_first: bool = False,
) -> None:
    async def main() -> None:
        rest = Rest(answers)
        server = web.AppRunner(web.Application())
        server.app.router.add_route("*", "/{path:.*}", rest.answer)
        await server.setup()
        dead, port = free_ports(2)
        await web.TCPSite(server, "127.0.0.1", port).start()
        hosts = f"127.0.0.1:{dead}," if dead_first else ""
        admin = Admin(
            f"http://{hosts}127.0.0.1:{port}", authentication=Token(lambda: "secret")
        )
        try:
            await test(admin, rest)
        finally:
            await admin.close()
            await server.cleanup()

    asyncio.run(main())


def test_a_topic_is_made_once() -> None:
    async def test(admin: Admin, rest: Rest) -> None:
        await admin.create(ORDERS, 3)
        assert rest.asked == [
            ("GET", f"{PATH}/partitions", ""),
            ("PUT", f"{PATH}/partitions", "3"),
        ]
        assert set(rest.tokens) == {"Bearer secret"}

    partitions = f"{PATH}/partitions"
    run(
        {
            ("GET", partitions): [(404, {"reason": "not found"})],
            ("PUT", partitions): [(200, None)],
        },
        test,
    )


def test_two_nodes_that_make_a_topic_at_once_both_succeed() -> None:
    async def test(admin: Admin, rest: Rest) -> None:
        await admin.create(ORDERS, 3)
        assert [method for method, _, _ in rest.asked] == [
            "GET",
            "PUT",
            "GET",
            "POST",
            "GET",
        ]

    partitions = f"{PATH}/partitions"
    run(
        {
            ("GET", partitions): [
                (404, {"reason": "not found"}),
                (200, {"partitions": 2}),
                (200, {"partitions": 4}),
            ],
            ("PUT", partitions): [(409, {"reason": "exists"})],
            ("POST", partitions): [(422, {"reason": "can't be less than 4"})],
        },
        test,
    )


def test_an_absent_topic_is_deleted_already() -> None:
    async def test(admin: Admin, _: Rest) -> None:
        await admin.delete(ORDERS)
        with pytest.raises(AdminRefusedError, match=r"DELETE .*: 412 busy") as caught:
            await admin.delete(ORDERS)
        assert caught.value.status == HTTPStatus.PRECONDITION_FAILED

    path = f"{PATH}/partitions?force=true"
    run(
        {
            ("DELETE", path): [(404, {"reason": "?"}), (412, {"reason": "busy"})],
            ("GET", SPACE): [(200, [])],
        },
        test,
    )


def test_what_a_deletion_left_is_deleted_partition_by_partition() -> None:
    """Pulsar says that there is no such topic, and has two of its partitions."""

    async def test(admin: Admin, rest: Rest) -> None:
        await admin.delete(ORDERS)
        deleted = [path for method, path, _ in rest.asked[2:] if method == "DELETE"]
        assert deleted == [f"{PATH}-partition-{number}?force=true" for number in (1, 3)]

    mine = [f"{ORDERS.partition(number)}" for number in (1, 3)]
    run(
        {
            ("DELETE", f"{PATH}/partitions?force=true"): [(404, {"reason": "?"})],
            ("GET", SPACE): [(200, [*mine, f"{mine[0]}0@1-partition-1"])],
            ("DELETE", f"{PATH}-partition-1?force=true"): [(204, None)],
            # Somebody else was faster.
            ("DELETE", f"{PATH}-partition-3?force=true"): [(404, {"reason": "?"})],
        },
        test,
    )


def test_what_a_deletion_left_is_in_the_way_of_a_new_topic() -> None:
    """Taken for made, its queues would answer that the topic does not exist."""

    async def test(admin: Admin, _: Rest) -> None:
        with pytest.raises(AdminRefusedError, match="409 This topic already exists"):
            await admin.create(ORDERS, 3)

    path = f"{PATH}/partitions"
    conflict = (409, {"reason": "This topic already exists"})
    run(
        {("GET", path): [(404, {"reason": "?"})] * 2, ("PUT", path): [conflict]},
        test,
    )


NAME = "persistent://public/default/%RETRY%orders"
PARTITIONS = f"{PATH}/partitions"


@pytest.mark.parametrize(
    ("ask", "method", "path", "is_so_already"),
    [
        (
            lambda a: a.policies("public/default"),
            "GET",
            "/admin/v2/namespaces/public/default",
            404,
        ),
        (lambda a: a.partitions(ORDERS), "GET", PARTITIONS, 404),
        (lambda a: a.delete(ORDERS), "DELETE", f"{PARTITIONS}?force=true", 404),
        (lambda a: a.create_plain(NAME), "PUT", PATH, 409),
        (lambda a: a.compact(NAME), "PUT", f"{PATH}/compaction", 409),
        (lambda a: a.offload(NAME, 7), "PUT", f"{PATH}/offload", 409),
    ],
    ids=["policies", "partitions", "delete", "create", "compact", "offload"],
)
def test_what_is_so_already_is_fine_and_any_other_refusal_is_told(
    ask: Callable[[Admin], Awaitable[object]],
    method: str,
    path: str,
    is_so_already: int,
) -> None:
    async def test(admin: Admin, _: Rest) -> None:
        assert not await ask(admin)
        with pytest.raises(AdminRefusedError, match=rf"{method} .*: 412 no"):
            await ask(admin)

    answers = [(is_so_already, {"reason": "?"}), (412, {"reason": "no"})]
    # What of a topic that is not there may have been left.
    run({(method, path): answers, ("GET", SPACE): [(200, [])]}, test)


def test_a_topic_that_may_not_be_made_or_extended_is_told() -> None:
    async def test(admin: Admin, _: Rest) -> None:
        with pytest.raises(AdminRefusedError, match=r"PUT .*: 412 too many"):
            await admin.create(ORDERS, 3)
        with pytest.raises(AdminRefusedError, match=r"POST .*: 412 too many"):
            await admin.create(ORDERS, 3)

    no = [(412, {"reason": "too many"})]
    known = [(404, {"reason": "?"}), (200, {"partitions": 2}), (200, {"partitions": 2})]
    run(
        {
            ("GET", PARTITIONS): known,
            ("PUT", PARTITIONS): no,
            ("POST", PARTITIONS): [*no],
        },
        test,
    )


def test_the_open_ledger_has_the_entries_that_it_says() -> None:
    async def test(admin: Admin, _: Rest) -> None:
        assert await admin.ledgers(ORDERS, 2) == [(4, 10), (9, 7)]

    stats = {
        "ledgers": [{"ledgerId": 4, "entries": 10}, {"ledgerId": 9, "entries": 0}],
        "currentLedgerEntries": 7,
    }
    run({("GET", f"{PATH}-partition-2/internalStats"): [(200, stats)]}, test)


def test_an_index_goes_on_where_the_newest_ledger_began() -> None:
    async def test(admin: Admin, _: Rest) -> None:
        assert await admin.next_index(ORDERS, 2) == 0
        assert await admin.next_index(ORDERS, 2) == 5

    counted = {"ledgers": [], "properties": {"index": "4"}}
    path = f"{PATH}-partition-2/internal-info"
    run({("GET", path): [(200, {"ledgers": []}), (200, counted)]}, test)


def test_a_broker_that_cannot_tell_an_index_is_taken_as_it_is() -> None:
    async def test(admin: Admin, _: Rest) -> None:
        assert await admin.position(ORDERS, 0, 5) is None
        assert await admin.position(ORDERS, 0, 5) == (3, 1)

    path = f"{PATH}-partition-0/getMessageIdByIndex?index=5"
    found = {"ledgerId": 3, "entryId": 1, "partitionIndex": -1}
    run({("GET", path): [(404, {"reason": "?"}), (200, found)]}, test)


def test_a_namespace_is_made_with_its_tenant_whoever_does_so_meanwhile() -> None:
    async def test(admin: Admin, rest: Rest) -> None:
        assert await admin.make_namespace("rocketmq/c") == {"properties": None}
        assert rest.asked[3] == (
            "PUT",
            "/admin/v2/tenants/rocketmq",
            '{"allowedClusters":["east","west"]}',
        )

    run(
        {
            ("PUT", "/admin/v2/namespaces/rocketmq/c"): [(404, None), (409, None)],
            ("GET", "/admin/v2/namespaces/rocketmq/c"): [
                (404, None),  # not shown yet
                (200, {"properties": None}),
            ],
            ("GET", "/admin/v2/clusters"): [
                (200, ["global"]),  # Pulsar has just been started
                (200, ["east", "global", "west"]),
            ],
            ("PUT", "/admin/v2/tenants/rocketmq"): [(409, None)],
        },
        test,
    )


def test_a_pulsar_that_names_no_cluster_is_told(monkeypatch) -> None:
    async def test(admin: Admin, _: Rest) -> None:
        with pytest.raises(LogUnavailableError, match="Pulsar names no cluster"):
            await admin.make_namespace("rocketmq/c")

    monkeypatch.setattr(module, "SHOWN_S", (0.0, 0.0))
    run(
        {
            ("PUT", "/admin/v2/namespaces/rocketmq/c"): [(404, None)],
            ("GET", "/admin/v2/clusters"): [(200, []), (200, [])],
        },
        test,
    )
