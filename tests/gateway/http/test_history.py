"""The lag of groups over time: who is watched, for how long, and how much is kept."""

from ropeway.client.errors import RemotingError
from ropeway.client.lags import QueueLag
from ropeway.client.message import MessageQueue
from ropeway.gateway.http import history
from ropeway.gateway.http.history import History
from tests.remoting import looped, until


class Console:
    """Knows every group, each a message further whenever it is asked."""

    def __init__(self) -> None:
        self.asked = []
        self.fails = False

    async def describe_group(self, group):
        self.asked.append(group)
        if self.fails:
            raise RemotingError("gone")
        return lags(len(self.asked))


def lags(done):
    return [QueueLag(MessageQueue("orders", "broker-0", 0), done, 100)]


@looped
async def test_a_group_that_was_looked_at_gets_points_until_nobody_looks(monkeypatch):
    monkeypatch.setattr(history, "EVERY_S", 0.0)
    now_s = 0.0
    console = Console()
    kept = History(console, lambda: now_s)
    assert [point[1:] for point in kept.look("readers", lags(0))] == [(100, 0)]
    await kept.note_all()
    console.fails = True
    await kept.note_all()
    assert [one.lag for one in kept.look("readers", lags(5))] == [100, 99, 95]
    assert console.asked == ["readers", "readers"]
    now_s = history.WATCHED_FOR_S + 1
    await kept.note_all()
    assert console.asked == ["readers", "readers"]
    assert len(kept.look("readers", lags(5))) == 1


@looped
async def test_looks_that_follow_each_other_closely_are_one_point():
    kept = History(Console())
    for done in range(5):
        points = kept.look("readers", lags(done))
    assert len(points) == 1


@looped
async def test_of_too_many_groups_the_one_not_looked_at_for_longest_goes(monkeypatch):
    monkeypatch.setattr(history, "MOST_GROUPS", 2)
    console = Console()
    kept = History(console)
    for group in ("a", "b", "a", "c"):
        kept.look(group, lags(0))
    await kept.note_all()
    assert console.asked == ["a", "c"]


@looped
async def test_it_watches_by_itself_from_start_to_close(monkeypatch):
    monkeypatch.setattr(history, "EVERY_S", 0.001)
    console = Console()
    kept = History(console)
    kept.look("readers", lags(0))
    kept.start()
    await until(lambda: len(console.asked) > 2)
    await kept.close()
    await History(console).close()
