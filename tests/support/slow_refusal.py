"""`trainer.task` whose worker, not the chief, takes longer to refuse other devices than its peers wait for it."""

import json
import os
import sys
import time
from typing import Any

from trainer import command_line, task
from trainer.checkpoints import exactness

refuse = exactness.refuse_other_devices


def refuse_late(*given: Any) -> None:
    if json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "worker":
        time.sleep(5.0)
    refuse(*given)


exactness.refuse_other_devices = refuse_late
sys.exit(command_line.run(lambda: task.main(sys.argv[1:])))
