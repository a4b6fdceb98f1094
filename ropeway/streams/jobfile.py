"""Job files: Python programs whose variable `builder` is a `StreamBuilder`."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING

from pyspark import cloudpickle

from ropeway.streams.builder import StreamBuilder
from ropeway.streams.nodes import TopologyError

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.streams.topology import Topology

_VARIABLE = "builder"


def load_job(path: Path) -> Topology:
    """Run a job file, and build what it describes.

    Raises:
        TopologyError: It has no builder, or what it builds cannot be.
        OSError: It cannot be read.
    """
    spec = importlib.util.spec_from_file_location(f"ropeway_job_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise TopologyError(f"job file is {str(path)!r}; allowed: a file named *.py")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their modules up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    # Workers do not have the file: its functions are sent to them whole.
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    builder = getattr(module, _VARIABLE, None)
    if not isinstance(builder, StreamBuilder):
        raise TopologyError(
            f"variable {_VARIABLE!r} of {path} is {builder!r:.200}; allowed: a "
            "StreamBuilder"
        )
    return builder.build()
