"""Make the runs of this folder with the installed localvertex: `python tests/data/earlier_runs/make.py FOLDER`.

They were made by commit 3ada6d4, the last one without a journal, and must stay as they are: later versions show, resume
and clean them. Paths of the machine are replaced by words with `@`.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kfp
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import compiler, dsl
from kfp.dsl import Dataset, Input, Metrics, Model, Output

ROOT = dsl.PIPELINE_ROOT_PLACEHOLDER


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def prepare(name: str, root: str, data: Output[Dataset]) -> str:
    """Leave one line per run of this step in a file beside the runs."""
    with open(f"{root}/steps.txt", "a") as file:
        file.write(f"{name}\n")
    with open(data.path, "w") as file:
        file.write(name)
    return name


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def need(what: str, root: str, wait: bool) -> str:
    """Fail until a file exists, or wait for it."""
    import os
    import time

    while not os.path.exists(f"{root}/{what}"):
        if not wait:
            raise RuntimeError(f"{what} is missing")
        time.sleep(0.05)
    return what


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def train(data: Input[Dataset], model: Output[Model], metrics: Output[Metrics]) -> None:
    """Write a model and a metric."""
    with open(data.path) as file, open(model.path, "w") as target:
        target.write(file.read())
    metrics.log_metric("accuracy", 0.5)


@dsl.pipeline(name="training")
def training(name: str = "digits") -> None:
    data = prepare(name=name, root=ROOT).outputs["data"]
    train(data=data)
    with dsl.If(name == "letters"):
        prepare(name="never", root=ROOT)


@dsl.pipeline(name="broken")
def broken() -> None:
    first = prepare(name="first", root=ROOT).set_caching_options(False)
    second = need(what="repaired", root=ROOT, wait=False).after(first).set_caching_options(False)
    prepare(name="third", root=ROOT).after(second).set_caching_options(False)


@dsl.pipeline(name="waiting")
def waiting() -> None:
    first = prepare(name="begun", root=ROOT).set_caching_options(False)
    with dsl.ParallelFor(["a", "b", "c"], parallelism=1) as item:
        done = prepare(name=item, root=ROOT).after(first).set_caching_options(False)
    second = need(what="go", root=ROOT, wait=True).after(done).set_caching_options(False)
    prepare(name="ended", root=ROOT).after(second).set_caching_options(False)


POOL = {
    "machine_spec": {"machine_type": "n1-standard-4"},
    "replica_count": 1,
    "container_spec": {"image_uri": "gcr.io/x/y:1", "command": ["python", "-c", "print('trained')"]},
}


@dsl.pipeline(name="custom")
def custom() -> None:
    CustomTrainingJobOp(display_name="training", worker_pool_specs=[POOL])


def run(folder: Path, pipeline: Any, run_id: str, *options: str, stop: Callable[[Path], int] | None = None) -> None:
    """Run a pipeline; `stop` waits for a moment of the run and returns the signal that stops it."""
    file = folder / "compiled" / f"{pipeline.name}.yaml"
    compiler.Compiler().compile(pipeline, str(file))
    words = [sys.executable, "-m", "localvertex", "run", str(file), "--run-id", run_id, "--grace", "1", *options]
    process = subprocess.Popen([*words, "--work-dir", str(folder / "made")])
    if stop is not None:
        process.send_signal(stop(folder / "made" / run_id))
    process.wait()


def when_waiting(number: int) -> Callable[[Path], int]:
    """Return what waits for the step `need` and returns the signal."""

    def wait(run_dir: Path) -> int:
        while not (run_dir / "need" / "log.txt").exists():
            time.sleep(0.05)
        time.sleep(1.0)
        return number

    return wait


def main() -> None:
    """Make all runs."""
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1]).absolute()
    (folder / "compiled").mkdir(parents=True)
    run(folder, training, "succeeded")
    run(folder, training, "cached")
    run(folder, broken, "failed")
    run(folder, waiting, "killed", stop=when_waiting(signal.SIGKILL))
    run(folder, waiting, "cancelled", stop=when_waiting(signal.SIGINT))
    run(folder, custom, "custom-job")
    time.sleep(3)
    words = {str(folder / "made"): "@WORK_DIR@", str(folder): "@FOLDER@"}
    words[str(Path(kfp.__file__).parents[1])] = "@PACKAGES@"
    words[str(Path(__file__).parents[3])] = "@REPOSITORY@"
    for path in [each for each in (folder / "made").rglob("*") if each.is_file() and not each.is_symlink()]:
        text = path.read_text()
        for word, sign in words.items():
            text = text.replace(word, sign)
        path.write_text(re.sub(r"/tmp/localvertex-\w+", "@TEMPORARY@", text))
    shutil.rmtree(folder / "compiled")
    shutil.rmtree(folder / "made" / ".localvertex")
    os.unlink(folder / "made" / "steps.txt")


if __name__ == "__main__":
    main()
