"""The laws that hold for the whole tree, where no other tool checks them."""

import ast
import gc
import re
import subprocess
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PACKAGES = ["acl", "gateway", "ropeway", "routing", "storage"]
MOST_LINES = 400
"""A file of more has more than one purpose."""

WITHOUT_TEST_FILE = {
    "*/__init__.py": "says what a package is for and what it offers",
    "*/api.py": "a contract; tests/contracts holds every implementation to it",
    "acl/administration.py": "a contract; test_management.py holds what keeps it",
    "acl/principal.py": "a contract; the tests of hooks hold what keeps it",
    "acl/audit_api.py": "a contract; test_audit.py holds what keeps it",
    "storage/replication.py": "a contract, likewise",
    "storage/compaction_api.py": "a contract, likewise",
    "storage/plugin_api.py": "a contract, likewise",
    "storage/trim_api.py": "a contract, likewise",
    "storage/native.py": "a contract, likewise",
    "storage/offsets.py": "a contract, likewise",
    "storage/pulsar/append_path.py": "a contract, of two that are tested",
    "storage/state.py": "a contract, likewise",
    "gateway/cli/rows/*.py": "declarations; test_schema.py goes through all",
    "gateway/errors.py": "names of errors; the tests of what raises them use them",
    "gateway/node/link.py": "a contract; the tests of connections hold what keeps it",
    "gateway/http/state.py": "what handlers have at hand; the test of each uses it",
    "gateway/tracing/event.py": "data; test_spans.py says all of it",
    "ropeway/common/slow_reads.py": "data; test_traced.py and test_fetcher.py use it",
    "gateway/processors/all.py": "a list of imports; tests of dispatch need it whole",
    "gateway/wire/commands/*.py": "declarations; test_commands.py goes through all",
    "ropeway/pytest_plugin.py": "fixtures, which test_testing.py and others use",
    "gateway/worker_process.py": "a start of what test_worker.py is for, which uses it",
}

HOMES = {
    "aiohttp": [
        "acl/pulsar/token_rest.py",
        "gateway/http/*",
        "storage/pulsar/oauth2.py",
        "storage/pulsar/rest.py",
    ],
    "click": ["gateway/cli/*"],
    "cramjam": ["storage/pulsar/compression.py", "storage/sealed/compression.py"],
    "cryptography": [
        "acl/pulsar/keys.py",
        "acl/vault.py",
        "gateway/self_signed.py",
    ],
    "google_crc32c": ["storage/pulsar/frames.py"],
    "hpack": ["gateway/http2/hpack_decoder.py"],
    "grpc": ["gateway/grpc/grpcio.py"],
    "kazoo": ["routing/zookeeper/*"],
    "opentelemetry": ["gateway/http/metrics/otlp.py", "gateway/tracing/spans.py"],
    "obstore": ["storage/tiered/objects.py"],
    "lark": ["gateway/node/sql/*"],
    "google": ["gateway/grpc/*"],
    "numpy": [
        "ropeway/spark/frames.py",
        "ropeway/spark/message_encoder.py",
        "ropeway/spark/pairs.py",
        "ropeway/spark/wire_entries.py",
    ],
    "playwright": [],  # tests drive a browser with it
    "prometheus_client": [],  # its parser reads our metrics in tests
    "pyarrow": ["ropeway/spark/*", "ropeway/streams/*"],
    "pyspark": ["ropeway/spark/*", "ropeway/streams/*"],
    "pulsar": [],  # Ropeway has a client of its own; tests compare with this one
    "pytest": ["ropeway/pytest_plugin.py"],
    "rocksdict": ["gateway/node/rocks.py"],
    "jwt": ["acl/pulsar/keys.py", "acl/pulsar/tokens.py"],
    "ssl": [
        "acl/pulsar/token_rest.py",
        "gateway/app.py",
        "gateway/cli/checks.py",
        "gateway/node/forwarder.py",
        "gateway/tls.py",
        "ropeway/client/*",
        "ropeway/spark/options.py",
        "storage/pulsar/admin.py",
        "storage/pulsar/client.py",
        "storage/pulsar/oauth2.py",
        "storage/pulsar/tls.py",
        "storage/pulsar/rest.py",
    ],
    "yaml": ["acl/plain_file.py", "gateway/cli/declared.py"],
    "sqlite3": [
        "routing/database.py",
        "routing/embedded.py",
        "storage/file/*",
        "storage/tiered/metadata.py",
    ],
}
"""Where a library is used; everywhere else, what is built on it there."""

