"""Spark reaches clusters that guard by what the command has saved of them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from ropeway.gateway.cli.main import main
from tests.gateway.cli.secured import PASSWORD, ROOT, WAYS
from tests.gateway.cli.secured import secured as guarding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.gateway.cli.secured import Secured
    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.slow, pytest.mark.jvm, pytest.mark.server]

CLONE = Path(__file__).parents[2]
CONTEXTS = ("keys", "token", "certificate", "pulsar")
OPTIONS = {"ACCESS_KEY": "accessKey", "SECRET_KEY": "secretKey", "TLS_CA": "tlsCa"}


def save(node: Secured, environment: Mapping[str, str], name: str) -> None:
    """Make topics, and have the command save a context of who may do so."""
    run = CliRunner(env={**environment, "ROPEWAY_TLS": "true"}).invoke
    for topic in (f"prices-{name}", f"copied-{name}"):
        done = run(main, ["topic", "create", topic, "--queues", "1"])
        assert done.exit_code == 0, done.output
    words = ["--name-server", node.address, "--tls-ca", environment["ROPEWAY_TLS_CA"]]
    typed = None
    if "ROPEWAY_SECRET_KEY" in environment:
        words += ["--access-key", ROOT, "--secret-key-file", "-"]
        typed = environment["ROPEWAY_SECRET_KEY"]
    if "ROPEWAY_TOKEN" in environment:
        (node.folder / "shown").write_text(environment["ROPEWAY_TOKEN"])
        words += ["--token-file", str(node.folder / "shown")]
    if "ROPEWAY_TLS_CERT" in environment:
        words += ["--tls-cert", environment["ROPEWAY_TLS_CERT"]]
        words += ["--tls-key", environment["ROPEWAY_TLS_KEY"]]
    done = CliRunner().invoke(main, ["context", "add", name, *words], typed)
    assert done.exit_code == 0, done.output


@pytest.mark.timeout(900)
def test_contexts_reach_nodes_that_want_tls_and_rights_and_no_log_has_a_secret(
    secured: Pulsar,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spark_classes: str,
) -> None:
    del spark_classes
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    for folder in ("node", "on-pulsar"):
        (tmp_path / folder).mkdir()
    with (
        guarding(tmp_path / "node") as node,
        guarding(tmp_path / "on-pulsar", secured) as on_pulsar,
    ):
        given = {way: node.environment(ROOT, way) for way in WAYS}
        for name, environment in given.items():
            save(node, environment, name)
        shown = (on_pulsar.environment(ROOT, way) for way in ("token", "certificate"))
        given["pulsar"] = {**next(shown), **next(shown)}
        save(on_pulsar, given["pulsar"], "pulsar")
        options = {
            option: given["keys"][f"ROPEWAY_{name}"] for name, option in OPTIONS.items()
        }
        done = subprocess.run(
            [
                *(sys.executable, "-m", "tests.system.saved_cluster_job"),
                *(str(tmp_path / "checkpoints"), ",".join(CONTEXTS)),
                *(f"{name}={value}" for name, value in options.items()),
                f"nameServer={node.address}",
            ],
            cwd=CLONE,
            check=False,
            capture_output=True,
            text=True,
            timeout=500,
        )
    assert done.returncode == 0, done.stderr
    copied = re.findall(r"^copied: (\w+) (.*)$", done.stdout, re.MULTILINE)
    assert copied == [
        *((name, "0 1 2") for name in CONTEXTS),
        ("keys", "0 0 0 1 1 1 2 2 2"),
    ]
    assert "INFO" in done.stderr
    files = [one for one in (tmp_path / "checkpoints").rglob("*") if one.is_file()]
    kept = [one.read_bytes() for one in files]
    assert kept
    secrets = {
        PASSWORD,
        *(one["ROPEWAY_TOKEN"] for one in given.values() if "ROPEWAY_TOKEN" in one),
    }
    texts = [done.stdout.encode(), done.stderr.encode(), *kept]
    assert not [text for text in texts for one in secrets if one.encode() in text]
