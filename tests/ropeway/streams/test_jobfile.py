"""Job files are run, and have to have a builder."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from pyspark import cloudpickle

from ropeway.streams import TopologyError
from ropeway.streams.jobfile import load_job

if TYPE_CHECKING:
    from pathlib import Path

JOB = """
from __future__ import annotations
from dataclasses import dataclass
from ropeway.streams import StreamBuilder

@dataclass
class Line:
    text: str

def make(text):
    return Line(text)

builder = StreamBuilder("job")
builder.source("lines").map(make).print()
"""


def test_its_functions_travel_to_where_the_file_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a_job.py"
    path.write_text(JOB)
    topology = load_job(path)
    assert topology.job_id == "job"
    function = topology.nodes[1].arguments["function"]
    data = cloudpickle.dumps(function).hex()
    there = f"import pickle; print(pickle.loads(bytes.fromhex('{data}'))('x').text)"
    done = subprocess.run(
        [sys.executable, "-c", there], check=True, capture_output=True, text=True
    )
    assert done.stdout == "x\n"


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("job.py", "", "variable 'builder' of .*job.py is None; allowed: a Stream"),
        ("job.py", "builder = 7", "variable 'builder' of .*job.py is 7; allowed"),
        ("job.txt", "", "job file is '.*job.txt'; allowed: a file named"),
    ],
)
def test_a_file_without_a_builder_is_refused(
    tmp_path: Path, name: str, text: str, complaint: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(TopologyError, match=complaint):
        load_job(path)
