"""Which functions of compaction may have a compiled form: see `ropeway.common.native`.

The compiled ones are in `native/compaction.c`.
"""

from ropeway.common.native import Forms

may_be_compiled = Forms("ropeway.storage.compaction._native")
