"""What a user's program does, over either transport: a function is a flow, and its outcome is a value or an error."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from kfp import compiler, dsl

from vertex_testing.runs import STEP

PIPELINE = "pipeline.yaml"
"""In the folder in which the flows run."""


class Flow(NamedTuple):
    """A function and, over gRPC, its value or the class of its error."""

    run: Callable[[], Any]
    expected: Any


FLOWS: dict[str, Flow] = {}


def flow(expected: Any) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Declare a flow by what a user expects of it over gRPC."""

    def declare(run: Callable[[], Any]) -> Callable[[], Any]:
        FLOWS[run.__name__] = Flow(run, expected)
        return run

    return declare


def outcome(run: Callable[[], Any]) -> dict[str, Any]:
    """Return the value of a flow, or the class of its error and the message in one line."""
    try:
        return {"value": run()}
    except Exception as error:
        message = str(getattr(error, "message", error)) or repr(error)
        # Over REST the SDK puts the request before the message.
        message = re.sub(r"^[A-Z]+ https?://\S+: ", "", " ".join(message.split()))
        # Ids, times and the servers' folders differ.
        message = re.sub(r"\d{6,}|/\S*/runs/", "N", message)
        return {"raises": type(error).__name__, "message": message[:160]}


@dsl.component(**STEP)
def train(rate: float, seconds: float, model: dsl.Output[dsl.Model], metrics: dsl.Output[dsl.Metrics]) -> float:
    """Wait, fail with a negative rate, and write a model."""
    import time

    time.sleep(seconds)
    if rate < 0:
        raise ValueError("the rate is negative")
    open(model.path, "w").write("weights")
    metrics.log_metric("accuracy", 1 - rate)
    return 1 - rate


@dsl.pipeline(name="training")
def training(rate: float, seconds: float = 0.0) -> None:
    """Train once."""
    train(rate=rate, seconds=seconds)


def compile_pipeline() -> None:
    """Write the file of the pipeline jobs."""
    compiler.Compiler().compile(training, PIPELINE)
