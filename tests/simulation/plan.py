"""What a run does: made from its seed, and cut down by hand or by `minimise`."""

from __future__ import annotations

import random
from typing import Literal, get_args

import msgspec
from msgspec import Struct, structs

Kind = Literal[
    "kill",
    "power",
    "stop",
    "freeze",
    "clock",
    "reset",
    "half_open",
    "cut_in",
    "cut_out",
    "slow_reader",
    "slow_disk",
    "full_disk",
    "failing_sync",
    "busy",
    "twin",
    "flip",
    "rot",
    "zk_expire",
    "zk_drop",
    "zk_lose",
    "zk_half_open",
    "zk_cut",
    "zk_down",
    "ps_kill",
    "ps_unload",
    "ps_slow",
    "ps_freeze",
    "ps_cut",
    "ps_lose",
    "ps_alone",
    "ps_trim",
]
"""What can go wrong; `faults` says how each is done."""

WEIGHTS: dict[Kind, int] = {
    "kill": 4,
    "power": 4,
    "stop": 2,
    "freeze": 4,
    "clock": 3,
    "reset": 12,
    "half_open": 4,
    "cut_in": 5,
    "cut_out": 5,
    "slow_reader": 6,
    "slow_disk": 4,
    "full_disk": 2,
    "failing_sync": 1,
}
ROUTE_WEIGHTS: dict[Kind, int] = {
    "zk_expire": 3,
    "zk_drop": 6,
    "zk_lose": 4,
    "zk_half_open": 3,
    "zk_cut": 4,
    "zk_down": 1,
}
"""Those of several nodes, whose routes are in ZooKeeper."""
PULSAR_WEIGHTS: dict[Kind, int] = {
    "ps_kill": 2,
    "ps_unload": 4,
    "ps_slow": 2,
    "ps_freeze": 2,
    "ps_cut": 4,
    "ps_lose": 4,
    "ps_alone": 5,
    "ps_trim": 4,
}
"""Those of Pulsar, and of what is between it and nodes."""
OF_DISKS: tuple[Kind, ...] = ("slow_disk", "full_disk", "failing_sync")
"""Those of which nodes on Pulsar notice little: they keep nothing on a disk."""
RARE_WEIGHTS: dict[Kind, int] = {"twin": 2, "flip": 1, "rot": 2}
"""Those of which a run has few: each takes a start."""
BUSY: Kind = "busy"
"""Of which a run has some beside all others."""
assert {BUSY, *WEIGHTS, *ROUTE_WEIGHTS, *PULSAR_WEIGHTS, *RARE_WEIGHTS} == {
    *get_args(Kind)
}

LONGEST_S: dict[Kind, float] = {
    "kill": 1.5,
    "power": 2.0,
    "stop": 1.0,
    "freeze": 4.0,
    "cut_in": 3.0,
    "cut_out": 3.0,
    "half_open": 4.0,
    "slow_reader": 3.0,
    "slow_disk": 2.0,
    "full_disk": 1.5,
    "failing_sync": 0.5,
    "busy": 3.0,
    "twin": 3.0,
    "zk_lose": 1.0,
    "zk_half_open": 4.0,
    "zk_cut": 6.0,
    "zk_down": 3.0,
    "ps_kill": 3.0,
    "ps_slow": 3.0,
    "ps_freeze": 3.0,
    "ps_cut": 6.0,
    "ps_lose": 3.0,
    "ps_alone": 8.0,
}
JUMP_S = 120.0
"""How far a node's time of day is set forwards or back, at most."""


EMPTIED = 0.25
"""How often retention deletes all of a topic at the end of a run."""
APART = 20
"""Of nodes that ask each other clocks have to agree, by a minute."""


class Fault(Struct, frozen=True):
    """One fault."""

    at_s: float
    """When, in seconds from the start of the run."""
    kind: Kind
    for_s: float = 0.0
    """How long it lasts; of a clock, by how much it is set."""
    number: int = 0
    """Which of several connections or hosts it is about."""


class Plan(Struct, frozen=True):
    """All that a run does."""

    seed: int
    flush: Literal["sync", "async"] = "sync"
    load_s: float = 10.0
    """How long clients send, and faults come."""
    producers: int = 2
    batches: int = 1
    pipeliners: int = 1
    consumers: int = 2
    poppers: int = 1
    timed: int = 1
    transactions: int = 1
    makers: int = 0
    log: Literal["embedded", "pulsar"] = "embedded"
    nodes: int = 1
    """Brokers of one cluster; several have their routes in ZooKeeper."""
    copies: int = 1
    """Nodes of each broker, of which one leads; several where the log is on Pulsar."""
    empties: bool = False
    """Whether retention deletes all of a topic in the end, where Pulsar has the log."""
    pause_ms: float = 20.0
    """How long a client waits between two requests, on average."""
    faults: tuple[Fault, ...] = ()


CLIENTS = (
    *("producers", "batches", "pipeliners", "consumers"),
    *("poppers", "timed", "transactions", "makers"),
)
"""The fields of a plan that count clients."""


