"""The child process of `python -m trainer.results.label_errors`: `trainer.task`, which ends with its parent."""

import sys

from exact_resume.workers.parent import end_with
from trainer import command_line, task

if __name__ == "__main__":
    end_with(int(sys.argv.pop(1)))
    sys.exit(command_line.run(task.main))
