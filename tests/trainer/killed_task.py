"""`trainer.task` that kills itself with SIGKILL: `killed_task.py MOMENT STEP -- arguments of trainer.task`.

MOMENT is `steps` (right after a graph call that reaches STEP) or `save` (files of the checkpoint of STEP or later are
written, the rename that commits them is not). With MOMENT `full` nothing is killed: the saves of STEP to STEP + 7
find the disk full.
"""

import os
import signal
import sys

from trainer import events, storage, task


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


moment, step = sys.argv[1], int(sys.argv[2])
if moment == "steps":
    write = events.EventLog.write

    def write_and_die(self, event, **fields):
        write(self, event, **fields)
        if event == "steps" and fields["last_step"] >= step:
            kill()

    events.EventLog.write = write_and_die
elif moment == "full":
    flush = storage._flush_to_disk

    def flush_on_a_full_disk(directory):
        if step <= int(directory.name.split("-")[1].split(".")[0]) < step + 8:
            raise OSError(28, "No space left on device")
        flush(directory)

    storage._flush_to_disk = flush_on_a_full_disk
else:
    flush = storage._flush_to_disk

    def flush_and_die(directory):
        flush(directory)
        if int(directory.name.split("-")[1].split(".")[0]) >= step:
            kill()

    storage._flush_to_disk = flush_and_die
sys.exit(task.main(sys.argv[4:]))