def made(seed: int) -> Plan:
    """The plan of a seed."""
    chance = random.Random(f"{seed}/plan")
    load_s = chance.uniform(4.0, 14.0)
    # Some runs are of one kind of fault and its echoes, most of all kinds.
    kinds = [*WEIGHTS]
    if chance.random() < 0.4:
        kinds = chance.sample(kinds, chance.randint(1, 4))
    weights = [WEIGHTS[kind] for kind in kinds]
    faults = []
    at_s = 0.3
    every_s = chance.choice([0.08, 0.15, 0.4])
    while (at_s := at_s + chance.expovariate(1 / every_s)) < load_s:
        (kind,) = chance.choices(kinds, weights)
        longest_s = LONGEST_S.get(kind, 0.0)
        for_s = chance.uniform(0.05, 1.0) ** 2 * longest_s
        if kind == "clock":
            for_s = chance.uniform(-JUMP_S, JUMP_S)
        faults.append(
            Fault(round(at_s, 3), kind, round(for_s, 3), chance.randrange(64))
        )
    nodes, route_faults = _cluster(seed, load_s)
    faults += [*route_faults, *_rare(seed, load_s), *_busy(seed, load_s)]
    faults.sort(key=lambda one: one.at_s)
    return Plan(
        seed,
        nodes=nodes,
        makers=int(nodes > 1),
        flush=chance.choice(["sync", "sync", "async"]),
        load_s=round(load_s, 3),
        producers=chance.randint(1, 3),
        batches=chance.randint(0, 1),
        pipeliners=chance.randint(0, 1),
        consumers=chance.randint(1, 3),
        poppers=chance.randint(0, 2),
        timed=chance.randint(0, 1),
        transactions=chance.randint(0, 1),
        pause_ms=chance.choice([10.0, 40.0, 120.0]),
        faults=tuple(faults),
    )


def on_pulsar(seed: int) -> Plan:
    """The plan of a seed for nodes on Pulsar."""
    plan = made(seed)
    chance = random.Random(f"{seed}/pulsar")
    weights = ROUTE_WEIGHTS | PULSAR_WEIGHTS
    kept = {BUSY, *WEIGHTS} - {*OF_DISKS}
    faults = [
        structs.replace(one, for_s=round(one.for_s / APART, 3))
        if one.kind == "clock"
        else one
        for one in plan.faults
        if one.kind in kept
    ]
    faults += _several(chance, weights, plan.load_s, chance.choice([0.2, 0.5, 1.5]))
    faults.sort(key=lambda one: one.at_s)
    return structs.replace(
        plan,
        log="pulsar",
        flush="sync",
        nodes=chance.choice([1, 1, 2]),
        copies=chance.choice([1, 2, 2, 3]),
        makers=1,
        faults=tuple(faults),
        empties=chance.random() < EMPTIED,
    )


def _several(
    chance: random.Random, weights: dict[Kind, int], load_s: float, every_s: float
) -> list[Fault]:
    """Faults of several kinds, one after the other."""
    faults: list[Fault] = []
    at_s = 0.3
    while (at_s := at_s + chance.expovariate(1 / every_s)) < load_s:
        (kind,) = chance.choices([*weights], [*weights.values()])
        for_s = chance.uniform(0.05, 1.0) * LONGEST_S.get(kind, 0.0)
        number = chance.randrange(64)
        faults.append(Fault(round(at_s, 3), kind, round(for_s, 3), number))
    return faults


def _rare(seed: int, load_s: float) -> list[Fault]:
    """Faults of which half of all runs have none."""
    chance = random.Random(f"{seed}/rare")
    faults = []
    for _ in range(chance.choice([0, 0, 1, 2])):
        (kind,) = chance.choices([*RARE_WEIGHTS], [*RARE_WEIGHTS.values()])
        for_s = chance.random() * LONGEST_S.get(kind, 0.0)
        at_s = chance.uniform(0.3, load_s)
        faults.append(
            Fault(round(at_s, 3), kind, round(for_s, 3), chance.randrange(64))
        )
    return faults


def _busy(seed: int, load_s: float) -> list[Fault]:
    """Times in which others use a node's processor, too."""
    chance = random.Random(f"{seed}/busy")
    faults = []
    for _ in range(chance.choice([0, 0, 3, 9])):
        at_s = chance.uniform(0.3, load_s)
        for_s = chance.uniform(0.2, LONGEST_S[BUSY])
        number = chance.randrange(64)
        faults.append(Fault(round(at_s, 3), BUSY, round(for_s, 3), number))
    return faults


def _cluster(seed: int, load_s: float) -> tuple[int, list[Fault]]:
    """How many nodes there are, and what goes wrong with their routes."""
    chance = random.Random(f"{seed}/cluster")
    nodes = chance.choice([1, 1, 2, 3])
    every_s = chance.choice([0.5, 1.0, 3.0])
    if nodes == 1:
        return nodes, []
    return nodes, _several(chance, ROUTE_WEIGHTS, load_s, every_s)


def dumped(plan: Plan) -> str:
    """A plan as one line of JSON, with what is not the default."""
    found = msgspec.to_builtins(plan)
    default = msgspec.to_builtins(Plan(plan.seed))
    kept = {
        name: value
        for name, value in found.items()
        if name == "seed" or value != default[name]
    }
    return msgspec.json.encode(kept).decode()


def loaded(text: str) -> Plan:
    """A plan from `dumped`'s line."""
    return msgspec.json.decode(text, type=Plan)
