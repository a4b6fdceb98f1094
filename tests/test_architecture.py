"""Laws of docs/architecture that the source itself can break."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.test_laws import ROOT, sources, tree

if TYPE_CHECKING:
    from collections.abc import Iterator

OPENS_SOCKETS = {
    *("listen", "create_server", "start_server", "create_unix_server"),
    *("start_unix_server", "TCPSite", "UnixSite", "TCPServer", "HTTPServer"),
    *("add_insecure_port", "add_secure_port"),
}
"""Functions and classes that begin to listen: of sockets, asyncio, aiohttp, gRPC."""

DATA = {
    *("__future__", "base64", "binascii", "collections", "dataclasses", "enum"),
    *("functools", "hashlib", "hmac", "importlib", "ipaddress", "itertools", "json"),
    *("math", "msgspec", "operator", "re", "struct", "types", "typing", "zlib"),
}
"""Modules that compute."""

DOES_IO = {"open", "print", "input", "exec", "eval"}

WITH_THREADS = {
    "acl/bootstrap.py": "reads a file",
    "acl/plain.py": "reads a file",
    "gateway/cli/spark_jobs.py": "has Spark cancel jobs",
    "gateway/grpc/messages.py": "inflates large messages",
    "gateway/http/day_history.py": "reads and writes a file",
    "gateway/http/exporter.py": "sends a page of metrics",
    "gateway/http/metrics/of_workers.py": "adds up pages of metrics",
    "gateway/lite/views.py": "sorts copies of numbers",
    "gateway/node/sql/condition.py": "compiles long expressions",
    "gateway/node/index_thread.py": "waits for RocksDB",
    "routing/database.py": "commits to a disk",
    "routing/zookeeper/session.py": "has kazoo wait for ZooKeeper",
    "storage/*": "waits for disks",
}
"""Which files start threads, and what these do."""

WITH_CACHES = {
    "acl/addresses.py": "addresses of connections",
    "acl/signature.py": "secrets of users",
    "gateway/node/native.py": "topics; hosts, short ones",
    "gateway/node/transactions/records.py": "topics that are there",
    "gateway/processors/context.py": "request codes",
    "gateway/processors/needs.py": "topics, short ones",
    "gateway/processors/pop.py": "expressions, short ones",
    "gateway/wire/message.py": "packed addresses",
    "gateway/wire/properties.py": "tags, short ones",
    "gateway/wire/receipt.py": "groups and topics, short ones",
    "storage/pulsar/end_offsets.py": "topics that are there",
    "storage/pulsar/pack.py": "numbers",
    "storage/pulsar/protobuf.py": "numbers",
}
"""Which files remember what they made of a text, and why those are not long: a
thousand that a client made as long as it may would fill the memory."""

WITH_DATABASES = {
    "gateway/node/rocks.py": "what derived stores stand on",
    "routing/database.py": "routes of a node alone",
    "routing/embedded.py": "the same",
    "storage/file/offsets.py": "offsets that consumers commit",
    "storage/tiered/metadata.py": "which objects a tier has",
}
"""Which files have a database on the node's own disk, and what of."""

DERIVED_STORES = {
    "gateway/lite/store.py",
    "gateway/node/timer/index.py",
    "gateway/pop/store.py",
}
"""Which files fold the log into one: `tests/gateway/node/test_derived_stores.py` holds
each to the contract. Transactions and batches are not among them."""

STARTS_THREADS = {
    *("ThreadPoolExecutor", "ProcessPoolExecutor", "to_thread", "run_in_executor"),
    *("Thread", "start_new_thread"),
}

MOST_PARAMETERS = 9

MOST_OF_CONSTRUCTORS = 6
"""What more would carry is a struct or a context, as `BrokerContext`. The fields of
records (structs, dataclasses, named tuples) are none that a constructor names."""

OF_A_BROKER = {"topics", "offsets", "log", "message_log", "clock", "now_ms", "host"}
"""What `BrokerContext` carries: who needs three of them is given that."""

