"""Other machines for a training that finds none: an ordered list in the settings, and the candidates that it makes."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from components.train.machines import Machines
from localvertex._base.userinput.errors import UserError
from localvertex.machines import Finding
from trainer.settings import COUNT, POSITIVE, check as check_value, check_all, from_values, setting

REGION = "region"
_ENTRY = {REGION: str} | {
    field.name: field.metadata["kind"] or str
    for field in dataclasses.fields(Machines)
    if field.name
    in {
        "scheduling_strategy",
        "machine_type",
        "accelerator_type",
        "accelerator_count",
        "replica_count",
        "max_wait_seconds",
    }
}
"""What a fallback may change, with its kind; it has the other fields of the first candidate."""

FIELDS = tuple(name for name in _ENTRY if name != REGION)
"""The fields of `Machines` among these."""

_REGIONAL = ("tensorboard", "kms_key", "network", "reservation", "persistent_resource_id")
"""Settings that name a resource of one region, or a network that is peered with one."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fallbacks:
    """Settings of a training over several machines; without `fallbacks` the others mean nothing."""

    fallbacks: list[dict[str, Any]] = setting(  # noqa: RUF009
        "Machines to try in this order where there are none; docs/fallbacks.md. Not tried on Vertex AI yet.",
        [_ENTRY],
        default_factory=list,
    )
    max_preemptions: int = setting(
        "Preemptions within preemption_window_seconds that a Spot machine of a training with fallbacks survives.",
        COUNT,
        default=3,
    )
    preemption_window_seconds: int = setting("See max_preemptions.", POSITIVE, default=6 * 3600)

    def __post_init__(self) -> None:
        """Refuse entries that are not fallbacks.

        Raises:
            UserError: An entry is not a mapping, is empty, has another key or a value of another kind.
        """
        # In kfp's structures, 2 may arrive as 2.0 or as a text; what else is wrong is found below.
        entries = [
            {name: check_value(f"fallbacks[{index}].{name}", value, _ENTRY[name]) for name, value in entry.items()}
            if isinstance(entry, dict) and entry.keys() <= _ENTRY.keys()
            else entry
            for index, entry in enumerate(self.fallbacks if isinstance(self.fallbacks, list) else ())
        ]
        object.__setattr__(self, "fallbacks", entries or self.fallbacks)
        check_all(self)
        for index, entry in enumerate(self.fallbacks):
            if not entry:
                raise UserError(f"fallbacks[{index}] is empty; expected some of {', '.join(_ENTRY)}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Candidate:
    """Machines in a region on which a training may run."""

    region: str
    machines: Machines

    def __str__(self) -> str:
        """Return e.g. `1 x g2-standard-8 with 1 x NVIDIA_L4, SPOT in us-central1`."""
        return f"{self.machines} in {self.region}"

    @property
    def devices(self) -> tuple[str, int]:
        """Kind and number of the devices that compute; of CPUs, the machine type decides what they compute."""
        machines = self.machines
        kind = machines.accelerator_type or machines.machine_type
        return kind, machines.replica_count * max(1, machines.accelerator_count)


def overlaid(first: Mapping[str, Any], fallbacks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return all candidates as mappings, in the order in which they are tried.

    Args:
        first: Values of the first candidate, which the others have where they do not change them; they may be known
            only at run time.
        fallbacks: What each other candidate changes.
    """
    # A fallback to CPUs says so by the empty type.
    without = {"accelerator_count": 0}
    return [dict(first)] + [
        {**first, **(without if entry.get("accelerator_type") == "" else {}), **entry} for entry in fallbacks
    ]


def candidates(entries: Sequence[Mapping[str, Any]], values: Mapping[str, Any], *, region: str) -> list[Candidate]:
    """Return the candidates of a run.

    Args:
        entries: What `overlaid` returns.
        values: Values of the fields of `Machines` that entries do not have.
        region: Region of the entries that name none.

    Raises:
        UserError: A value is wrong on any machine; of a fallback, the message begins with its place in the list.
    """
    found = []
    for index, entry in enumerate(entries):
        with _named(index):
            machines = from_values(Machines, {**values, **entry})
            found.append(Candidate(region=str(entry.get(REGION) or region), machines=machines))
    return found


def check(
    values: Mapping[str, Any],
    *,
    image: str,
    region: str,
    check_machines: Callable[..., list[Finding]],
) -> list[Finding]:
    """Check all fallbacks of a run and return the warnings; without fallbacks there is nothing to check.

    Args:
        values: Values of the fields of `Machines` and `Fallbacks`, `exact`, and the names of the project's resources.
        image: Container image of the training job.
        region: Region of the first candidate.
        check_machines: Checks the machines of a candidate, given `image` and `region`, as those of the first one.

    Raises:
        UserError: Vertex AI would refuse a fallback, or it cannot continue this training; the message begins with its
            place in the list.
    """
    given = Fallbacks(fallbacks=values.get("fallbacks") or [])
    first, *others = candidates(overlaid({}, given.fallbacks), values, region=region)
    findings = []
    for index, candidate in enumerate(others, 1):
        with _named(index):
            _check_region(candidate.region, region, values)
            if str(values.get("exact", "")).lower() == "true" and candidate.devices != first.devices:
                raise UserError(
                    f"it has {_devices(candidate)}, and the first machines have {_devices(first)}; with exact=true a "
                    "training continues only on the same kind and number of devices: change the fallback, or set "
                    "exact=false"
                )
            findings += check_machines(candidate.machines, image=image, region=candidate.region)
    regions = [each.region for each in others if each.region != region]
    if regions:
        findings.append(
            Finding(
                rule="other-region",
                severity="warning",
                path="fallbacks",
                message=f"in {', '.join(dict.fromkeys(regions))} the training reads data and writes checkpoints in the "
                f"bucket of {region}, which is slower, and Google charges for the traffic between regions",
            )
        )
    return findings


def _devices(candidate: Candidate) -> str:
    kind, number = candidate.devices
    return f"{number} x {kind}"


def _check_region(own: str, region: str, values: Mapping[str, Any]) -> None:
    for name in _REGIONAL if own != region else ():
        if values.get(name):
            raise UserError(
                f"region is {own}, but {name} is {values[name]}, which a training in another region than {region} "
                f"cannot use; leave out region in the fallback, or {name} in the settings"
            )


@contextlib.contextmanager
def _named(index: int) -> Iterator[None]:
    """Begin errors with the place in the list; the first candidate is not in the list."""
    try:
        yield
    except UserError as error:
        if not index:
            raise
        raise UserError(f"fallbacks[{index - 1}]: {error}") from None
