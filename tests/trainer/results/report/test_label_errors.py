"""The section on label errors: bounded, safe with any name, and never empty without a reason."""

import base64
import dataclasses
import json

import numpy as np
import pytest

from trainer.data.dataset import Dataset
from trainer.data.pages import page
from trainer.results import predictions
from trainer.results.confident_learning import LabelErrors
from trainer.results.predictions import Predictions
from trainer.results.report import label_errors
from vertex_testing.html import Page

HOSTILE = '<img src=x onerror="alert(1)">\n\u202egnp.exe'


@pytest.fixture(scope="module")
def both(digits: Dataset) -> list[Predictions]:
    """Predictions of the next class for all images of two splits."""
    found = []
    for split in ("validation", "test"):
        labels = np.array([record.label for record in digits.records(split)], np.int32)
        probabilities = np.eye(10, dtype=np.float32)[(labels + 1) % 10]
        found.append(Predictions(split=split, labels=labels, probabilities=probabilities))
    return found


def test_the_gallery_names_files_of_both_splits(digits: Dataset, both: list[Predictions]) -> None:
    first_test_image = len(both[0].labels)
    found = LabelErrors(indices=(first_test_image + 3, 2))
    made = label_errors.block(found, digits, both, all_lines="")
    assert isinstance(made, page.Gallery)
    for image, (split, index) in zip(made.images, [("test", 3), ("validation", 2)], strict=True):
        (record,) = digits.records(split, [index])
        assert image.image_bytes == record.image_bytes
        assert image.detail == f"100% confident, {split}, {record.file_name}"
        assert image.caption == f"labelled {record.label}, probably {(record.label + 1) % 10}"


def test_the_gallery_is_bounded_and_counts_the_rest(digits: Dataset, both: list[Predictions]) -> None:
    found = LabelErrors(indices=tuple(range(40)), unknown=(3, 5))
    made = label_errors.block(found, digits, both, all_lines="All are in the file.")
    assert isinstance(made, page.Gallery)
    assert len(made.images) == 24
    assert "40 labels are probably wrong. The 24 most certain ones are shown. All are in the file." in made.note
    assert "fewer than 5: 3 and 5." in made.note


def test_names_are_text_without_line_breaks_and_turned_directions(digits: Dataset, both: list[Predictions]) -> None:
    hostile = dataclasses.replace(digits, class_names=tuple(f"{HOSTILE}{number}" for number in range(10)))
    found = LabelErrors(indices=(0, 1), unknown=(9,))
    html = page.render(title="x", blocks=[label_errors.block(found, hostile, both, all_lines="")])
    assert "<img src=x" not in html
    assert "\u202e" not in html
    assert r"&gt;\n\u202egnp.exe" in html
    assert Page(html).unbalanced == []


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (LabelErrors(reason="Too few."), "The labels were not checked. Too few."),
        (LabelErrors(), "It agrees with 0.0% of them. No label is probably wrong."),
        (LabelErrors(unknown=tuple(range(10))), "0, 1, 2, 3, 4, 5, 6, 7, 8 and 9. No label of the other classes is"),
    ],
)
def test_a_section_without_images_has_a_reason(
    digits: Dataset, both: list[Predictions], found: LabelErrors, text: str
) -> None:
    made = label_errors.block(found, digits, both, all_lines="")
    assert isinstance(made, page.Text)
    assert text in made.text


def test_many_unknown_classes_are_counted(digits: Dataset, both: list[Predictions]) -> None:
    many = dataclasses.replace(digits, class_names=tuple(f"c{number}" for number in range(1000)))
    made = label_errors.block(LabelErrors(unknown=tuple(range(1000))), many, both, all_lines="")
    assert isinstance(made, page.Text)
    assert "c8, c9 and 990 more." in made.text


def test_each_prediction_is_a_line(digits: Dataset, both: list[Predictions]) -> None:
    lines = list(predictions.lines(digits, both, frozenset({len(both[0].labels)})))
    assert len(lines) == sum(len(each.labels) for each in both)
    (record,) = digits.records("test", [0])
    expected = {
        "file_name": record.file_name,
        "label": str(record.label),
        "predicted": str((record.label + 1) % 10),
        "probability": 1.0,
        "split": "test",
        "is_probable_label_error": True,
        "image": f"data:image/png;base64,{base64.b64encode(record.image_bytes).decode()}",
    }
    assert json.loads(lines[len(both[0].labels)]) == expected
    assert all(line.endswith("}\n") for line in lines)
    assert all('"is_probable_label_error": null' in line for line in predictions.lines(digits, both, None))


def test_the_most_confident_mistakes_have_their_image(digits: Dataset, both: list[Predictions]) -> None:
    # All predictions are wrong, with less and less confidence, but one.
    falling = []
    for each in both:
        factors = np.linspace(1.0, 0.5, len(each.labels), dtype=np.float32)
        falling.append(dataclasses.replace(each, probabilities=each.probabilities * factors[:, None]))
    falling[1].probabilities[0] = np.eye(10, dtype=np.float32)[falling[1].labels[0]]
    lines = [json.loads(line) for line in predictions.lines(digits, falling, None)]
    shown = [each for each in lines if "image" in each]
    assert len(shown) == min(200, len(lines) - 1)
    assert all(each["label"] != each["predicted"] for each in shown)
    others = [each for each in lines if "image" not in each and each["label"] != each["predicted"]]
    assert max((each["probability"] for each in others), default=0) <= min(each["probability"] for each in shown)