CONTRACTS = {
    "ropeway.storage.file": "LogContract",
    "ropeway.storage.pulsar": "LogContract",
    "ropeway.routing.zookeeper": "SeveralNodesContract",
    "ropeway.tier": "ProviderContract",
}
"""What holds for a package, or for whatever is found by an entry point of a group."""


def modules(name: str) -> set[str]:
    """Every module that a file imports, or imports something from."""
    found = set()
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def top(name: str) -> set[str]:
    """The packages that a file imports."""
    return {one.split(".")[0] for one in modules(name)}


def called(name: str, *, plain: bool = False) -> set[str]:
    """The names of the functions that a file calls, and of methods unless plain."""
    functions = [n.func for n in ast.walk(tree(name)) if isinstance(n, ast.Call)]
    found = {one.id for one in functions if isinstance(one, ast.Name)}
    if not plain:
        found |= {one.attr for one in functions if isinstance(one, ast.Attribute)}
    return found


@pytest.mark.rule("README.md", "every implementation passes the tests in")
def test_every_backend_is_held_to_its_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    missing = []
    points = project["entry-points"]
    for name, contract in CONTRACTS.items():
        for target in points[name].values() if name in points else (name,):
            module = target.partition(":")[0].removeprefix("ropeway.")
            path = Path("tests", *module.split("."))
            tests = [*(ROOT / path).glob("test_*.py")]
            tests += [ROOT / path.parent / f"test_{path.name}.py"]
            if not any(
                f"({contract})" in test.read_text() for test in tests if test.exists()
            ):
                missing.append(f"{target}: no test below {path} is a {contract}")
    assert not missing, "\n".join(missing)


@pytest.mark.rule("README.md", "`gateway/wire` does no I/O and imports nothing of ours")
def test_the_wire_computes_and_does_nothing_else() -> None:
    strays = []
    for name in sources():
        if not name.startswith("gateway/wire/"):
            continue
        strays += [
            f"{name} imports {one}"
            for one in sorted(modules(name))
            if not f"{one}.".startswith(("ropeway.gateway.wire.", "ropeway.common."))
            if one.split(".")[0] not in DATA
        ]
        strays += [
            f"{name} calls {one}" for one in sorted(DOES_IO & called(name, plain=True))
        ]
    assert not strays, "\n".join(strays)


@pytest.mark.rule("README.md", "`ropeway` imports nothing else of the gateway")
def test_what_users_import_knows_the_wire_alone() -> None:
    strays = [
        f"{name} imports {one}"
        for name in sources()
        if name.startswith("ropeway/")
        for one in sorted(modules(name))
        if f"{one}.".startswith("gateway.")
        if not f"{one}.".startswith("ropeway.gateway.wire.")
    ]
    assert not strays, "\n".join(strays)


@pytest.mark.rule(
    "README.md", "`gateway/server.py` is the only file that opens listening sockets"
)
def test_only_the_server_opens_listening_sockets() -> None:
    openers = {name for name in sources() if OPENS_SOCKETS & called(name)}
    # gRPC's own library listens on a Unix socket, for the server alone.
    assert openers - {"gateway/grpc/grpcio.py"} == {"gateway/server.py"}
    assert 'add_insecure_port(f"unix:' in (ROOT / "gateway/grpc/grpcio.py").read_text()


@pytest.mark.rule(
    "README.md", "All state of a node belongs to the thread of its event loop."
)
def test_threads_are_few_and_known() -> None:
    users = {
        "storage/*" if name.startswith("storage/") else name
        for name in sources()
        if not name.startswith("ropeway/")
        if STARTS_THREADS & called(name)
    }
    assert users == set(WITH_THREADS)


