"""Which functions of compaction may have a compiled form: see `storage.forms`.

The compiled ones are in `native/compaction.c`.
"""

from ropeway.storage.forms import Forms

may_be_compiled = Forms("ropeway.storage.compaction._native")
