"""Failures: exit handlers, tasks that ignore failures, retries, and order without values."""

from kfp import dsl
from localvertex_tests.constructs.construct import construct

from vertex_testing.runs import STEP

_SKIPPED = "NOT_TRIGGERED"


@dsl.component(**STEP)
def work() -> str:
    return "done"


@dsl.component(**STEP)
def fail() -> str:
    raise ValueError("on purpose")


@dsl.component(**STEP)
def use(text: str) -> str:
    return text


@dsl.component(**STEP)
def clean(text: str = "default") -> str:
    return f"cleaned {text}"


@dsl.component(**STEP)
def status(final: dsl.PipelineTaskFinalStatus) -> str:
    return f"{final.state} {final.pipeline_task_name} {final.error_code} {'on purpose' in (final.error_message or '')}"


@dsl.component(**STEP)
def fail_once(attempts: dsl.Output[dsl.Artifact]) -> str:
    import os

    # Beside the artifact, which every attempt writes anew.
    path = attempts.path + ".before"
    if not os.path.exists(path):
        open(path, "w").close()
        raise ValueError("the first attempt")
    return "second"


@construct(tasks={"status": {"Output": "SUCCEEDED exit-handler-1 None False"}})
@dsl.pipeline(name="exit-handler")
def exit_handler() -> None:
    with dsl.ExitHandler(status()):
        work()


@construct(
    state="FAILED",
    error="on purpose",
    states={"exit-handler-1": "FAILED", "exit-handler-1/fail": "FAILED", "exit-handler-1/use": _SKIPPED},
    tasks={"status": {"Output": "FAILED exit-handler-1 9 True"}},
)
@dsl.pipeline(name="exit-handler-after-a-failure")
def exit_handler_after_a_failure() -> None:
    with dsl.ExitHandler(status()):
        use(text=fail().output)


@construct(
    state="FAILED",
    error="on purpose",
    states={"fail": "FAILED", "use": _SKIPPED},
    tasks={"work": {"Output": "done"}},
)
@dsl.pipeline(name="failed-task")
def failed_task() -> None:
    use(text=fail().output)
    work()


@construct(
    state="FAILED",
    error="on purpose",
    states={"fail": "FAILED"},
    tasks={"clean": {"Output": "cleaned default"}},
)
@dsl.pipeline(name="ignored-failure")
def ignored_failure() -> None:
    clean(text=fail().output).ignore_upstream_failure()


@construct(outputs={"Output": "second"}, attempts={"fail-once": 2})
@dsl.pipeline(name="retry")
def retry() -> str:
    return (
        fail_once()
        .set_retry(num_retries=2, backoff_duration="0s", backoff_factor=1.5, backoff_max_duration="1s")
        .outputs["Output"]
    )


@construct(state="FAILED", error="on purpose", states={"fail": "FAILED"}, attempts={"fail": 3})
@dsl.pipeline(name="retries-used-up")
def retries_used_up() -> None:
    fail().set_retry(num_retries=2, backoff_duration="0s")


@construct(tasks={"work-2": {"Output": "done"}, "work-3": {"Output": "done"}})
@dsl.pipeline(name="order-without-values")
def order_without_values() -> None:
    first = work()
    second = work().after(first)
    work().after(first, second)
