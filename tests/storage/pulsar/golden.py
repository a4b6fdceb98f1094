"""Frames captured between Pulsar's own client and a real broker; `frames.json`."""

import json
from pathlib import Path

CAPTURE = json.loads((Path(__file__).parent / "frames.json").read_text())
FRAMES: dict[str, bytes] = {
    one["name"]: bytes.fromhex(one["hex"]) for one in CAPTURE["frames"]
}
"""By kind of command, and how often that kind had come."""
COMPRESSED = b"compressed " * 20
"""The payload of entries 3 to 6."""
