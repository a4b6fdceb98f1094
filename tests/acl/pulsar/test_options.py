"""What the hook can be told, and that it is told in whole and in sense."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ropeway.acl.api import HookError
from ropeway.acl.pulsar.options import read_options


def test_paths_lists_and_numbers_are_read_as_toml_has_them():
    read = read_options(
        "pulsar",
        {
            "token_secret_key": "key",
            "token_file": "token",
            "superusers": ["a", "b"],
            "refresh_s": 5,
        },
    )
    assert read.token_file == Path("token")
    assert read.superusers == ("a", "b")
    assert read.refresh_s == 5.0


@pytest.mark.parametrize(
    "options",
    [
        {"token_file": ""},
        {"token_file": 7},
        {"superusers": "root"},
        {"tokens": 0},
        {"namespaces": -1},
        {"outage_s": "long"},
        {"token_allowed_clock_skew_seconds": -1},
        {"token_audience_claim": "aud"},
        {"token_public_key": "too"},
        {"secret": "x"},
    ],
)
def test_what_makes_no_sense_is_refused_under_the_name_of_the_hook(
    options: dict[str, Any],
):
    with pytest.raises(HookError, match=r"acl\.options\.mine"):
        read_options("mine", {"token_secret_key": "key", **options})


def test_one_is_enough_of_what_is_remembered():
    read = read_options(
        "pulsar", {"token_secret_key": "key", "tokens": 1, "namespaces": 1}
    )
    assert (read.tokens, read.namespaces) == (1, 1)
