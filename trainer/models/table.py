"""The networks of `keras.applications`, from applications.csv. Needs no Keras."""

from __future__ import annotations

import csv
import dataclasses
import pathlib


@dataclasses.dataclass(frozen=True, kw_only=True)
class Application:
    """One row: a network of `keras.applications`. A test compares the rows with the installed Keras."""

    name: str
    """Keras' name in lower case, with a dash before the size of a family, e.g. efficientnetv2-b0."""
    function: str
    """Name in `keras.applications`."""
    preprocessing: str
    """Module of `keras.applications` whose preprocess_input belongs to the network."""
    smallest_image_size: int
    """Pixels; the network refuses less."""
    usual_image_size: int
    """Pixels; what the imagenet weights were trained on."""
    head_units: int
    """Width of the hidden layer between base and classes; 0: none."""

    @property
    def description(self) -> str:
        """One line for a person."""
        head = f" and a head of {self.head_units} units" if self.head_units else ""
        return (
            f"keras.applications.{self.function}{head}; images from {self.smallest_image_size} pixels, usually"
            f" {self.usual_image_size}"
        )


def _read() -> dict[str, Application]:
    with (pathlib.Path(__file__).parent / "applications.csv").open(newline="", encoding="utf-8") as file:
        return {
            row["name"]: Application(
                name=row["name"],
                function=row["function"],
                preprocessing=row["preprocessing"],
                smallest_image_size=int(row["smallest_image_size"]),
                usual_image_size=int(row["usual_image_size"]),
                head_units=int(row["head_units"]),
            )
            for row in csv.DictReader(file)
        }


APPLICATIONS = _read()
