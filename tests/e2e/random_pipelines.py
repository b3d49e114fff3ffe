"""Random small pipelines for random_kills.py, whose steps note in a file when they start."""

import random
from typing import Any

from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl
from kfp.dsl import OutputPath, PipelineTaskFinalStatus

IMAGE = "steps"

ALWAYS = 1000
"""Number of starts that fail in a step that never succeeds."""

_SHELL = """
echo "$PWD" >> "$1"
sleep "$5"
[ "$(grep -cxF "$PWD" "$1")" -gt "$4" ] || exit 3
mkdir -p "$(dirname "$6")"
echo $(( (7 * $2 + 3 * $3 + 1) % 1000 )) > "$6"
"""

_REPLICA = "import os, sys; open(sys.argv[1], 'a').write(os.getcwd() + chr(10))"


@dsl.container_component
def shell(log: str, number: int, item: int, fails: int, seconds: float, value: OutputPath(int)) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(
        image=IMAGE, command=["sh", "-c", _SHELL], args=["sh", log, number, item, fails, seconds, value]
    )


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def python(log: str, number: int, item: int, fails: int, seconds: float) -> int:
    import os
    import time

    with open(log, "a") as file:
        file.write(os.getcwd() + "\n")
    time.sleep(seconds)
    with open(log) as file:
        if file.read().splitlines().count(os.getcwd()) <= fails:
            raise RuntimeError("this start fails")
    return (7 * number + 3 * item + 1) % 1000


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def total(log: str, values: list) -> int:
    import os

    with open(log, "a") as file:
        file.write(os.getcwd() + "\n")
    return sum(values) % 1000


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def leave(log: str, status: PipelineTaskFinalStatus) -> str:
    import os

    with open(log, "a") as file:
        file.write(os.getcwd() + "\n")
    return status.state


class _Builder:
    """Builds the tasks of one pipeline."""

    def __init__(self, draw: random.Random, log: Any) -> None:
        self._draw, self._log = draw, log
        self._components = draw.choice([[shell], [shell, python]])

    def step(self, number: Any, item: Any = 0, fails: int = 0, component: Any = None, after: Any = None) -> Any:
        """Add a step and return its output."""
        component = component or self._draw.choice(self._components)
        seconds = self._draw.choice([0.0, 0.0, 0.02, 0.1])
        task = component(log=self._log, number=number, item=item, fails=fails, seconds=seconds)
        task.set_caching_options(False)
        if after is not None:
            task.after(after)
        if fails:
            task.set_retry(num_retries=self._draw.randint(1, 2), backoff_duration="0s")
        return task.outputs["value" if component is shell else "Output"]

    def blocks(self, source: Any) -> Any:
        """Add some blocks after each other, and return the output of the last."""
        source = self.step(source, component=shell)
        for _ in range(self._draw.randint(1, 4)):
            kinds = [self.step, self.flaky, self.broken, self.loop, self.condition, self.job]
            (block,) = self._draw.choices(kinds, weights=[8, 2, 2, 4, 4, 1])
            source = block(source)
        return source

    def flaky(self, source: Any) -> Any:
        """Add a step whose first start fails."""
        return self.step(source, fails=1)

    def broken(self, source: Any) -> Any:
        """Add a step that always fails, with a step after it, beside what follows."""
        self.step(self.step(source, fails=ALWAYS))
        return source

    def loop(self, source: Any) -> Any:
        """Add a loop with one or two steps, perhaps a condition, and the sum of its outputs."""
        items = self._draw.sample(range(100), self._draw.randint(1, 5))
        with dsl.ParallelFor(items, parallelism=self._draw.choice([0, 1, 2])) as item:
            value = self.step(source, item)
            if self._draw.random() < 0.5:
                with dsl.If(item > 50):
                    self.step(value, item)
            if self._draw.random() < 0.5:
                value = self.step(value, item)
        if self._draw.random() < 0.5:
            return source
        return total(log=self._log, values=dsl.Collected(value)).set_caching_options(False).output

    def condition(self, source: Any) -> Any:
        """Add two branches and take the output of the one that runs."""
        with dsl.If(source > self._draw.randrange(1000)):
            first = self.step(source)
        with dsl.Else():
            second = self.step(source)
        return dsl.OneOf(first, second)

    def job(self, source: Any) -> Any:
        """Add a custom job and a step after it."""
        container = {"image_uri": "gcr.io/x/y:1", "command": ["python", "-c", _REPLICA], "args": [self._log]}
        pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}
        task = CustomTrainingJobOp(display_name="job", worker_pool_specs=[pool])
        return self.step(source, after=task)


def random_pipeline(seed: int) -> Any:
    """Return the pipeline of a seed, with the parameters `log` and `number`."""
    draw = random.Random(seed)

    @dsl.pipeline(name="random")
    def pipeline(log: str, number: int = 1) -> None:
        builder = _Builder(draw, log)
        if draw.random() < 0.4:
            with dsl.ExitHandler(leave(log=log).set_caching_options(False)):
                builder.blocks(number)
        else:
            builder.blocks(number)

    return pipeline
