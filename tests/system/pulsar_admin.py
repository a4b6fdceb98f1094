"""Pulsar's own `pulsar-admin`, as it comes with the server."""

from __future__ import annotations

import shlex
import subprocess
from typing import TYPE_CHECKING

from tests import jvm
from tests.system.pulsar import LOG4J

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.pulsar import Pulsar

SECONDS = 300
TOOL = "org.apache.pulsar.admin.cli.PulsarAdminTool"
AS_ITSELF = "org.apache.pulsar.client.impl.auth.AuthenticationToken"


def pulsar_admin(pulsar: Pulsar, directory: Path, command: str, token: str) -> str:
    """What a command line prints.

    Args:
        pulsar: The server.
        directory: For its settings.
        command: The whole line, as a guide has it: `pulsar-admin namespaces ...`.
        token: Who asks.

    Raises:
        AssertionError: It failed; with what it said.
    """
    name, *arguments = shlex.split(command)
    assert name == "pulsar-admin"
    # Its bin/pulsar-admin takes the address from a file of this form.
    settings = directory / "client.conf"
    settings.write_text(
        f"webServiceUrl={pulsar.admin_url}/\nbrokerServiceUrl={pulsar.service_url}/\n"
        f"authPlugin={AS_ITSELF}\nauthParams=token:{token}\n"
    )
    log4j = directory / "log4j2.xml"
    log4j.write_text(LOG4J)
    asked = [
        *["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
        *[f"-Dlog4j.configurationFile={log4j}", "-cp", pulsar.classpath],
        *[TOOL, str(settings), *arguments],
    ]
    with subprocess.Popen(
        jvm.command(asked, shares=True),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
            jvm.wait(process)
    assert process.returncode == 0, f"{command}: {said}"
    return said
