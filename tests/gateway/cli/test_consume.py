"""`ropeway consume`."""

from collections.abc import Callable

import pytest

from ropeway.client import PullConsumer
from tests.gateway.cli.conftest import objects
from tests.waiting import WAIT_S


@pytest.fixture
def topic(run, ropeway_topic) -> str:
    """A topic of one queue with six messages; each other one has a tag."""
    run("topic", "create", ropeway_topic, "--queues", "1")
    for number in range(6):
        tag = ["--tag", "odd"] if number % 2 else []
        run("produce", ropeway_topic, str(number), *tag)
    return ropeway_topic


@pytest.fixture
def comes(monkeypatch) -> Callable[[int], None]:
    """Have so many messages waited for for as long as a busy machine needs.

    The time that the command line gives counts from then on.
    """

    def wait(count: int) -> None:
        poll, came = PullConsumer.poll, 0

        async def patient(self, timeout_s, most):
            nonlocal came
            found = await poll(self, WAIT_S if came < count else timeout_s, most)
            came += len(found)
            return found

        monkeypatch.setattr(PullConsumer, "poll", patient)

    return wait


def test_reading_without_a_group_commits_nothing_and_leaves_no_group_in_lists(
    run, topic
):
    for _ in range(2):
        assert run("consume", topic, "--count", "6").stdout.split() == list("012345")
    assert "ropeway-cli" not in run("group", "list", "--sizes").stdout
    assert "ropeway-cli" in run("group", "list", "--all").stdout


def test_a_group_goes_on_behind_what_was_printed(run, topic):
    group = f"g-{topic}"
    for expected in ("01", "23", "45"):
        shown = run("consume", topic, "--group", group, "--count", "2")
        assert shown.stdout.split() == list(expected)


@pytest.mark.parametrize("group", [[], ["--group", "tagged"]])
def test_only_wanted_tags_are_printed(run, topic, group):
    group = [*group[:1], *(f"{name}-{topic}" for name in group[1:])]
    shown = run("consume", topic, *group, "--tag", "odd || even", "--count", "3")
    assert shown.stdout.split() == list("135")


def test_without_a_count_it_ends_when_nothing_comes(run, topic, comes):
    comes(6)
    shown = run("consume", topic, "--timeout", "0.2")
    assert shown.stdout.split() == list("012345")


def test_without_time_it_ends_at_the_end_of_what_is_there(run, topic):
    shown = run("consume", topic, "--timeout", "0")
    assert shown.stdout.split() == list("012345")
    shown = run("consume", topic, "--timeout", "0", "--tag", "odd")
    assert shown.stdout.split() == list("135")
    assert run("consume", topic, "--timeout", "0", "--from", "last").stdout == ""
    refused = run("consume", topic, "--timeout", "0", "--group", "g", code=2)
    assert "without --group" in refused.stderr


def test_it_begins_where_it_is_told(run, topic, comes):
    assert run("consume", topic, "--from", "last", "--timeout", "0.2").stdout == ""
    found = objects(run("consume", topic, "--count", "6", "--json"))
    from_fourth = str(found[3]["store_ms"])
    shown = run("consume", topic, "--from", "1h", "--exit-at-end").stdout
    assert shown.split() == list("012345")
    shown = run("consume", topic, "--from", "2100-01-01T00:00:00", "--timeout", "0.2")
    assert shown.stdout == ""
    later = [one["body"] for one in found if one["store_ms"] >= found[3]["store_ms"]]
    comes(len(later))
    shown = run("consume", topic, "--from", from_fourth, "--timeout", "0.2").stdout
    assert shown.split() == later


@pytest.mark.parametrize(
    ("offset", "expected"),
    [("-2", "45"), ("-10", "012345"), ("4", "45"), ("0", "012345"), ("9", "")],
)
def test_it_begins_at_an_offset_or_before_the_end(run, topic, offset, expected):
    shown = run("consume", topic, "--offset", offset, "--exit-at-end")
    assert shown.stdout.split() == list(expected)


def test_fewer_messages_than_counted_on_are_an_error(run, topic, comes):
    comes(6)
    result = run("consume", topic, "--count", "7", "--timeout", "0.5", code=1)
    assert result.stderr == (
        "Error: 6 of 7 messages came; none within the last 0.5 s\n"
    )


def test_messages_are_printed_as_the_format_says(run, topic):
    template = "{queue_id}/{offset}:{tag}:{body}"
    shown = run("consume", topic, "--count", "2", "--format", template)
    assert shown.stdout.splitlines() == ["0/0::0", "0/1:odd:1"]


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["--from", "soon"], "'soon'; allowed: first, last, how long ago, like 10m"),
        (["--tag", "||"], "names no tag"),
        (["--raw", "--hex"], "--raw and --hex are given; allowed: one"),
        (["--delimiter", ";"], "--delimiter is given without --raw"),
        (["--offset", "1", "--group", "g"], "without --group and --from"),
        (["--offset", "1", "--from", "last"], "without --group and --from"),
        (["--format", "{colour}", "--count", "1"], "allowed in braces: topic broker"),
        (["--format", "{colour}", "--from", "last"], "allowed in braces: topic broker"),
        (["--format", "{body", "--from", "last"], "allowed in braces: topic broker"),
    ],
)
def test_what_makes_no_sense_is_said_in_words(run, topic, args, complaint):
    assert complaint in run("consume", topic, *args, code=2).stderr


def test_a_topic_that_is_not_there_is_an_error(run):
    result = run("consume", "none", code=1)
    assert result.stderr == "Error: topic 'none' does not exist\n"