@pytest.mark.rule("derived-state.md", "The log is the truth.")
def test_only_derived_stores_keep_what_the_log_says_on_a_disk() -> None:
    users = {name for name in sources() if {"sqlite3", "rocksdict"} & top(name)}
    assert users == set(WITH_DATABASES)
    stores = {
        name
        for name in sources()
        for node in ast.walk(tree(name))
        if isinstance(node, ast.ClassDef)
        if {"DerivedStore", "Rocks"} & set(map(ast.unparse, node.bases))
    }
    assert stores - {"gateway/node/derived_store.py"} == DERIVED_STORES
    tests = (ROOT / "tests/gateway/node/test_derived_stores.py").read_text()
    assert tests.count("(DerivedStoreContract)") == len(DERIVED_STORES)


def test_what_is_remembered_of_texts_is_known_to_be_short() -> None:
    users = {name for name in sources() if "lru_cache" in called(name)}
    assert users == set(WITH_CACHES)


def imports() -> dict[str, set[str]]:
    """Which modules of ours each imports, also for type checkers alone."""
    files = {
        "ropeway."
        + name.removesuffix(".py")
        .replace("/", ".")
        .removesuffix(".__init__")
        .removeprefix("ropeway."): name
        for name in sources()
    }
    return {
        module: {
            target if target in files else target.rpartition(".")[0]
            for target in modules(name)
        }
        & (files.keys() - {module})
        for module, name in files.items()
    }


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The largest sets of modules of which each reaches every other one."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen, left = set(), [start]
        while left:
            for one in graph[left.pop()] - seen:
                seen.add(one)
                left.append(one)
        reached[start] = seen
    found: list[set[str]] = []
    for module, seen in reached.items():
        if module in seen and not any(module in one for one in found):
            found.append({one for one in seen if module in reached[one]})
    return found


def test_circles_are_found() -> None:
    graph = {
        "a": {"b"},
        "b": {"a", "c"},
        "c": {"d"},
        "d": {"e"},
        "e": {"c"},
        "f": {"a"},
    }
    assert circles(graph) == [{"a", "b"}, {"c", "d", "e"}]
    assert circles({"a": {"b"}, "b": set()}) == []


def test_imports_have_no_circles_not_even_those_of_types() -> None:
    found = sorted(circles(imports()), key=len)
    assert found == [], "\n".join(", ".join(sorted(one)) for one in found)


def own_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The parameters of a function, a caller's own arguments."""
    given = node.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    return [one.arg for one in named if one.arg not in ("self", "cls")]


def parameters(name: str) -> dict[str, int]:
    """How many parameters each function of a file has."""
    counts = {}
    for node in ast.walk(tree(name)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        # click calls a command with its options, and C takes no structs of ours.
        told = [ast.unparse(one) for one in node.decorator_list]
        if not any(".command(" in one or one == "may_be_compiled" for one in told):
            counts[f"{name}:{node.name}"] = len(own_parameters(node))
    return counts


def constructors() -> Iterator[tuple[str, list[str]]]:
    """The constructors of all classes, class methods too, and their parameters."""
    for name in sources():
        for kind in ast.walk(tree(name)):
            if isinstance(kind, ast.ClassDef):
                for node in kind.body:
                    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (
                        node.name in {"__init__", "__new__"}
                        or "classmethod" in map(ast.unparse, node.decorator_list)
                    ):
                        which = f"{name}:{kind.name}.{node.name}"
                        yield which, own_parameters(node)


def test_what_many_parameters_carry_is_a_struct() -> None:
    found = {
        function: count
        for name in sources()
        for function, count in parameters(name).items()
        if count > MOST_PARAMETERS
    }
    assert found == {}


def test_no_constructor_has_many_parameters() -> None:
    found = {name: len(words) for name, words in constructors()}
    assert "gateway/pop/service.py:Pop.__init__" in found
    assert {n: many for n, many in found.items() if many > MOST_OF_CONSTRUCTORS} == {}


def test_what_a_broker_has_is_given_as_one_thing() -> None:
    found = {
        name: words
        for name, words in constructors()
        if name.startswith("gateway/") and len(OF_A_BROKER.intersection(words)) >= 3
    }
    assert found == {}
