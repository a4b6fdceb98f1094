"""The status of a tier is read from its metadata alone."""

from ropeway.storage.tiered.dispatcher import BACKFILL, FAILURE, PAUSED, POSITION, URL
from ropeway.storage.tiered.metadata import Metadata
from ropeway.storage.tiered.object_names import SegmentName
from ropeway.storage.tiered.status import QueueStatus, Status, status
from ropeway.storage.tiered.tier_partition import Segment


def test_queues_come_with_what_is_sealed(tmp_path):
    metadata = Metadata(tmp_path)
    metadata.add_queue("orders", 3, 7)
    metadata.update_topic_reserve_time("orders", 7_200_000)
    for base, how in ((0, "expired"), (5, "sealed"), (10, "sealed"), (15, "new")):
        name = SegmentName("orders", 3, 7, base, base + 5)
        metadata.update_file_segment(Segment(name, 0, 0, 0, 100, 0), how)
    for name, value in ((POSITION, "9"), (PAUSED, "x"), (FAILURE, "503"), (URL, "u:")):
        metadata.put_state(name, value)
    metadata.put_state(BACKFILL, None)
    queue = QueueStatus("orders", 2, 3, 2, 5, 15, 200, deleted=False)
    assert status(metadata) == Status("u:", 9, True, False, "503", [queue])
    metadata.close()
