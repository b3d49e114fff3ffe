"""Forks one step per line of its standard input, each with everything imported; prints the step's process id.

A line is JSON: the fields of the job's settings, `marker` (what has to exist for the work to be done), `log`, and
`variables` of the environment.
"""

import json
import os
import sys
import traceback
from typing import Any

import apache_beam
from apache_beam.utils import retry
from google.cloud import dataflow, storage as google_storage

from exact_resume.files import storage
from trainer import command_line
from trainer.data.preparing.dataflow.run import run
from trainer.data.preparing.dataflow.settings import Settings

USED = (dataflow, google_storage)
"""Imported before the fork, because each import takes seconds."""

# The pauses of Beam between its attempts, which grow to minutes.
retry.Clock.sleep = lambda self, seconds: None


def build(pipeline: Any) -> None:
    """Add a pipeline with a shuffle, as the real one has."""
    items = pipeline | "Items" >> apache_beam.Create([("a", 1), ("b", 2)])
    groups = items | "Group" >> apache_beam.GroupByKey()
    _ = groups | "Count" >> apache_beam.MapTuple(lambda key, values: (key, len(list(values))))


def step(line: dict[str, Any]) -> int:
    log = os.open(line.pop("log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.update(line.pop("variables"))
    marker = line.pop("marker")
    try:
        command_line.report_errors(run)(Settings(**line), build, lambda: storage.exists(marker))
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        return 99
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def main() -> None:
    """Fork until the input ends, and report each end as `PID CODE`."""
    for text in sys.stdin:
        if text.startswith("wait"):
            process, status = os.waitpid(int(text.split()[1]), 0)
            print(process, os.waitstatus_to_exitcode(status), flush=True)
        elif process := os.fork():
            print(process, flush=True)
        else:
            os._exit(step(json.loads(text)))


if __name__ == "__main__":
    main()
