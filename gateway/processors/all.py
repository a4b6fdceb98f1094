"""Every processor: importing this fills the table that `dispatch` looks in."""

from importlib import import_module
from pkgutil import iter_modules

from ropeway.gateway import processors

for _module in iter_modules(processors.__path__, f"{processors.__name__}."):
    import_module(_module.name)
