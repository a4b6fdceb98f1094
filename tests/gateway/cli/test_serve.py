"""`ropeway serve`, as a process; where it refuses to start, in this one."""

import asyncio
import contextlib
import errno
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner, Result

from ropeway.gateway import logs
from ropeway.gateway.cli.main import main
from ropeway.gateway.wire.frame import encode_frame
from ropeway.gateway.wire.header import Header, row_of, to_fields
from tests.copies import killed_copy
from tests.requests import pulling, sending

TIMEOUT_S = 120.0
SMALL = "[log]\nsegment_bytes = 1048576\n"
"""Settings: where files lie in memory, 128 MiB set aside take 0.05 s of CPU."""
COMMAND = [sys.executable, "-m", "ropeway.gateway.cli.main"]

Serve = Callable[..., subprocess.Popen[str]]


class Node(NamedTuple):
    """One that runs, and is only looked at."""

    process: subprocess.Popen[str]
    data: Path
    printed: list[str]
    """All lines of its start but the last two."""

    @property
    def address(self) -> str:
        """Where it listens."""
        return self.printed[0].split()[2]


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Serve]:
    """Give what starts `ropeway serve` on a free port with its data in a folder."""
    started: list[subprocess.Popen[str]] = []

    def start(
        *args: str, listen: tuple[str, ...] = ("127.0.0.1:0",), **more: object
    ) -> subprocess.Popen[str]:
        command = [*COMMAND, "serve", "--data", str(folder / "data")]
        if "--config" not in args:
            (folder / "small.toml").write_text(SMALL)
            command += ["--config", str(folder / "small.toml")]
        for one in listen:
            command += ["--listen", one]
        process = subprocess.Popen(
            [*command, *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": ":".join(filter(None, sys.path))},
            **more,
        )
        started.append(process)
        return process

    try:
        yield start
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def serve(tmp_path) -> Iterator[Serve]:
    with serving(tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def node(tmp_path_factory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("node")
    with serving(folder) as start:
        process = start(
            *("--flush", "sync", "--http", "127.0.0.1:0", "--no-auto-create"),
            *("--topic", "orders:1"),
        )
        lines = listening(process)
        yield Node(process, folder / "data", [*lines, process.stdout.readline()])


def listening(process: subprocess.Popen[str]) -> list[str]:
    """What a node prints once it listens, up to the first line of the hint."""
    lines = []
    while line := process.stdout.readline():
        lines.append(line.rstrip("\n"))
        if line.startswith("Point a client"):
            return lines
    raise AssertionError(process.communicate()[1])


def refused(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code and the one line of a node that cannot start."""
    _, errors = process.communicate(timeout=TIMEOUT_S)
    (line,) = errors.splitlines()
    return process.returncode, line.removeprefix("Error: ")


def refused_here(
    monkeypatch: pytest.MonkeyPatch, data: Path, *args: str
) -> tuple[int, str]:
    """The same of one that is refused before anybody can come: this process is it."""
    monkeypatch.setattr(logs, "configure", lambda *_: None)
    # What a process of its own is told of garbage and files is not for this one.
    monkeypatch.setattr(import_module("ropeway.gateway.cli.serve"), "run", asyncio.run)
    result = CliRunner().invoke(main, ["serve", "--data", str(data), *args])
    (line,) = result.output.splitlines()
    return result.exit_code, line.removeprefix("Error: ")


def test_it_prints_where_it_listens_and_how_to_come_there(node):
    first, *_, hint, java = node.printed
    match = re.fullmatch(
        r"listening on (127\.0\.0\.1:\d+) advertised as (127\.0\.0\.1:\d+)", first
    )
    assert match
    assert match[1] == match[2] != "127.0.0.1:0"
    assert hint == f"Point a client at name server {match[1]}, for example"
    assert java.strip() == f'Java:   producer.setNamesrvAddr("{match[1]}");'


def test_several_listeners_have_addresses_of_their_own(serve, tmp_path):
    ready = tmp_path / "ready"
    ready.write_text("of before")
    (tmp_path / "open").hardlink_to(ready)
    listen = ("127.0.0.1:0=127.0.0.2:4711", "[::1]:0")
    lines = listening(serve("--ready-file", str(ready), listen=listen))[:-1]
    assert lines[0].endswith(" advertised as 127.0.0.2:4711")
    assert re.fullmatch(
        r"listening on (\[::1\]:\d+) advertised as (\[::1\]:\d+)", lines[1]
    )
    assert ready.read_text().splitlines() == lines
    # It came into its place whole: nobody can read the half of it.
    assert (tmp_path / "open").read_text() == "of before"


def test_it_says_where_its_page_is_and_serves_it(node):
    (page,) = [one for one in node.printed if one.startswith("page, metrics and")]
    site = page.removeprefix("page, metrics and health at ")
    with urllib.request.urlopen(f"{site}/readyz", timeout=TIMEOUT_S) as answer:
        assert answer.status == 200
    with urllib.request.urlopen(f"{site}/", timeout=TIMEOUT_S) as answer:
        assert b"<title>Ropeway</title>" in answer.read()


@pytest.mark.parametrize(
    ("number", "form", "said"),
    [
        (signal.SIGTERM, "text", "event=stopped"),
        (signal.SIGINT, "json", '"event":"stopped"'),
    ],
)
def test_a_signal_stops_it_in_good_order_and_its_log_says_so(serve, number, form, said):
    process = serve("--log-format", form)
    listening(process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, errors
    assert said in errors
    assert "Traceback" not in errors


def test_a_second_signal_ends_it_at_once(serve, tmp_path):
    (tmp_path / "r.toml").write_text("shutdown_ms = 600000\n")
    process = serve("--config", str(tmp_path / "r.toml"))
    host, port = listening(process)[0].split()[2].split(":")
    with socket.create_connection((host, int(port))) as client:
        # Answers that are not taken are what a stopping node waits for.
        send_frame(client, sending("orders"), b"x" * 4_000_000)
        assert client.recv(4096)
        for _ in range(16):
            send_frame(client, pulling("orders"))
        process.send_signal(signal.SIGTERM)
        while "event=stopping" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        process.wait(TIMEOUT_S)
    assert process.returncode == -signal.SIGTERM


def send_frame(client: socket.socket, header: Header, body: bytes = b"") -> None:
    code = row_of(type(header)).code
    client.sendall(encode_frame(code, 1, fields=to_fields(header), body=body))


def test_an_address_in_use_is_one_line(node, monkeypatch, tmp_path):
    assert refused_here(monkeypatch, tmp_path, "--listen", node.address) == (
        1,
        f"cannot listen on {node.address}: {os.strerror(errno.EADDRINUSE)}",
    )


def test_a_directory_in_use_names_the_process(node, monkeypatch):
    code, line = refused_here(monkeypatch, node.data, "--listen", "127.0.0.1:0")
    assert code == 1
    assert line == (
        f"{node.data / 'log'} is in use by process {node.process.pid}; "
        "one directory serves one process"
    )


def test_a_directory_that_cannot_be_made_is_one_line(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    code, line = refused_here(monkeypatch, tmp_path / "file" / "data")
    assert code == 1
    assert str(tmp_path / "file") in line


def test_a_full_disk_is_one_line(serve):
    def limit() -> None:
        # The system refuses to write more than that to any file.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))

    code, line = refused(serve(preexec_fn=limit))
    assert code == 1
    assert "data" in line


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ('brokr = "x"', "brokr is not a setting; the nearest is broker"),
        ('delay_levels = "1x"', "delay_levels: delay level '1x'; allowed: like 10s"),
        (
            "[log]\nsegment_bytes = 5",
            "log: segment_bytes is 5; allowed: 65536 to 2147483648",
        ),
        ('[tls]\ncertificate = "none"\nkey = "none"', "tls: none and none cannot be"),
        ('broker = "a b"', "broker is 'a b'; allowed: "),
    ],
)
def test_a_bad_setting_is_one_line_and_exit_code_2(
    monkeypatch, tmp_path, setting, complaint
):
    path = tmp_path / "r.toml"
    path.write_text(setting)
    code, line = refused_here(monkeypatch, tmp_path / "data", "--config", str(path))
    assert code == 2
    assert line.startswith(complaint)


def test_a_process_with_a_bad_setting_ends_with_that_line_alone(serve, tmp_path):
    path = tmp_path / "r.toml"
    path.write_text('brokr = "x"')
    assert refused(serve("--config", str(path))) == (
        2,
        "brokr is not a setting; the nearest is broker",
    )


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["--tls-cert", "c.pem"], "tls.key is missing"),
        (["--config", "none.toml"], "cannot read none.toml: No such file"),
        (["--listen", "here"], "listener is 'here'; allowed: HOST:PORT"),
        (["--cluster", "a b"], "cluster is 'a b'; allowed: "),
    ],
)
def test_a_bad_option_is_one_line_and_exit_code_2(
    monkeypatch, tmp_path, args, complaint
):
    code, line = refused_here(monkeypatch, tmp_path / "data", *args)
    assert code == 2
    assert line.startswith(complaint)


def send(address: str, topic: str, *texts: str) -> Result:
    return CliRunner().invoke(
        main,
        ["produce", topic, "--queue", "0", "--name-server", address],
        input="".join(f"{text}\n" for text in texts),
    )


def killed_with(node: Node, data: Path, *texts: str) -> None:
    """Make a directory be what a kill would leave of a node with these messages."""
    assert send(node.address, "orders", *texts).exit_code == 0
    killed_copy(node.data, data)


def damage(data: Path, text: bytes) -> Path:
    """Flip bits in a stored message."""
    (segment,) = (
        path for path in (data / "log").iterdir() if text in path.read_bytes()
    )
    segment.write_bytes(segment.read_bytes().replace(text, text.swapcase()))
    return segment


def test_what_recovery_cut_off_is_said_and_kept(node, serve, tmp_path):
    killed_with(node, tmp_path / "data", "whole", "torn off")
    damage(tmp_path / "data", b"torn off")
    recovered = listening(serve())[0]
    match = re.fullmatch(
        r"recovered: \d+ bytes at the end of the log were not whole; "
        r"they are kept in (.+)",
        recovered,
    )
    assert match
    assert b"TORN OFF" in (tmp_path / "data" / "log" / match[1]).read_bytes()


@pytest.mark.slow
def test_a_damaged_middle_is_refused_with_the_way_out(
    node, serve, monkeypatch, tmp_path
):
    data = tmp_path / "data"
    killed_with(node, data, "first message", "second message", "third message")
    segment = damage(data, b"first message")
    code, line = refused_here(monkeypatch, data)
    assert code == 1
    assert str(segment) in line
    assert 'on_damage="skip"' in line
    (tmp_path / "skip.toml").write_text('[log]\non_damage = "skip"\n')
    listening(serve("--config", str(tmp_path / "skip.toml")))


def test_sending_makes_no_topic_where_that_is_switched_off(node):
    refusal = send(node.address, "nowhere", "x")
    assert refusal.exit_code == 1
    assert "nowhere" in refusal.stderr
