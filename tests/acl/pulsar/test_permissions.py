"""What a role may do, how soon a change is seen, and what counts in an outage."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from ropeway.acl.api import (
    Action,
    Channel,
    Decision,
    Need,
    Principal,
    Resource,
    ResourceKind,
    Source,
)
from ropeway.acl.pulsar.admin import NOBODY, AdminError, Permissions
from ropeway.acl.pulsar.options import Options
from ropeway.acl.pulsar.permissions import PulsarPermissions
from tests.remoting import looped, until

SOURCE = Source("10.0.0.1", Channel.REMOTING)
BOTH = frozenset({"produce", "consume"})
OF_ORDERS = {"only-orders": frozenset({"consume"})}
PERMISSIONS = Permissions(
    namespace={
        "writer": frozenset({"produce"}),
        "reader": frozenset({"consume"}),
        "both": BOTH,
        "function": frozenset({"functions", "sources"}),
        "Writer": frozenset(),
    },
    topics={"persistent://acme/blue/orders": OF_ORDERS},
    any_topic=OF_ORDERS,
    subscriptions={"bills": frozenset({"reader"})},
    by_prefix=False,
    admins=frozenset({"boss"}),
)


class FakeAdmin:
    """A Pulsar that says what it is told to, or does not answer."""

    def __init__(self) -> None:
        self.spaces = {"acme/blue": PERMISSIONS}
        self.down = False
        self.asked: list[str] = []
        self.answering = asyncio.Event()
        self.answering.set()

    async def permissions(self, tenant: str, namespace: str) -> Permissions:
        self.asked.append(f"{tenant}/{namespace}")
        await self.answering.wait()
        if self.down:
            raise AdminError("Pulsar's admin REST does not answer: refused")
        return self.spaces.get(f"{tenant}/{namespace}", NOBODY)


class Setup:
    """An authorizer with a fake Pulsar and a clock that stands."""

    def __init__(self, **options: Any) -> None:
        self.admin = FakeAdmin()
        self.now_s = 1000.0
        self.changes = 0
        place = {"tenant": "public", "namespace": "default"}
        given = Options(token_secret_key="x", **place, **options)
        self.hook = PulsarPermissions(
            given, self.admin, self._changed, lambda: self.now_s
        )

    def _changed(self) -> None:
        self.changes += 1

    def opinion(
        self,
        role: str,
        actions: Action | tuple[Action, ...],
        name: str = "acme|blue%orders",
        kind: ResourceKind = ResourceKind.TOPIC,
    ) -> Decision | Awaitable[Decision | None] | None:
        who = Principal(role, "pulsar", roles=(role,))
        any_of = (actions,) if isinstance(actions, Action) else actions
        return self.hook.authorize(who, Need(Resource(kind, name), any_of), SOURCE)

    async def decision(self, *args: Any) -> Decision:
        found = self.opinion(*args)
        if isinstance(found, Awaitable):
            found = await found
        assert found is not None
        return found

    async def allowed(self, *args: Any) -> bool:
        return (await self.decision(*args)).allowed


TOPIC, GROUP = ResourceKind.TOPIC, ResourceKind.GROUP
IN = "acme|blue%"


@looped
async def test_all_topics_are_not_those_of_the_namespace_without_a_name():
    setup = Setup()
    setup.admin.spaces["public/default"] = PERMISSIONS
    assert await setup.allowed("both", Action.LIST, "orders", TOPIC)
    assert not await setup.allowed("both", Action.LIST, "*", TOPIC)
    assert not await setup.allowed("boss", Action.GET, "*", GROUP)


@pytest.mark.parametrize(
    ("role", "action", "name", "kind", "allowed"),
    [
        ("writer", Action.PUB, IN + "orders", TOPIC, True),
        ("writer", Action.SUB, IN + "orders", TOPIC, False),
        ("writer", Action.GET, IN + "orders", TOPIC, True),
        ("writer", Action.CREATE, IN + "orders", TOPIC, False),
        ("writer", Action.SUB, IN + "bills", GROUP, False),
        ("writer", Action.GET, IN + "senders", GROUP, True),
        ("reader", Action.SUB, IN + "orders", TOPIC, True),
        ("reader", Action.PUB, IN + "orders", TOPIC, False),
        ("reader", Action.SUB, f"%RETRY%{IN}bills", TOPIC, True),
        ("reader", Action.SUB, IN + "bills", GROUP, True),
        ("reader", Action.UPDATE, IN + "bills", GROUP, True),
        ("both", Action.SUB, IN + "bills", GROUP, False),
        ("both", Action.SUB, IN + "others", GROUP, True),
        ("both", Action.DELETE, IN + "orders", TOPIC, False),
        ("boss", Action.DELETE, IN + "orders", TOPIC, True),
        ("boss", Action.SUB, IN + "bills", GROUP, True),
        ("only-orders", Action.SUB, IN + "orders", TOPIC, True),
        ("only-orders", Action.PUB, IN + "orders", TOPIC, False),
        ("only-orders", Action.SUB, IN + "orders2", TOPIC, False),
        ("only-orders", Action.SUB, IN + "order", TOPIC, False),
        ("only-orders", Action.SUB, IN + "others", GROUP, True),
        ("only-orders", Action.UPDATE, IN + "others", GROUP, False),
        ("function", Action.PUB, IN + "orders", TOPIC, False),
        ("function", Action.GET, IN + "orders", TOPIC, False),
        ("nobody", Action.GET, IN + "orders", TOPIC, False),
        ("nobody", Action.GET, "TBW102", TOPIC, True),
        ("nobody", Action.PUB, "TBW102", TOPIC, False),
        ("nobody", Action.UPDATE, "TBW102", TOPIC, False),
        # Look-alikes: case, spaces, other letters that look the same.
        ("Writer", Action.PUB, IN + "orders", TOPIC, False),
        ("writer ", Action.PUB, IN + "orders", TOPIC, False),
        ("writ\u0435r", Action.PUB, IN + "orders", TOPIC, False),
        ("only-orders", Action.SUB, IN + "\u043erders", TOPIC, False),
        # Other tenants and namespaces, however they are written.
        ("both", Action.PUB, "orders", TOPIC, False),
        ("both", Action.PUB, "evil|blue%orders", TOPIC, False),
        ("both", Action.PUB, "acme|red%orders", TOPIC, False),
        ("both", Action.PUB, "acme|blue/..%orders", TOPIC, False),
        ("both", Action.PUB, "x%acme|blue%orders", TOPIC, False),
        ("both", Action.PUB, "%DLQ%evil|blue%orders", TOPIC, False),
        ("both", Action.LIST, "acme|blue", ResourceKind.NAMESPACE, True),
        ("both", Action.CREATE, "acme|blue", ResourceKind.NAMESPACE, False),
        ("both", Action.LIST, "acme|red", ResourceKind.NAMESPACE, False),
        # All topics and groups, of whatever tenant.
        ("boss", Action.LIST, "*", TOPIC, False),
        ("boss", Action.GET, "*", GROUP, False),
        ("boss", Action.GET, "DefaultCluster", ResourceKind.CLUSTER, False),
    ],
)
@looped
async def test_a_role_may_do_what_pulsar_permits(role, action, name, kind, allowed):
    assert await Setup().allowed(role, action, name, kind) is allowed


@pytest.mark.parametrize(
    ("role", "name", "kind", "allowed"),
    [
        ("writer", IN + "orders", TOPIC, False),
        ("reader", IN + "orders", TOPIC, True),
        ("only-orders", IN + "orders", TOPIC, True),
        ("only-orders", IN + "others", GROUP, True),
        ("writer", IN + "others", GROUP, False),
        # A group whose roles are named: its retry topics hold what others sent.
        ("reader", IN + "bills", GROUP, True),
        ("both", IN + "bills", GROUP, False),
        ("only-orders", IN + "bills", GROUP, False),
    ],
)
@looped
async def test_what_shows_messages_is_for_who_may_consume(role, name, kind, allowed):
    reading = (Action.SUB, Action.GET)
    assert await Setup().allowed(role, reading, name, kind) is allowed


@looped
async def test_producers_look_at_the_routes_of_their_topics():
    route = (Action.PUB, Action.SUB, Action.GET)
    assert await Setup().allowed("writer", route, IN + "orders", TOPIC)
    assert not await Setup().allowed("nobody", route, IN + "orders", TOPIC)
    assert await Setup().allowed("nobody", route, "TBW102", TOPIC)


@looped
async def test_a_subscription_begins_with_the_role_where_the_namespace_wants_it():
    setup = Setup()
    setup.admin.spaces["acme/blue"] = PERMISSIONS._replace(by_prefix=True)
    assert await setup.allowed("both", Action.SUB, IN + "both-one", GROUP)
    assert not await setup.allowed("both", Action.SUB, IN + "one", GROUP)
    assert await setup.allowed("both", Action.GET, IN + "one", GROUP)
    assert await setup.allowed("boss", Action.SUB, IN + "one", GROUP)


@looped
async def test_who_has_no_role_is_others_business():
    setup = Setup()
    need = Need(Resource(TOPIC, "orders"), (Action.PUB,))
    assert setup.hook.authorize(Principal("a", "plain"), need, SOURCE) is None
    assert setup.admin.asked == []


@looped
async def test_a_namespace_is_asked_for_once_however_many_want_to_know():
    setup = Setup()
    setup.admin.answering.clear()
    waiting = [setup.decision("writer", Action.PUB) for _ in range(50)]
    found = asyncio.gather(*waiting, setup.decision("nobody", Action.PUB))
    await until(lambda: setup.admin.asked)
    setup.admin.answering.set()
    assert [one.allowed for one in await found] == [*[True] * 50, False]
    assert setup.admin.asked == ["acme/blue"]
    assert isinstance(setup.opinion("reader", Action.SUB), Decision)


@looped
async def test_a_revocation_is_seen_at_the_next_refresh_and_said():
    setup = Setup(refresh_s=20)
    first = await setup.decision("writer", Action.PUB)
    assert first.allowed
    assert first.valid_s == 20
    await setup.hook.refresh()
    assert setup.changes == 0
    setup.admin.spaces["acme/blue"] = NOBODY
    await setup.hook.refresh()
    assert setup.changes == 1
    assert not await setup.allowed("writer", Action.PUB)
    setup.admin.spaces["acme/blue"] = PERMISSIONS
    await setup.hook.refresh()
    assert setup.changes == 2
    assert await setup.allowed("writer", Action.PUB)


@looped
async def test_what_was_said_counts_in_an_outage_for_so_long_and_no_longer():
    setup = Setup(refresh_s=20, outage_s=300)
    assert await setup.allowed("writer", Action.PUB)
    setup.admin.down = True
    setup.now_s += 290
    await setup.hook.refresh()
    late = await setup.decision("writer", Action.PUB)
    assert late.allowed
    assert late.valid_s == 10
    setup.now_s += 10
    denied = await setup.decision("writer", Action.PUB)
    assert not denied.allowed
    assert denied.valid_s == 0
    assert "does not answer" in denied.reason
    assert "try again" in denied.remark
    assert "refused" not in denied.remark
    setup.admin.down = False
    setup.now_s += 1.1
    assert await setup.allowed("writer", Action.PUB)


@looped
async def test_a_pulsar_that_is_down_is_not_asked_by_every_request():
    setup = Setup()
    setup.admin.down = True
    for _ in range(20):
        assert not await setup.allowed("writer", Action.PUB)
    assert len(setup.admin.asked) == 1
    setup.now_s += 1.1
    assert not await setup.allowed("writer", Action.PUB)
    assert len(setup.admin.asked) == 2


@looped
async def test_namespaces_that_nobody_asks_for_are_forgotten_and_none_is_too_many():
    setup = Setup(namespaces=3)
    for number in range(10):
        await setup.allowed("writer", Action.PUB, f"acme|n{number}%orders")
        await setup.allowed("writer", Action.PUB)
    assert len(setup.hook._kept) == 3
    assert setup.admin.asked.count("acme/blue") == 1
    for _ in range(31):
        await setup.hook.refresh()
    assert not setup.hook._kept
    asked = len(setup.admin.asked)
    await setup.hook.refresh()
    assert len(setup.admin.asked) == asked


@looped
async def test_what_waits_with_a_namespace_that_is_forgotten_is_judged_again():
    """Else a revocation there would be seen by nobody."""
    setup = Setup(namespaces=2)
    assert await setup.allowed("writer", Action.PUB)
    for _ in range(30):
        await setup.hook.refresh()
    assert setup.changes == 0
    await setup.hook.refresh()
    assert setup.changes == 1
    assert await setup.allowed("writer", Action.PUB)
    for number in range(9):
        await setup.allowed("writer", Action.PUB, f"acme|n{number}%orders")
    assert setup.changes == 1
    await setup.hook.refresh()
    assert setup.changes == 2
    await setup.hook.refresh()
    assert setup.changes == 2


@looped
async def test_closing_ends_questions_that_have_no_answer():
    setup = Setup()
    setup.admin.answering.clear()
    waiting = asyncio.ensure_future(setup.decision("writer", Action.PUB))
    await until(lambda: setup.admin.asked)
    await setup.hook.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@looped
async def test_a_rule_says_what_a_role_holds_and_not_what_it_lacks():
    setup = Setup()
    for role, words in (
        ("writer", "produce"),
        ("reader", "consume"),
        ("both", "consume and produce"),
    ):
        action = Action.SUB if role == "reader" else Action.PUB
        found = await setup.decision(role, action, IN + "orders", TOPIC)
        assert found.rule == f"Pulsar: {role} may {words} in acme/blue"
    found = await setup.decision("only-orders", Action.SUB, IN + "orders", TOPIC)
    assert found.rule == "Pulsar: only-orders may consume topics of acme/blue"
