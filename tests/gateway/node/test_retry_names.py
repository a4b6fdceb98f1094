"""A retry topic's name means all that it may mean, and v2 names mean one thing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ropeway.gateway.node.retry_names import Reading, is_shared, readings


def known(*groups: str):
    return SimpleNamespace(get=dict.fromkeys(groups, True).get)


def offsets(*places: tuple[str, str]):
    found = dict.fromkeys(places, 0)
    return SimpleNamespace(
        get=lambda group, topic, _: found.get((group, topic)),
        groups_of=lambda name: [group for group, topic in found if topic == name],
    )


NAME = "%RETRY%team_billing_eu"


def test_a_name_with_a_plus_has_one_reading():
    found = readings("%RETRY%team_a+billing_b", known("team"), offsets())
    assert found == [Reading("team_a", "billing_b")]


def test_a_name_that_nobody_used_is_a_groups():
    assert readings(NAME, known(), offsets()) == [Reading("team_billing_eu")]


def test_every_reading_that_exists_is_found():
    popped = offsets(("team", NAME), ("team_billing", NAME), ("other", NAME))
    both = [Reading("team", "billing_eu"), Reading("team_billing", "eu")]
    assert readings(NAME, known("team"), popped) == both
    all_ = [*both, Reading("team_billing_eu")]
    assert readings(NAME, known("team_billing_eu"), popped) == all_


@pytest.mark.parametrize(
    ("groups", "popped", "shared"),
    [
        ((), (), False),
        ((), (("team", NAME),), False),
        (("team_billing_eu",), (("team", NAME),), True),
        ((), (("team_billing", NAME),), True),
    ],
)
def test_a_name_is_shared_where_it_is_anothers_too(groups, popped, shared):
    place = NAME, "team", "billing_eu"
    assert is_shared(*place, known(*groups), offsets(*popped)) is shared


@pytest.mark.parametrize("name", ["%RETRY%", "%RETRY%_", "%RETRY%_a", "%RETRY%a_"])
def test_names_with_an_underscore_at_an_end_are_a_groups(name):
    found = readings(name, known(), offsets(("", name), ("a", name)))
    assert found == [Reading(name.removeprefix("%RETRY%"))]


def test_a_name_takes_one_look_whatever_it_is_made_of():
    """One for each `_` took the loop for ten seconds with a header of 250 KiB."""
    looks = []
    asked = SimpleNamespace(groups_of=lambda name: looks.append(name) or ())
    name = "%RETRY%" + "_" * 30_000
    assert readings(name, known(), asked) == [Reading("_" * 30_000)]
    assert not is_shared(name, "_", "_", known(), asked)
    assert looks == [name, name]
