"""This program as a newer one that has raised the version of a format.

$ python -m tests.system.newer_format MODULE NAME -m ropeway.gateway.cli.main serve
"""

import sys
from importlib import import_module

from ropeway.gateway.cli.main import main

if __name__ == "__main__":
    module, name = import_module(sys.argv[1]), sys.argv[2]
    setattr(module, name, getattr(module, name) + 1)
    main(sys.argv[5:])
