"""One trial of a tuning job, and `trial.json`, from which a resumed job knows the trials that succeeded."""

import json
from dataclasses import dataclass
from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput import atomic_write
from localvertex.jobs.tuning.measurements import Measurement
from localvertex.jobs.tuning.suggestions import Point
from localvertex.store import record

FILE = "trial.json"

_NUMBERS = {"ACTIVE": 2, "STOPPING": 3, "SUCCEEDED": 4, "INFEASIBLE": 5}
"""The API's Trial.State."""


@dataclass(kw_only=True)
class Trial:
    """A trial as the API describes it. Only the job's own thread changes it."""

    id: str
    point: Point
    custom_job: str
    """The resource name of its job."""
    state: str = "ACTIVE"
    """ACTIVE, SUCCEEDED, INFEASIBLE (failed, or without a measurement) or STOPPING (the job ended first)."""
    start_time: str = ""
    end_time: str = ""
    final: Measurement | None = None
    infeasible_reason: str = ""

    @property
    def has_succeeded(self) -> bool:
        """Whether it has a final measurement."""
        return self.state == "SUCCEEDED"

    def start(self) -> None:
        """Record the start of the trial."""
        self.start_time = _now()

    def end(self, final: Measurement | None, reason: str = "") -> None:
        """Record the end of the trial: its measurement, or why it has none."""
        self.state = "SUCCEEDED" if final else "INFEASIBLE"
        self.final, self.infeasible_reason, self.end_time = final, reason, _now()

    def as_json(self) -> JsonObject:
        """Return the API's Trial message; fields without a value are omitted, as in the API's responses."""
        parameters = [{"parameterId": name, "value": value} for name, value in self.point.items()]
        message = {
            "id": self.id,
            "state": self.state,
            "parameters": parameters,
            "finalMeasurement": self.final.as_json() if self.final else None,
            "startTime": self.start_time,
            "endTime": self.end_time,
            "infeasibleReason": self.infeasible_reason,
            "customJob": self.custom_job,
        }
        return {name: value for name, value in message.items() if value}

    @property
    def sentence(self) -> str:
        """The line that the user sees when the trial has ended."""
        chosen = ", ".join(f"{name}={value}" for name, value in self.point.items())
        values = self.final.values.items() if self.final else ()
        found = ", ".join(f"{name} {value:g}" for name, value in values) or self.infeasible_reason or self.state.lower()
        return f"trial {self.id} ({chosen}): {found}"

    def write(self, folder: Path) -> None:
        """Write its file."""
        atomic_write.write_text(folder / FILE, json.dumps(self.as_json(), indent=1))

    def restore(self, folder: Path) -> bool:
        """Restore the result of an earlier attempt; return false if the trial must run."""
        try:
            message = json.loads((folder / FILE).read_text())
            if message["state"] != "SUCCEEDED" or message["parameters"] != self.as_json().get("parameters", []):
                return False
            final = message["finalMeasurement"]
            values = {each["metricId"]: float(each["value"]) for each in final["metrics"]}
            self.final = Measurement(step=int(final["stepCount"]), values=values)
            self.start_time, self.end_time = message["startTime"], message["endTime"]
            self.custom_job, self.state = message["customJob"], "SUCCEEDED"
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return False
        return True


def as_client_json(message: JsonObject) -> str:
    """Return a Trial message as `Trial.to_json` of Google's client library writes it: enums as numbers, all fields."""
    empty = {"name": "", "parameters": [], "measurements": [], "clientId": "", "infeasibleReason": "", "customJob": ""}
    return json.dumps({**empty, "webAccessUris": {}, **message, "state": _NUMBERS[message["state"]]}, indent=2)


def _now() -> str:
    # Protobuf writes a whole second without a fraction.
    return record.now().replace(".000Z", "Z")
