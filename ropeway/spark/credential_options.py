"""Who a job is: options, files that they name, or the driver's environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ropeway.client.credentials import Credentials
from ropeway.common.reasons import reason_of

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES = ("accessKey", "secretKey", "secretKeyFile", "token", "tokenFile")
_NO_SECRET = "unused"  # noqa: S105 - it is none
"""A token stands for the access key, and the secret key is not looked at."""
_ENVIRONMENT = {
    "accessKey": "ROPEWAY_ACCESS_KEY",
    "secretKey": "ROPEWAY_SECRET_KEY",
    "token": "ROPEWAY_TOKEN",
}


def read_credentials(given: Mapping[str, str]) -> Credentials | None:
    """Read who the job is; None where nothing says so.

    Where no option does, the environment is asked, as by `ropeway`'s commands.

    Raises:
        ValueError: Names the option, what came, and what is allowed.
    """
    if not any(name in given for name in NAMES):
        given = {
            name: os.environ[variable]
            for name, variable in _ENVIRONMENT.items()
            if os.environ.get(variable)
        }
        if "accessKey" in given:
            # An access key comes before a token that is there for other commands.
            given.pop("token", None)
    key = given.get("accessKey")
    secret, token = _either(given, "secretKey"), _either(given, "token")
    if token is not None and (key is not None or secret is not None):
        raise ValueError("accessKey and token are both given; allowed: one of them")
    if token is not None:
        return Credentials(access_key=token, secret_key=_NO_SECRET)
    if (key is None) != (secret is None):
        raise ValueError("accessKey and secretKey: one is missing; allowed: both, none")
    if key is None or secret is None:
        return None
    return Credentials(access_key=key, secret_key=secret)


def _either(given: Mapping[str, str], name: str) -> str | None:
    """What an option says, or the first line of the file that another one names."""
    value, path = given.get(name), given.get(f"{name}File")
    if path is None:
        return value
    if value is not None:
        raise ValueError(f"{name} and {name}File are both given; allowed: one of them")
    try:
        found = Path(path).read_text("utf-8").split("\n", 1)[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"option {name}File is {path!r}: {reason_of(error)}; allowed: a file of "
            "text on the driver's machine"
        ) from error
    if not found:
        raise ValueError(f"option {name}File is {path!r}, which is empty")
    return found
