"""The table of the networks of `keras.applications`, from applications.csv. Needs no Keras."""

import csv
import dataclasses
import pathlib
from typing import Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Application:
    """One row: a network of `keras.applications`. A test compares the table with the installed Keras."""

    name: str
    """Keras' name in lower case, with a dash before the size of a family, e.g. efficientnetv2-b0."""
    function: str
    """Name in `keras.applications`."""
    preprocessing: str
    """Module of `keras.applications` with the preprocess_input of the network."""
    smallest_image_size: int
    """Minimum height and width that the network accepts, in pixels."""
    usual_image_size: int
    """Height and width that the imagenet weights were trained on, in pixels."""
    head_units: int
    """Units of the hidden layer between base and classes; 0: no such layer."""

    @property
    def description(self) -> str:
        """One line of text."""
        head = f" and a head of {self.head_units} units" if self.head_units else ""
        return (
            f"keras.applications.{self.function}{head}; images from {self.smallest_image_size} pixels, usually"
            f" {self.usual_image_size}"
        )


def _read() -> dict[str, Application]:
    sizes = ("smallest_image_size", "usual_image_size", "head_units")
    with (pathlib.Path(__file__).parent / "applications.csv").open(newline="", encoding="utf-8") as file:
        rows: list[dict[str, Any]] = [row | {name: int(row[name]) for name in sizes} for row in csv.DictReader(file)]
    return {row["name"]: Application(**row) for row in rows}


APPLICATIONS = _read()
