"""The settings of compilation; everything else is a parameter of the run."""

import argparse
import dataclasses
import re

from components.container_image import PLACEHOLDER_IMAGE, check_image
from components.summary.notification.targets import Targets
from components.train.machines import Machines
from localvertex_base.userinput.errors import UserError
from pipelines.steps import StepMachines

_DEFAULT_MACHINES = Machines(machine_type="g2-standard-8", accelerator_type="NVIDIA_L4", accelerator_count=1)
_DEFAULT_STEPS = StepMachines()

_NO_TARGETS = Targets()

_MAX_RECIPIENTS = 3
"""https://cloud.google.com/vertex-ai/docs/pipelines/email-notifications, 2025-09-04."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Container images, and defaults of parameters."""

    image: str = PLACEHOLDER_IMAGE
    """Container image of the training job, and of the steps that may have GPUs."""
    cpu_image: str = ""
    """Container image of the steps without GPUs, the prediction server and any Dataflow workers; empty: `image`."""
    serving_image: str = ""
    """Another prediction container image of the registered model; empty for this project's server."""
    region: str = "us-central1"
    """Region that the machines are checked for; the compiled file runs wherever it is submitted."""
    machines: Machines = _DEFAULT_MACHINES
    steps: StepMachines = _DEFAULT_STEPS
    recipients: tuple[str, ...] | None = None
    """E-mail addresses for Google's notification op as the exit handler; None for the step `summary`."""
    targets: Targets = _NO_TARGETS
    """Where the step `summary` sends the end of a run."""

    def __post_init__(self) -> None:
        """Refuse image names and e-mail addresses that are not valid, and two kinds of notification.

        Raises:
            UserError: One is not valid.
        """
        check_image("image", self.image)
        if self.serving_image:
            check_image("serving_image", self.serving_image)
        check_image("cpu_image", self.step_image)
        for recipient in self.recipients or ():
            if not re.fullmatch(r"[^@\s]+@[^@\s]+", recipient):
                raise UserError(f"--notify {recipient!r} is not an e-mail address; expected e.g. team@example.com")
        if len(self.recipients or ()) > _MAX_RECIPIENTS:
            raise UserError(f"--notify has {len(self.recipients or ())} addresses; Google's e-mail operation takes 3")
        if self.recipients is not None and self.targets != _NO_TARGETS:
            raise UserError(
                "--notify and --notify-webhook or --notify-topic exclude each other: a pipeline has one exit task, "
                "which is either Google's e-mail operation or `summary`"
            )

    @property
    def step_image(self) -> str:
        """The container image of the steps without GPUs."""
        return self.cpu_image or self.image


def add_machines(parser: argparse.ArgumentParser) -> None:
    """Add a flag for each field of the machines."""
    defaults: dict[str, Machines | StepMachines] = {
        "machines (defaults of the pipeline's parameters)": _DEFAULT_MACHINES,
        "machines of the other steps (fixed in the compiled file)": _DEFAULT_STEPS,
    }
    for title, default in defaults.items():
        group = parser.add_argument_group(title)
        for field in dataclasses.fields(default):
            value = getattr(default, field.name)
            group.add_argument(
                _flag(field.name),
                type=type(value),
                default=value,
                metavar=type(value).__name__.upper(),
                help=field.metadata["help"] + (" (%(default)s)" if value else ""),
            )


def machines_from(options: argparse.Namespace) -> Machines:
    """Return the machines from the options.

    Raises:
        UserError: A value is wrong on any machine.
    """
    return Machines(**{field.name: getattr(options, field.name) for field in dataclasses.fields(Machines)})


def steps_from(options: argparse.Namespace) -> StepMachines:
    """Return the machines of the steps from the options.

    Raises:
        UserError: A value is wrong on any machine.
    """
    return StepMachines(**{field.name: getattr(options, field.name) for field in dataclasses.fields(StepMachines)})


def flags_of(machines: Machines, steps: StepMachines) -> list[str]:
    """Return the flags for the machines, without those that have their defaults."""
    given, defaults = (
        dataclasses.asdict(one) | dataclasses.asdict(other)
        for one, other in ((machines, steps), (_DEFAULT_MACHINES, _DEFAULT_STEPS))
    )
    return [f"{_flag(name)}={value}" for name, value in given.items() if value != defaults[name]]


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
