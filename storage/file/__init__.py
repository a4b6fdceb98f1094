"""The embedded log, in one directory: segments of blocks, and indexes beside them.

`block` is what one tick writes, `index` says where records are, `writer` commits,
`reader` reads, `recovery` opens. FORMAT.md has every byte.
"""

from ropeway.storage.file.file_config import FileLogSettings
from ropeway.storage.file.log import FileLog, open_log
from ropeway.storage.file.offsets import open_offsets
from ropeway.storage.file.verify import verify

__all__ = ["FileLog", "FileLogSettings", "open_log", "open_offsets", "verify"]
