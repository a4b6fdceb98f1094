"""The codes and sub-commands of RocketMQ 5.5.0 itself are those that we know."""

import subprocess

import pytest

from ropeway.gateway.wire.codes import RequestCode
from tests.system.administration import TIMEOUT_S, program
from tests.system.subcommands import SUB_COMMANDS

pytestmark = pytest.mark.jvm

ONLY_HERE = {
    # RocketMQ 4.9.8 has them, 5.5.0 no longer.
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG,
    RequestCode.DELETE_ACL_CONFIG,
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO,
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
    RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG,
    *(code for code in RequestCode if code.name.startswith("ROPEWAY_")),
}


@pytest.fixture(scope="module")
def known(tmp_path_factory) -> list[list[str]]:
    """What RocketMQ's classes say, a line each."""
    directory = tmp_path_factory.mktemp("known")
    done = subprocess.run(
        program("Known", directory),
        cwd=directory,
        check=True,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    return [line.split() for line in done.stdout.splitlines()]


def test_no_code_is_missing_or_named_otherwise(known: list[list[str]]) -> None:
    theirs = {(int(one[2]), one[1]) for one in known if one[0] == "code"}
    ours = {(int(code), code.name) for code in set(RequestCode) - ONLY_HERE}
    assert ours == theirs


def test_no_sub_command_is_missing(known: list[list[str]]) -> None:
    theirs = sorted(one[1] for one in known if one[0] == "command")
    assert sorted(SUB_COMMANDS) == theirs
