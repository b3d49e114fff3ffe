"""`trainer.task` that kills itself with SIGKILL in a save: `killed_task.py STEP -- arguments of trainer.task`.

The files of the checkpoint of STEP or later are written, the rename that commits them is not.
"""

import os
import signal
import sys

from trainer import task
from trainer.files import storage

flush = storage._flush_to_disk


def flush_and_die(directory):
    flush(directory)
    if int(directory.name.split("-")[1].split(".")[0]) >= int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)


storage._flush_to_disk = flush_and_die
sys.exit(task.main(sys.argv[3:]))
