"""Which functions of the wire may have a compiled form: see `ropeway.common.native`.

The compiled ones are in `native/wire.c` and beside it.
"""

from ropeway.common.native import Forms

may_be_compiled = Forms("ropeway.gateway.wire._native")
