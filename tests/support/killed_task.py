"""`trainer.task` that kills itself with SIGKILL during a save: `killed_task.py STEP -- ARGUMENTS...`.

It dies in the first save at STEP or later: the files are written, the rename that commits them is missing.
"""

import os
import signal
import sys
from pathlib import Path

from exact_resume.files import publication
from trainer import task

flush = publication._flush_to_disk


def flush_and_die(directory: Path) -> None:
    flush(directory)
    if int(directory.name.split("-")[1].split(".")[0]) >= int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)


publication._flush_to_disk = flush_and_die
sys.exit(task.main(sys.argv[3:]))
