"""Functions of the log in files that may have a compiled form; `native/` has them.

Those of reading are in `native/reading.c`, those of writing in `native/block.c`.
"""

from __future__ import annotations

import zlib

from ropeway.common.native import Forms
from ropeway.storage import key_runs

may_be_compiled = Forms("ropeway.storage.file._reading")
"""Give the compiled form of a function of reading, where there is one."""

writing_may_be_compiled = Forms("ropeway.storage.file._native")
"""Likewise, of a function of writing."""

crc32 = may_be_compiled(zlib.crc32)
"""For megabytes: several times faster than zlib's, and as it lets others run."""

in_runs = writing_may_be_compiled(key_runs.in_runs)
"""Takes 60 microseconds for 4,096 keys, and Python's form 800."""
