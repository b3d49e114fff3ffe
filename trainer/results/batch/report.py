"""The page of a batch prediction: counts per class, and what has no prediction."""

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from trainer.command_line import TrainingError, report_errors as report_errors  # a component imports it from here
from trainer.data.pages import page
from trainer.files import outputs
from trainer.results.batch import answers
from trainer.results.batch.instances import KEY_FIELD

_MAX_CLASSES = 200
_MAX_BAD = 50


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
    missing, problems = num_images - summary.num, answers.errors(predictions_directory)
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
    for answer in answers.read(directory):
        summary.num += 1
        summary.classes[answer.label] += 1
        summary.total_certainty += answer.probability
        content = {KEY_FIELD: answer.file_name, "label": answer.label, "probability": round(answer.probability, 6)}
        yield json.dumps(content) + "\n"


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
