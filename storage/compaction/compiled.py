"""Which functions of compaction may have a compiled form: see `storage.forms`.

The compiled ones are in `native/compaction.c`.
"""

from storage.forms import Forms

may_be_compiled = Forms("storage.compaction._native")
