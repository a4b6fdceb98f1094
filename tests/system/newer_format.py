"""This program as a newer one that has raised the version of a format.

$ python -m tests.system.newer_format MODULE NAMES -m ropeway.gateway.cli.main serve

NAMES are joined by commas: one more than the first one's value is that of all.
"""

import sys
from importlib import import_module

from ropeway.gateway.cli.main import main

if __name__ == "__main__":
    module, names = import_module(sys.argv[1]), sys.argv[2].split(",")
    version = getattr(module, names[0]) + 1
    for name in names:
        setattr(module, name, version)
    main(sys.argv[5:])
