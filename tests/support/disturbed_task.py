"""`trainer.task` whose checkpoints are disturbed: `disturbed_task.py FULL REMOVED -- ARGUMENTS...`.

FULL: steps separated by commas; while they are saved, the disk is full. The checkpoint folder must be on a small
disk of its own. REMOVED: path in the checkpoint folder that is removed when the save after its own begins, or "".
"""

import shutil
import sys
from pathlib import Path

from exact_resume.checkpoints import checkpoints
from exact_resume.checkpoints.checkpoints import Checkpoint
from exact_resume.files.publication import Fence
from trainer import command_line, task

save, steps = checkpoints.save, {int(step) for step in sys.argv[1].split(",") if step}


def disturbed_save(directory: str, checkpoint: Checkpoint, fence: Fence) -> str:
    removed = Path(directory, sys.argv[2])
    if sys.argv[2] and removed.exists():
        shutil.rmtree(removed) if removed.is_dir() else removed.unlink()
        sys.argv[2] = ""
    filler = Path(directory).parent / "filler"
    if checkpoint.step in steps:
        fill(filler)
    try:
        return save(directory, checkpoint, fence)
    finally:
        filler.unlink(missing_ok=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


checkpoints.save = disturbed_save
sys.exit(command_line.run(lambda: task.main(sys.argv[4:])))
