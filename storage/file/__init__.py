"""The embedded log, in one directory: segments of blocks, and indexes beside them.

`block` is what one tick writes, `index` says where records are, `writer` commits,
`reader` reads, `recovery` opens. FORMAT.md has every byte.
"""

from storage.file.log import FileLog, open_log
from storage.file.offsets import open_offsets
from storage.file.settings import FileLogSettings
from storage.file.verify import verify

__all__ = ["FileLog", "FileLogSettings", "open_log", "open_offsets", "verify"]
