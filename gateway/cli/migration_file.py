"""A plan as a file: what `ropeway apply` reads, and the rest as comments for people.

The values are JSON, which is YAML too; so a name like `no` stays a text.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import msgspec

from ropeway.gateway.cli.migration_checks import counted, size_text
from ropeway.gateway.cli.migration_plan import client_counts, sets
from ropeway.gateway.cli.times import time_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ropeway.client.admin_broker_facts import BrokerFacts
    from ropeway.client.admin_doctor import Check
    from ropeway.client.admin_under_way import UnderWay
    from ropeway.gateway.cli.migration_plan import Plan, Planned

_WIDTH = 80
_USAGE = (
    "Edit it: delete what is not to move. `ropeway diff -f FILE` prints what differs "
    "at the target, and `ropeway apply -f FILE` creates it there. Messages and offsets "
    "are not copied by either; docs/how-to/migrate.md says how to drain the source."
)
_KINDS = {
    "retry": "messages that failed and wait to be tried again",
    "dead": "dead letters; they stay at the source, where `ropeway message dlq replay` "
    "sends them again",
    "delayed": "messages of delay levels that are not due; the source delivers them, "
    "as long as it runs",
    "timed": "messages with a delivery time that has not come; likewise",
    "half": "half messages of transactions that the source has not checked yet",
    "popped": "records of pops and of their acknowledgements, for up to 32 messages "
    "each, that the source has not done with",
}
"""What is said of each kind of `UnderWay`."""


def lines(plan: Plan, *, name: str, target: str, now_ms: int) -> Iterator[str]:
    """The lines of the file.

    Args:
        plan: What is in it.
        name: The source's, as the user says it.
        target: The name servers of the target.
        now_ms: When it was made.
    """
    yield from _comment(
        f"Plan of a migration from {name} to {target}, made by `ropeway migrate plan` "
        f"at {time_text(now_ms)}. Nothing was changed at either."
    )
    yield "#"
    yield from _comment(_USAGE)
    yield "#"
    yield from _source(plan)
    yield from _checks("Problems of the clusters:", plan.checks, "problem")
    yield from _checks("Warnings:", plan.checks, "warning")
    yield from _sets(plan)
    yield from _under_way(plan.source.under_way)
    if plan.source.untold:
        yield "#"
        yield "# What the source does not tell:"
        for one in plan.source.untold:
            yield from _comment(one, "#   ")
    for kind in ("topics", "groups", "users"):
        yield from _section(kind, getattr(plan, kind))
    yield from _policies(plan.policies)


def _source(plan: Plan) -> Iterator[str]:
    yield "# The source:"
    for broker in plan.source.brokers:
        yield from _comment(_broker(broker), "#   ")
    counts = [f"{kind}: {count}" for kind, count in client_counts(plan.source)]
    yield from _comment(f"connected clients: {', '.join(counts) or 'none'}", "#   ")


def _broker(broker: BrokerFacts) -> str:
    words = "Ropeway" if broker.is_ropeway else "RocketMQ"
    version = broker.version.removeprefix("Ropeway ").removeprefix("V")
    text = f"broker {broker.broker} at {broker.address}, {words} "
    text += version.replace("_", ".")
    if broker.stored_bytes is not None:
        text += f", {size_text(broker.stored_bytes)} of messages of all topics"
    return text


def _checks(title: str, found: Sequence[Check], state: str) -> Iterator[str]:
    some = [one for one in found if one.state == state]
    if some:
        yield "#"
        yield f"# {title}"
    for one in some:
        yield from _check(one, "#   ")


def _check(one: Check, indent: str) -> Iterator[str]:
    yield from _comment(f"{one.state}: {one.text}", indent)
    if one.advice:
        yield from _comment(f"-> {one.advice}", f"{indent}  ")


def _sets(plan: Plan) -> Iterator[str]:
    if found := sets(plan):
        yield "#"
        yield "# Topics that belong together, as one group reads several of them:"
    for topics, groups in found:
        text = f"{', '.join(topics)}; read by {', '.join(groups)}"
        yield from _comment(text, "#   ")


def _under_way(found: Sequence[UnderWay]) -> Iterator[str]:
    if not found:
        return
    yield "#"
    yield "# Under way at the source, delivered to nobody yet:"
    for one in found:
        most = "at most " if one.is_bound else ""
        where = f"{one.broker}: " if one.broker else ""
        yield from _comment(f"{where}{most}{one.messages:,} {_KINDS[one.kind]}", "#   ")
        for topic, count in sorted(one.topics.items()):
            yield from _comment(f"{topic}: {count:,}", "#     ")


def _section(kind: str, planned: Sequence[Planned]) -> Iterator[str]:
    moving = [one for one in planned if one.moves]
    if not planned:
        return
    yield ""
    yield f"{kind}:" if moving else f"# {kind}: none that moves"
    for one in planned:
        sign = "" if one.moves else "# "
        for note in one.notes:
            yield from _comment(note, "  # ")
        for check in one.checks:
            yield from _check(check, "  # ")
        yield f"  {sign}{_json(one.name)}:" + ("" if one.setup else " {}")
        for key, value in one.setup.items():
            yield f"  {sign}  {key}: {_json(value)}"
        if kind == "users":
            yield f"  {sign}  # password_file: FILE"


def _policies(planned: Sequence[Planned]) -> Iterator[str]:
    if planned:
        yield ""
        yield "policies:"
    for one in planned:
        begin = "- "
        for key, value in one.setup.items():
            yield f"{begin}{key}: {_json(value)}"
            begin = "  "


def _comment(text: str, indent: str = "# ") -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=0).decode()


def summary(plan: Plan) -> str:
    """One line for the standard error: what moves, and what does not."""
    left = [one for one in plan.everything if not one.moves]
    return (
        f"{counted(len(plan.everything) - len(left), 'thing')} planned, "
        f"{len(left)} left out, {counted(len(plan.problems()), 'problem')}"
    )
