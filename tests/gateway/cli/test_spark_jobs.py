"""What goes wrong with Spark is one line."""

import pytest

from ropeway.gateway.cli.failures import CannotError
from ropeway.gateway.cli.spark_jobs import finish, reason, spark_needed

LONG = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted
Traceback (most recent call last):
  File "records.py", line 1, in run
ropeway.streams.records.StepError: step 'a' failed at 'x': ValueError: no

\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:1)
"""


def test_the_line_that_says_why_is_found():
    assert reason(LONG) == "StepError: step 'a' failed at 'x': ValueError: no"
    assert reason("[PATH_NOT_FOUND] no such path\nat org...") == (
        "[PATH_NOT_FOUND] no such path"
    )


def test_without_pyspark_it_says_what_to_install():
    refused = pytest.raises(CannotError, match=r"pip install 'ropeway\[spark\]'")
    with refused, spark_needed():
        raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")
    with pytest.raises(ModuleNotFoundError), spark_needed():
        raise ModuleNotFoundError("No module named 'mine'", name="mine")


def test_it_waits_until_all_have_ended():
    answers = iter([False, False, True])
    finish(lambda _seconds: next(answers), list, is_watched=True)
    assert next(answers, None) is None
