"""`ropeway serve`, as a process."""

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
from pathlib import Path

import pytest

from ropeway.gateway.wire.frame import encode_frame
from ropeway.gateway.wire.header import Header, row_of, to_fields
from tests.remoting import pulling, sending

TIMEOUT_S = 120.0
COMMAND = [sys.executable, "-m", "ropeway.gateway.cli.main"]

Serve = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def serve(tmp_path) -> Iterator[Serve]:
    """Start `ropeway serve` on a free port with its data in a fresh directory."""
    started: list[subprocess.Popen[str]] = []

    def start(
        *args: str, listen: tuple[str, ...] = ("127.0.0.1:0",), **more: object
    ) -> subprocess.Popen[str]:
        command = [*COMMAND, "serve"]
        for one in listen:
            command += ["--listen", one]
        if "--data" not in args:
            command += ["--data", str(tmp_path / "data")]
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

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


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


def test_it_prints_where_it_listens_and_how_to_come_there(serve):
    process = serve()
    first, hint = listening(process)
    match = re.fullmatch(
        r"listening on (127\.0\.0\.1:\d+) advertised as (127\.0\.0\.1:\d+)", first
    )
    assert match
    assert match[1] == match[2] != "127.0.0.1:0"
    assert hint == f"Point a client at name server {match[1]}, for example"
    java = process.stdout.readline()
    assert java.strip() == f'Java:   producer.setNamesrvAddr("{match[1]}");'


def test_several_listeners_have_addresses_of_their_own(serve, tmp_path):
    ready = tmp_path / "ready"
    listen = ("127.0.0.1:0=127.0.0.2:4711", "[::1]:0")
    lines = listening(serve("--ready-file", str(ready), listen=listen))[:-1]
    assert lines[0].endswith(" advertised as 127.0.0.2:4711")
    assert re.fullmatch(
        r"listening on (\[::1\]:\d+) advertised as (\[::1\]:\d+)", lines[1]
    )
    assert ready.read_text().splitlines() == lines


@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["one", "workers"])
def test_it_says_where_its_page_is_and_serves_it(serve, workers):
    process = serve("--http", "127.0.0.1:0", *workers)
    sites = [
        line.rpartition(" ")[2]
        for line in listening(process)
        if line.startswith("page, metrics and health at ")
    ]
    assert len(set(sites)) == (2 if workers else 1)
    for site in sites:
        with urllib.request.urlopen(f"{site}/readyz", timeout=TIMEOUT_S) as answer:
            assert answer.status == 200
        with urllib.request.urlopen(f"{site}/", timeout=TIMEOUT_S) as answer:
            assert b"<title>Ropeway</title>" in answer.read()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_in_good_order(serve, number):
    process = serve()
    listening(process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, errors
    assert "event=stopped" in errors
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


def test_an_address_in_use_is_one_line(serve, tmp_path):
    address = listening(serve())[0].split()[2]
    other = serve("--data", str(tmp_path / "other"), listen=(address,))
    assert refused(other) == (
        1,
        f"cannot listen on {address}: {os.strerror(errno.EADDRINUSE)}",
    )


def test_a_directory_in_use_names_the_process(serve, tmp_path):
    first = serve()
    listening(first)
    code, line = refused(serve())
    assert code == 1
    assert line == (
        f"{tmp_path / 'data' / 'log'} is in use by process {first.pid}; "
        "one directory serves one process"
    )


def test_a_directory_that_cannot_be_made_is_one_line(serve, tmp_path):
    (tmp_path / "file").write_text("")
    code, line = refused(serve("--data", str(tmp_path / "file" / "data")))
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
def test_a_bad_setting_is_one_line_and_exit_code_2(serve, tmp_path, setting, complaint):
    path = tmp_path / "r.toml"
    path.write_text(setting)
    code, line = refused(serve("--config", str(path)))
    assert code == 2
    assert line.startswith(complaint)


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["--tls-cert", "c.pem"], "tls.key is missing"),
        (["--config", "none.toml"], "cannot read none.toml: No such file"),
        (["--listen", "here"], "listener is 'here'; allowed: HOST:PORT"),
        (["--cluster", "a b"], "cluster is 'a b'; allowed: "),
    ],
)
def test_a_bad_option_is_one_line_and_exit_code_2(serve, args, complaint):
    code, line = refused(serve(*args))
    assert code == 2
    assert line.startswith(complaint)


def send(address: str, text: str) -> None:
    subprocess.run(
        [*COMMAND, "produce", "orders", text, "--name-server", address],
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": ":".join(filter(None, sys.path))},
    )


def segment_of(data: Path, text: bytes) -> Path:
    (segment,) = (
        path for path in (data / "log").iterdir() if text in path.read_bytes()
    )
    return segment


def killed_with(serve: Serve, *texts: str) -> None:
    process = serve()
    address = listening(process)[0].split()[2]
    for text in texts:
        send(address, text)
    process.kill()
    process.communicate()


def test_what_recovery_cut_off_is_said_and_kept(serve, tmp_path):
    killed_with(serve, "whole", "torn off")
    segment = segment_of(tmp_path / "data", b"torn off")
    segment.write_bytes(segment.read_bytes().replace(b"torn off", b"torn 0ff"))
    process = serve()
    recovered = listening(process)[0]
    match = re.fullmatch(
        r"recovered: \d+ bytes at the end of the log were not whole; "
        r"they are kept in (.+)",
        recovered,
    )
    assert match
    assert b"torn 0ff" in (tmp_path / "data" / "log" / match[1]).read_bytes()


def test_a_damaged_middle_is_refused_with_the_way_out(serve, tmp_path):
    process = serve("--flush", "sync")
    address = listening(process)[0].split()[2]
    for text in ("first message", "second message", "third message"):
        send(address, text)
    process.kill()
    process.communicate()
    segment = segment_of(tmp_path / "data", b"first message")
    content = segment.read_bytes()
    segment.write_bytes(content.replace(b"first message", b"frist message"))
    code, line = refused(serve())
    assert code == 1
    assert str(segment) in line
    assert 'on_damage="skip"' in line
    (tmp_path / "skip.toml").write_text('[log]\non_damage = "skip"\n')
    listening(serve("--config", str(tmp_path / "skip.toml")))


def test_sending_makes_no_topic_where_that_is_switched_off(serve):
    address = listening(serve("--no-auto-create"))[0].split()[2]
    with pytest.raises(subprocess.CalledProcessError) as caught:
        send(address, "x")
    assert b"orders" in caught.value.stderr


def test_the_log_is_json_where_that_is_wanted(serve):
    process = serve("--log-format", "json", "--log-level", "info")
    listening(process)
    process.terminate()
    _, errors = process.communicate(timeout=TIMEOUT_S)
    assert '"event":"stopping"' in errors
