"""What all tests of the package for users have in common."""

import pytest

from ropeway.client import Producer
from ropeway.client.sync import SyncProducer

PATIENT_S = 60.0
SENDS = [
    getattr(kind, name)
    for kind in (Producer, SyncProducer)
    for name in ("send", "send_batch")
]


@pytest.fixture(autouse=True)
def patient_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have sends wait for longer than a busy machine stands still.

    By default they give up after 3 s, whatever a client's configuration says.
    """
    for send in SENDS:
        *others, _ = send.__defaults__
        monkeypatch.setattr(send, "__defaults__", (*others, PATIENT_S))
