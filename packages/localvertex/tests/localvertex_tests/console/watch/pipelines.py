"""A pipeline with every kind of artifact that the page shows, and one that fails."""

from kfp import dsl

from vertex_testing.runs import STEP


@dsl.component(**STEP)
def report(
    there: str,
    page: dsl.Output[dsl.HTML],
    notes: dsl.Output[dsl.Markdown],
    scores: dsl.Output[dsl.Metrics],
    classes: dsl.Output[dsl.ClassificationMetrics],
    picture: dsl.Output[dsl.Artifact],
    model: dsl.Output[dsl.Model],
) -> str:
    import base64
    import os
    import time
    from pathlib import Path

    print("waiting for <b>permission</b>", flush=True)
    number = 0
    while not os.path.exists(there):
        time.sleep(0.02)
        number += 1
        print(f"line {number}", flush=True)
    Path(page.path).write_text("<h1>A page</h1><p>with <b>markup</b></p>")
    Path(notes.path).write_text("# Notes\n\n**bold** <img src=x onerror=alert(1)> [link](https://example.com)\n")
    scores.log_metric("accuracy", 0.9875)
    classes.log_confusion_matrix(["cat", "dog"], [[9, 1], [2, 8]])
    classes.log_roc_curve([0.0, 0.2, 1.0], [0.0, 0.9, 1.0], [1.0, 0.5, 0.0])
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    Path(picture.path).write_bytes(base64.b64decode(pixel))
    Path(model.path).mkdir()
    Path(model.path, "weights.bin").write_bytes(b"0" * 2_500_000)
    Path(model.path, "labels.txt").write_text("cat dog")
    return "done"


@dsl.component(**STEP)
def double(number: int) -> int:
    return 2 * number


@dsl.pipeline(name="watched", description="Shows every kind of artifact.")
def watched(there: str, count: int = 3, note: str = "none") -> str:
    with dsl.ParallelFor([1, 2]) as number:
        done = double(number=number)
    return report(there=there).set_display_name("Report <i>").after(done).outputs["Output"]


@dsl.component(**STEP)
def fail(reason: str) -> None:
    print("about to fail")
    raise ValueError(reason)


@dsl.pipeline(name="failing")
def failing(reason: str = "<b>no data</b>") -> None:
    fail(reason=reason)
