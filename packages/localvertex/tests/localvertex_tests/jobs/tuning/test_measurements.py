"""The metric file of a trial, in the format of cloudml-hypertune 0.1.0.dev6."""

import json
from pathlib import Path
from typing import Any

import pytest

from localvertex.jobs.tuning.measurements import MetricFile
from localvertex.machines.studies.study import read_study

PARAMETER = {"parameter_id": "units", "integer_value_spec": {"min_value": 1, "max_value": 3}}


def study(selection: str, *metrics: tuple[str, str]) -> Any:
    listed = [{"metric_id": name, "goal": goal} for name, goal in metrics]
    return read_study({"metrics": listed, "parameters": [PARAMETER], "measurement_selection_type": selection})


BEST = study("BEST_MEASUREMENT", ("loss", "MINIMIZE"))
LAST = study("LAST_MEASUREMENT", ("loss", "MINIMIZE"))


def line(step: int, timestamp: float | None = None, **values: object) -> str:
    fields = {"timestamp": step if timestamp is None else timestamp, "trial": "1", "global_step": str(step)}
    return json.dumps(fields | {"checkpoint_path": ""} | {name: str(value) for name, value in values.items()})


@pytest.fixture
def metrics(tmp_path: Path) -> MetricFile:
    return MetricFile(path=tmp_path / "output.metrics")


def test_lines_that_the_program_has_dropped_from_its_file_still_count(metrics: MetricFile) -> None:
    metrics.path.write_text(f"{line(1, loss=0.1)}\n{line(2, loss=0.5)}\n")
    metrics.poll()
    metrics.path.write_text(f"{line(2, loss=0.5)}\n{line(3, loss=0.4)}\n")
    metrics.poll()
    best, last = metrics.final(BEST), metrics.final(LAST)
    assert best
    assert last
    assert (best.step, best.values) == (1, {"loss": 0.1})
    assert (last.step, last.values) == (3, {"loss": 0.4})


def test_a_line_that_is_being_written_is_read_when_it_is_complete(metrics: MetricFile) -> None:
    whole = f"{line(1, loss=0.5)}\n{line(2, loss=0.25)}\n"
    metrics.path.write_text(whole[:-8])
    metrics.poll()
    first = metrics.final(LAST)
    assert first
    assert first.step == 1
    metrics.path.write_text(whole)
    metrics.poll()
    second = metrics.final(LAST)
    assert second
    assert (second.step, second.values) == (2, {"loss": 0.25})


def test_the_last_line_counts_although_an_earlier_one_is_equal(metrics: MetricFile) -> None:
    metrics.path.write_text("\n".join(line(0, 0.0, loss=loss) for loss in (0.5, 0.25, 0.5)))
    metrics.poll()
    last = metrics.final(LAST)
    assert last
    assert last.values == {"loss": 0.5}


@pytest.mark.parametrize(
    "text", ["", "no JSON\n", "[1]\n", '{"loss": "high"}\n', '{"loss": "nan"}\n', '{"other": "1"}\n']
)
def test_a_file_without_a_finite_value_of_the_metric_has_no_measurement(metrics: MetricFile, text: str) -> None:
    metrics.path.write_text(text)
    metrics.poll()
    assert metrics.final(BEST) is None
    assert metrics.final(LAST) is None


def test_a_file_that_does_not_exist_has_no_measurement(metrics: MetricFile) -> None:
    metrics.poll()
    assert metrics.final(BEST) is None
    assert metrics.names == []


def test_the_first_metric_decides_and_the_others_are_from_the_same_step(metrics: MetricFile) -> None:
    both = study("BEST_MEASUREMENT", ("loss", "MINIMIZE"), ("accuracy", "MAXIMIZE"))
    lines = [line(step, loss=loss) for step, loss in ((1, 0.5), (2, 0.1), (3, 0.4))]
    lines += [line(step, accuracy=accuracy) for step, accuracy in ((1, 0.9), (2, 0.8), (3, 0.7))]
    metrics.path.write_text("\n".join(lines))
    metrics.poll()
    final = metrics.final(both)
    assert final
    assert (final.step, final.values) == (2, {"loss": 0.1, "accuracy": 0.8})
    metrics = MetricFile(path=metrics.path)
    metrics.path.write_text("\n".join(lines[:3]))
    metrics.poll()
    assert metrics.final(both) is None
    assert metrics.names == ["loss"]
