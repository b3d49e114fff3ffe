"""The page of a batch prediction: counts per class, and what has no prediction."""

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from exact_resume.files import storage
from localvertex._base.userinput.spelling import quote
from trainer.command_line import TrainingError, report_errors as report_errors  # a component imports it from here
from trainer.data.pages import page
from trainer.files import outputs
from trainer.results.batch.instances import KEY_FIELD

_MAX_CLASSES = 200
_MAX_BAD = 50


def _read_answers(directory: str) -> Iterator[dict[str, Any]]:
    """Yield file name, label and probability of the predicted class, from all files of predictions.

    Args:
        directory: The folder that the service made, with `prediction.results-...` or `predictions_...`.

    Raises:
        TrainingError: There is no answer, or a line has another form than this project's models return.
    """
    names = [name for name in storage.names(directory) if name.startswith("prediction") and "error" not in name]
    if not names:
        raise TrainingError(f"no predictions in {directory}; look at the log of the batch prediction job")
    for name in names:
        with open(storage.join(directory, name), "rb") as file:
            for number, line in enumerate(file, start=1):
                yield _answer(line, f"{name}:{number}")


def _errors(directory: str) -> list[str]:
    """Return the first lines of the files in which the service reports errors."""
    found = []
    for name in storage.names(directory):
        if "error" in name:
            with open(storage.join(directory, name), "rb") as file:
                found += [line.decode(errors="replace").strip() for line, _ in zip(file, range(5), strict=False)]
    return [each for each in found if each][:5]


def _answer(line: bytes, where: str) -> dict[str, Any]:
    try:
        content: Any = json.loads(line)
        key = content["key"] if "key" in content else content["instance"][KEY_FIELD]
        prediction = content["prediction"]
        label, probabilities = prediction["label"], [float(each) for each in prediction["probabilities"]]
        if not (isinstance(label, str) and probabilities and all(map(math.isfinite, probabilities))):
            raise ValueError("no label or no probabilities")
    except (ValueError, KeyError, TypeError, IndexError):
        raise TrainingError(
            f"{where} is {quote(line, 200)}; expected a key, and a prediction with label and probabilities: the"
            " model was not exported by this project"
        ) from None
    return {KEY_FIELD: str(key), "label": label, "probability": max(probabilities)}


@dataclass(kw_only=True)
class _Summary:
    """Figures of all answers, which are read once."""

    num: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    total_certainty: float = 0.0


def report(
    *,
    predictions_directory: str,
    bad_images_path: str,
    num_images: int,
    model: str,
    max_bad_fraction: float,
    report_path: str,
    results_path: str,
) -> dict[str, float | int]:
    """Write the page and one list of all predictions; return the metrics.

    Args:
        predictions_directory: The folder that the service made.
        bad_images_path: The list of bad images.
        num_images: Number of instances.
        model: The version that predicted, for the page.
        max_bad_fraction: Fraction of images without a prediction (0 to 1) above which this fails.
        report_path: The HTML page.
        results_path: JSON Lines with file_name, label and probability.

    Raises:
        TrainingError: There are no predictions, or too few.
    """
    summary = _Summary()
    outputs.write_lines(results_path, _lines(predictions_directory, summary))
    missing, problems = num_images - summary.num, _errors(predictions_directory)
    if missing > max_bad_fraction * num_images or not summary.num:
        raise TrainingError(
            f"{missing:,} of {num_images:,} images have no prediction, more than max_bad_fraction {max_bad_fraction:g}"
            + "".join(f" ({each})" for each in problems[:1])
        )
    with open(bad_images_path, encoding="utf-8") as file:
        bad = [json.loads(line) for line in itertools.islice(file, _MAX_BAD)]
        num_bad = len(bad) + sum(1 for _ in file)
    text = page.render(
        title="Batch prediction",
        subtitle=f"Predicted by {model}",
        blocks=[
            *_overview(summary, num_bad=num_bad, missing=missing, problems=problems),
            *_bad(bad, num_bad),
        ],
    )
    outputs.write(report_path, text)
    mean = summary.total_certainty / summary.num
    print(f"{summary.num:,} predictions, {num_bad:,} images not read, {missing:,} without a prediction")
    return {"num_predictions": summary.num, "num_bad": num_bad, "num_missing": missing, "mean_probability": mean}


def _lines(directory: str, summary: _Summary) -> Iterator[str]:
    for answer in _read_answers(directory):
        summary.num += 1
        summary.classes[answer["label"]] += 1
        summary.total_certainty += answer["probability"]
        yield json.dumps(answer | {"probability": round(answer["probability"], 6)}) + "\n"


def _overview(summary: _Summary, *, num_bad: int, missing: int, problems: Sequence[str]) -> Iterator[page.Block]:
    yield page.KeyFigures(
        figures=[
            ("predictions", f"{summary.num:,}"),
            ("classes predicted", f"{len(summary.classes):,}"),
            ("mean probability", f"{summary.total_certainty / summary.num:.3f}"),
            ("not read", f"{num_bad:,}"),
        ]
    )
    if missing or problems:
        yield page.Text(
            title="Images without a prediction",
            text=f"{missing:,} images have no prediction. {' '.join(problems)}".strip(),
        )
    counts = summary.classes.most_common()
    yield page.Table(
        title="Images per class",
        note=f"The first {_MAX_CLASSES} of {len(counts):,} classes." if len(counts) > _MAX_CLASSES else "",
        columns=["predicted class", "images", "share"],
        rows=[[name, count, f"{count / summary.num:.1%}"] for name, count in counts[:_MAX_CLASSES]],
    )


def _bad(bad: Sequence[dict[str, str]], num_bad: int) -> Iterator[page.Block]:
    if bad:
        yield page.Table(
            title="Images that were not read",
            note=f"The first {len(bad)} of {num_bad:,}." if num_bad > len(bad) else "",
            columns=["file", "reason"],
            rows=[[each[KEY_FIELD], each["reason"]] for each in bad],
            states=["bad"] * len(bad),
        )