# In two pieces each, so that this file does not break its own law.
HOSTS = [
    f"{name}.{domain}"
    for name, domain in [
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("repo1.maven", "org"),
        ("repo.maven.apache", "org"),
        ("proxy.golang", "org"),
        ("sum.golang", "org"),
        ("registry.npmjs", "org"),
        ("deb.debian", "org"),
        ("crates", "io"),
    ]
]
FORBIDDEN = re.compile(
    "|".join(
        [
            r"(?<![\w.$}~-])/(?:home|mnt|opt|root|tmp|var|work)/",
            r"\b[Ss]hared/",
            *(re.escape(host) for host in HOSTS),
        ]
    )
)


@cache
def _all_files() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    return [name for name in sorted(set(listed)) if (ROOT / name).is_file()]


@cache
def files(pattern: str = "*") -> list[str]:
    """Every file of the project that git keeps or would keep."""
    return [name for name in _all_files() if fnmatch(name, pattern)]


def sources() -> list[str]:
    """Every Python file of the packages that are installed."""
    return [name for name in files("*.py") if name.split("/")[0] in PACKAGES]


@cache
def tree(name: str) -> ast.Module:
    parsed = ast.parse((ROOT / name).read_text(), name)
    # All trees stay. A look for garbage among them takes a third of a second, and a
    # test that comes later in this process may ask for hundreds.
    gc.freeze()
    return parsed


@cache
def imported(name: str) -> set[str]:
    """The top-level names that a file imports."""
    found = set()
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def excuse(name: str) -> str | None:
    """The pattern that lets a source file go without a test file."""
    return next((one for one in WITHOUT_TEST_FILE if fnmatch(name, one)), None)


def test_there_is_something_to_check() -> None:
    assert "gateway/server.py" in sources()
    assert "README.md" in files("*.md")


@pytest.mark.parametrize("where", [*PACKAGES, "tests", "benchmarks", "scripts"])
def test_the_first_line_of_a_file_says_what_it_is_for(where: str) -> None:
    said = re.compile(r'(#!.*\n)?r?"""\s*\S')
    silent = [
        name
        for name in files(f"{where}/*.py")
        if not said.match((ROOT / name).read_text())
    ]
    assert not silent, "\n".join(silent)


def test_a_source_file_has_a_test_file_of_the_same_path() -> None:
    missing = []
    for name in sources():
        path = Path(name)
        test = Path("tests", path.parent, f"test_{path.name}")
        if excuse(name) is None and not (ROOT / test).is_file():
            missing.append(f"{name}: no {test}")
    assert not missing, "\n".join(missing)


def test_every_excuse_is_needed() -> None:
    assert {excuse(name) for name in sources()} - {None} == set(WITHOUT_TEST_FILE)


def test_a_file_has_one_purpose_and_no_more_lines_than_that_takes() -> None:
    lengths = {
        name: len((ROOT / name).read_text().splitlines()) for name in files("*.py")
    }
    assert {n: lines for n, lines in lengths.items() if lines > MOST_LINES} == {}


def test_sql_has_no_numbered_places() -> None:
    """From Python 3.14 on they are names, which no sequence has."""
    found = [
        name for name in sources() if re.search(r"= \?\d", (ROOT / name).read_text())
    ]
    assert not found


def test_every_private_name_of_a_module_is_used() -> None:
    named = re.compile(r"^(_[A-Za-z]\w*)(?:: [^=]+)? = ", re.MULTILINE)
    unused = []
    for name in sources():
        text = (ROOT / name).read_text()
        unused += [
            f"{name}: {private}"
            for private in named.findall(text)
            if len(re.findall(rf"\b{private}\b", text)) == 1
        ]
    assert not unused


@pytest.mark.parametrize("library", HOMES)
def test_a_library_stays_where_it_belongs(library: str) -> None:
    strays = [
        name
        for name in sources()
        if library in imported(name)
        and not any(fnmatch(name, home) for home in HOMES[library])
    ]
    assert not strays, "\n".join(strays)


