"""Clients that wait for longer than a busy machine stands still."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from msgspec import structs

from ropeway.client import ProducerConfig, producer
from ropeway.gateway.cli.target import Target

if TYPE_CHECKING:
    import pytest

    from ropeway.client import ClientConfig

    C = TypeVar("C", bound=ClientConfig)

PATIENT_S = 60.0


def have_patient_sends(patch: pytest.MonkeyPatch) -> None:
    """Have sends wait for so long, and not 3 s, where no configuration is given."""
    patch.setattr(
        producer, "ProducerConfig", partial(ProducerConfig, send_timeout_s=PATIENT_S)
    )


def have_patient_commands(patch: pytest.MonkeyPatch) -> None:
    """Have commands in this process wait so long for answers, which are given 3 s."""
    usual = Target.config

    def patient(target: Target, kind: type[C]) -> C:
        return structs.replace(
            usual(target, kind),
            connect_timeout_s=PATIENT_S,
            request_timeout_s=PATIENT_S,
        )

    patch.setattr(Target, "config", patient)
    have_patient_sends(patch)
