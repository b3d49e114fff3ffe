"""Apache Beam's own runner processes each work item of a folder, in the environment that has Beam."""

import subprocess
from pathlib import Path

import pytest

from tests.support import work_items
from trainer.data.preparing.engines import exchange

pytestmark = pytest.mark.slow
RUN = """
import sys, apache_beam
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from trainer.data.preparing.engines import beam
with apache_beam.Pipeline(runner=FnApiRunner()) as pipeline:
    beam.build(pipeline, sys.argv[1])
"""


def test_beam_processes_each_item_without_a_result(tmp_path: Path, repository: Path, beam_python: str) -> None:
    assert exchange.put(str(tmp_path), work_items.square, range(20)) == 20
    exchange.work(str(tmp_path), "000003")
    subprocess.run([beam_python, "-c", RUN, tmp_path], cwd=repository, check=True)
    assert list(exchange.results(str(tmp_path))) == [number * number for number in range(20)]
    failing = tmp_path / "failing"
    exchange.put(str(failing), work_items.forbid, [0])
    assert subprocess.run([beam_python, "-c", RUN, failing], cwd=repository, check=False).returncode
    with pytest.raises(PermissionError, match="gs://bucket/0"):
        exchange.raise_error(str(failing))