def test_no_file_names_a_path_or_a_host_of_some_machine() -> None:
    found = []
    for name in files():
        text = (ROOT / name).read_bytes().decode(errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            if match := FORBIDDEN.search(line):
                found.append(f"{name}:{number}: {match.group()}")
    assert not found, "\n".join(found)


def _is_text_without_encoding(call: ast.Call) -> bool:
    """Whether a call reads or writes text as the machine's locale has it."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    given = {one.arg: one.value for one in call.keywords}
    if "encoding" in given:
        return False
    if name in {"run", "Popen"}:
        return "text" in given
    if name == "open":
        modes = [*call.args, *given.values()]
        known = [one.value for one in modes if isinstance(one, ast.Constant)]
        return any(re.fullmatch("[rwax][+t]?", str(mode)) for mode in known)
    # Its arguments are text, then its encoding.
    return len(call.args) <= {"read_text": 0, "write_text": 1}.get(name, -1)


def test_text_has_an_encoding_whatever_the_locale_of_the_machine() -> None:
    found = [
        f"{name}:{node.lineno}"
        for name in sources()
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Call) and _is_text_without_encoding(node)
    ]
    assert not found, "\n".join(found)


SYSTEM_ERRORS = {"OSError", "TimeoutError", "socket.gaierror", "ssl.SSLError"}


def _caught(handler: ast.ExceptHandler) -> set[str]:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {ast.unparse(kind) for kind in kinds if kind is not None}


def _python_s_words(handler: ast.ExceptHandler) -> Iterator[str]:
    """Where a handler takes the text of what it caught as Python has it."""
    for node in ast.walk(handler):
        match node:
            case ast.FormattedValue(value=ast.BoolOp(values=[ast.Name(id=name), *_])):
                pass
            case ast.FormattedValue(value=ast.Name(id=name)):
                pass
            case ast.Call(func=ast.Name(id="str" | "repr"), args=[ast.Name(id=name)]):
                pass
            case _:
                continue
        if name == handler.name:
            yield ast.unparse(node)


def test_errors_of_the_system_are_told_in_its_words() -> None:
    """Python's text has numbers, paths and addresses that no client needs."""
    found = {
        f"{name}:{handler.lineno}: {words}; ropeway.common.reasons has words for all"
        for name in sources()
        for handler in ast.walk(tree(name))
        if isinstance(handler, ast.ExceptHandler) and _caught(handler) & SYSTEM_ERRORS
        for words in _python_s_words(handler)
    }
    assert found == set()


def anchors(page: Path) -> set[str]:
    """What a link can point at in a page: its headings, as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one).lower().replace(" ", "-") for one in headings}


def links(name: str) -> Iterator[tuple[str, str]]:
    """The relative links of a page, as path and anchor."""
    text = re.sub(
        r"^```.*?^```", "", (ROOT / name).read_text(), flags=re.MULTILINE | re.DOTALL
    )
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"\w+:", target):
            path, _, anchor = target.partition("#")
            yield path, anchor


@pytest.mark.parametrize("name", files("*.md"))
def test_every_link_of_a_page_leads_somewhere(name: str) -> None:
    broken = []
    for path, anchor in links(name):
        target = (ROOT / name).parent / path if path else ROOT / name
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{path}#{anchor}")
    assert not broken, "\n".join(broken)


def test_every_page_of_the_docs_is_in_their_index() -> None:
    indexed = {
        str((ROOT / index).parent.joinpath(path).resolve().relative_to(ROOT))
        for index in ("docs/README.md", "docs/architecture/README.md")
        for path, _ in links(index)
        if path
    }
    assert set(files("docs/*.md")) - indexed == {"docs/README.md"}


def test_every_dependency_is_pinned_and_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    wanted = {
        re.split(r"[^\w-]", one)[0]
        for one in (
            *project["dependencies"],
            *(one for extra in extras for one in extra),
        )
    }
    pinned = re.findall(
        r"^([\w-]+)==", (ROOT / "requirements/dev.txt").read_text(), re.MULTILINE
    )
    explained = re.findall(
        r"^\| ([\w-]+) \|", (ROOT / "docs/dependencies.md").read_text(), re.MULTILINE
    )
    assert {canonicalize_name(name) for name in wanted} - set(pinned) == set()
    assert wanted - set(explained) == set()


@pytest.mark.parametrize("page", ["security.md", "pulsar-tokens.md"])
def test_every_attack_names_tests_that_are_there(page: str) -> None:
    rows = [
        line
        for line in (ROOT / "docs" / page).read_text().splitlines()
        if line.startswith("|") and "test_" in line
    ]
    there = set()
    for file in (ROOT / "tests").rglob("test_*.py"):
        there |= {file.stem, *re.findall(r"def (test_\w+)\(", file.read_text())}
    assert rows
    for row in rows:
        assert set(re.findall(r"test_\w+", row)) <= there, row
