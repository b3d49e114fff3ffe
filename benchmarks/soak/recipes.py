"""Kills trainings with recipes: `python -m benchmarks.soak.recipes --num-faults 280 --seed 1`.

Each part is a short exact training with one kind of state that a recipe adds (averages, accumulated gradients, an
optimizer's variables, balanced sampling, mixed images, class weights), or with all of them together. It is killed with
SIGKILL 20 times, before or after a call that is drawn: a graph call of training steps, a validation, or a part of a
save. In the end weights, batch digests, best step and result are those of a run without a kill.
"""

import functools
import os
import random
import shutil
import sys
from pathlib import Path

from benchmarks.soak.record import Fault, Soak, options

_NUM_KILLS = 20


def main() -> int:
    """Kill runs; return 1 if one of them ended otherwise."""
    given = options("recipes", __doc__, num_faults=14 * _NUM_KILLS, smoke_values={"num_faults": 2})
    os.environ.update(CUDA_VISIBLE_DEVICES="-1", KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3")
    soak = Soak("recipes", given)

    @functools.cache
    def dataset() -> Path:
        from trainer.prepare import prepare

        folder, report = soak.folder / "dataset", str(soak.folder / "report.html")
        prepare(source="digits", output_directory=str(folder), report_path=report, image_size=16, max_examples=300)
        return folder

    def kill(number: int) -> list[Fault]:
        from tests.support import killed_recipe

        kind = list(killed_recipe.KINDS)[number % len(killed_recipe.KINDS)]
        folder, draw = soak.folder / f"run-{number}", random.Random(f"{given.seed}-{number}")
        try:
            found = killed_recipe.prove(kind, dataset(), folder, draw, min(_NUM_KILLS, given.num_faults))
        except Exception:
            soak.keep(folder, number)
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return [Fault(f"SIGKILL, {kind}", place) for place in found]

    return soak.run(kill)


if __name__ == "__main__":
    sys.exit(main())
