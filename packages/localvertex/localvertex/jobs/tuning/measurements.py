"""Metrics of a trial: the file that CLOUD_ML_HP_METRIC_FILE names, in the format of Google's cloudml-hypertune.

The program rewrites the whole file at each report, one JSON object per line (hypertune.py of cloudml-hypertune
0.1.0.dev6): `timestamp`, `trial`, `global_step`, `checkpoint_path`, and the value as text under the metric's name. It
keeps the last 100 lines, so the file is read while the trial runs.
"""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex.machines.studies.study import Metric, Selection, Study

_OTHER_FIELDS = ("timestamp", "trial", "global_step", "checkpoint_path")


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The metrics of a trial at one step."""

    step: int
    values: dict[str, float]
    """Values by metric."""

    def as_json(self) -> JsonObject:
        """Return the API's Measurement message."""
        metrics = [{"metricId": name, "value": value} for name, value in self.values.items()]
        return {"stepCount": str(self.step), "metrics": metrics}


@dataclass(kw_only=True)
class MetricFile:
    """The reports of one trial."""

    path: Path
    _lines: dict[str, list[Measurement]] = field(default_factory=dict)
    """The reports: one per metric of each line, in the order of the file."""
    _stamp: tuple[int, int] = (0, 0)

    def poll(self) -> None:
        """Read new lines; an incomplete one is read next time."""
        try:
            found = self.path.stat()
            stamp = (found.st_mtime_ns, found.st_size)
            if stamp == self._stamp:
                return
            text = self.path.read_text(errors="replace")
        except OSError:
            return
        self._stamp = stamp
        for line in text.splitlines():
            if (reports := _reports_of(line)) is not None:
                self._lines.pop(line, None)
                self._lines[line] = reports

    @property
    def names(self) -> list[str]:
        """The metrics that were reported."""
        return list(dict.fromkeys(name for each in self._reports for name in each.values))

    @property
    def _reports(self) -> list[Measurement]:
        return [each for reports in self._lines.values() for each in reports]

    def final(self, study: Study) -> Measurement | None:
        """Return the measurement that the study selects; None if a metric was never reported.

        With several metrics the first one decides which report is the best. The others are taken from the same step,
        if they were reported there.
        """
        first = self._reports_of(study.metrics[0])
        if not first:
            return None
        chosen = first[-1]
        if study.selection is Selection.BEST_MEASUREMENT:
            for each in first:
                if study.metrics[0].is_better(each.values[study.metrics[0].name], chosen.values[study.metrics[0].name]):
                    chosen = each
        values = dict(chosen.values)
        for metric in study.metrics[1:]:
            found = self._reports_of(metric)
            if not found:
                return None
            same = [each for each in found if each.step == chosen.step]
            values |= (same or found)[-1].values
        return Measurement(step=chosen.step, values=values)

    def _reports_of(self, metric: Metric) -> list[Measurement]:
        return [each for each in self._reports if metric.name in each.values]


def _reports_of(line: str) -> list[Measurement] | None:
    """Return one report per finite value of a line; None if the line is incomplete."""
    try:
        fields = json.loads(line)
        step = int(fields.get("global_step") or 0)
        values = {name: float(value) for name, value in fields.items() if name not in _OTHER_FIELDS}
    except (ValueError, TypeError, AttributeError):
        return None
    return [Measurement(step=step, values={n: value}) for n, value in values.items() if math.isfinite(value)]
