"""SQL92 filters: a condition on a message's properties, read once and asked often.

Everything that filters takes `compile_condition`: it makes a `Condition` of the text
of a subscription, whose `accepts` is asked with stored messages. `SqlError` says where
a text is wrong, and what would be right there.
"""

from ropeway.gateway.node.sql.condition import (
    CompilerBusyError,
    Condition,
    NotCompiledError,
    compile_condition,
    compile_later,
    compile_quickly,
)
from ropeway.gateway.node.sql.nodes import SqlError

__all__ = [
    "CompilerBusyError",
    "Condition",
    "NotCompiledError",
    "SqlError",
    "compile_condition",
    "compile_later",
    "compile_quickly",
]
