"""Run a program that uses exact_resume undisturbed, and again as processes that signals end at chosen steps.

    python disturbed.py PROGRAM MODULES FOLDER METHOD:STEP:SIGNAL...

Each is a fork of this process, which has imported the modules, because some take longer to import than to train. The
method of `Run` sends the signal as it returns; the last process runs to its end. The program notes its steps in
FOLDER/whole.seen and FOLDER/disturbed.seen. A line `exit CODE` follows what each process has printed.
"""

import importlib
import os
import runpy
import sys
from typing import Any


def disturb(method: str, step: str, number: str) -> None:
    """Make a method of `Run` send a signal to this process in a step."""
    from exact_resume import Run

    original = getattr(Run, method)

    def wrapped(run: Run) -> Any:
        result = original(run)
        if run.step == int(step):
            os.kill(os.getpid(), int(number))
        return result

    setattr(Run, method, wrapped)


program, modules, folder, *faults = sys.argv[1:]
for module in filter(None, modules.split(",")):
    importlib.import_module(module)
for name, fault in [("whole", ""), *(("disturbed", fault) for fault in [*faults, ""])]:
    sys.stdout.flush()
    if not (child := os.fork()):
        if fault:
            disturb(*fault.split(":"))
        sys.argv = [program, f"{folder}/{name}"]
        os.environ["EXAMPLES_SEEN"] = f"{folder}/{name}.seen"
        runpy.run_path(program, run_name="__main__")
        sys.exit()
    print("exit", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
