"""Functions of sealed segments that may have a compiled form: `native/sealing.c`."""

from __future__ import annotations

import zlib

from ropeway.common.native import Forms

may_be_compiled = Forms("ropeway.storage.sealed._native")
"""Give the compiled form of a function, where there is one."""

crc32 = may_be_compiled(zlib.crc32)
"""For megabytes: several times faster than zlib's, and as it lets others run."""
