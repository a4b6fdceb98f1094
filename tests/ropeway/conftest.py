"""What all tests of the package for users have in common."""

import pytest

from tests.patience import have_patient_sends


@pytest.fixture(autouse=True)
def patient_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have sends wait for longer than a busy machine stands still."""
    have_patient_sends(monkeypatch)
