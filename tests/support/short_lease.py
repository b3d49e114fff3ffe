"""`trainer.task` with short periods of its lease, in seconds: `short_lease HEARTBEAT WATCH -- ARGUMENTS...`.

With STOP_AT_SAVE it freezes itself in the first save at that step or later, when the files are written and the rename
that commits them is missing. With WAIT_IN_SAVE it waits there, in the background, until that file exists.
"""

import os
import signal
import sys
import time
from pathlib import Path

from exact_resume.checkpoints import lease
from exact_resume.files import publication
from trainer import command_line, task

lease.HEARTBEAT_SECONDS, lease.WATCH_SECONDS = float(sys.argv[1]), float(sys.argv[2])
flush = publication._flush_to_disk


def flush_and_wait(directory: Path) -> None:
    flush(directory)
    step = int(directory.name.split("-")[1].split(".")[0])
    if step >= int(os.environ.get("STOP_AT_SAVE", sys.maxsize)):
        os.kill(os.getpid(), signal.SIGSTOP)
        # The signal may reach another thread first.
        time.sleep(1)
    while (path := os.environ.get("WAIT_IN_SAVE")) and not os.path.exists(path):
        time.sleep(0.05)


publication._flush_to_disk = flush_and_wait
arguments = sys.argv[4:]
sys.exit(command_line.run(lambda: task.main(arguments)))
