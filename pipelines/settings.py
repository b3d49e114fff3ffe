"""The settings of a project, fixed at compilation; everything else is a parameter of the run."""

import dataclasses
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from components.compare.criteria import Criteria
from components.container_image import PLACEHOLDER_IMAGE, check_image
from components.names import check_names
from components.prepare.settings import PrepareSettings
from components.release.serving_machines import ServingMachines
from components.summary.webhook import secret_version
from components.train.fallbacks import Fallbacks
from components.train.machines import Machines
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import check_keys, read
from pipelines.steps import StepMachines
from trainer.models import recipes
from trainer.settings import setting

_DEFAULT_MACHINES = Machines(machine_type="g2-standard-8", accelerator_type="NVIDIA_L4", accelerator_count=1)

MACHINE_FIELDS = tuple(
    field
    for field in dataclasses.fields(Machines)
    if field.name
    in {
        "machine_type",
        "accelerator_type",
        "accelerator_count",
        "replica_count",
        "parameter_server_count",
        "scheduling_strategy",
    }
)
"""Fields that are parameters; the settings give their defaults, and fix the other fields."""

_MAX_RECIPIENTS = 3
"""https://cloud.google.com/vertex-ai/docs/pipelines/email-notifications, 2025-09-04."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resources:
    """Names of cloud resources, as Google's components take them."""

    service_account: str = setting(
        "Service account of the training job and the endpoint; empty for the default one.", default=""
    )
    network: str = setting("VPC network to peer with: projects/NUMBER/global/networks/NAME.", default="")
    tensorboard: str = setting(
        "TensorBoard instance: projects/NUMBER/locations/REGION/tensorboards/ID; needs service_account.", default=""
    )
    kms_key: str = setting(
        "Encryption key of job and model: projects/P/locations/REGION/keyRings/R/cryptoKeys/K.", default=""
    )
    serving_image: str = setting(
        "Prediction container image with a server of its own; empty for this project's server.", default=""
    )

    def __post_init__(self) -> None:
        """Refuse names that Google's components cannot take.

        Raises:
            UserError: A name is not valid, or TensorBoard has no service account.
        """
        check_names(**vars(self))
        if self.serving_image:
            check_image("serving_image", self.serving_image)
        if self.tensorboard and not self.service_account:
            raise UserError("tensorboard is set without service_account; TensorBoard needs one, which writes its logs")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Notification:
    """Recipients of a message at the end of a run: by Google's e-mail operation, or by the step `summary`."""

    notify_webhook: str = setting("Secret with a webhook's address: projects/PROJECT/secrets/NAME.", default="")
    notify: list[str] = setting("E-mail addresses for Google's notification, up to 3.", default_factory=list)  # noqa: RUF009

    def __post_init__(self) -> None:
        """Refuse addresses and names that are not valid, and two kinds of notification.

        Raises:
            UserError: One is not valid.
        """
        if self.notify_webhook:
            secret_version(self.notify_webhook)
        for index, recipient in enumerate(self.notify):
            if not re.fullmatch(r"[^@\s]+@[^@\s]+", str(recipient)):
                raise UserError(
                    f"notify[{index}] is {recipient!r}, which is not an e-mail address; expected e.g. team@example.com"
                )
        if len(self.notify) > _MAX_RECIPIENTS:
            raise UserError(f"notify has {len(self.notify)} addresses; Google's e-mail operation takes 3")
        if self.notify and self.notify_webhook:
            raise UserError(
                "notify and notify_webhook exclude each other: a pipeline has one exit task, "
                "which is either Google's e-mail operation or `summary`"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Container images and region, and the values of a settings file in groups."""

    image: str = PLACEHOLDER_IMAGE
    """Container image of the training job, and of the steps that may have GPUs."""
    cpu_image: str = ""
    """Container image of the steps without GPUs, the prediction server and any Dataflow workers; empty: `image`."""
    recipe: str = ""
    """Default of the parameter `recipe`."""
    region: str = "us-central1"
    """Region that the machines are checked for; the compiled file runs wherever it is submitted."""
    machines: Machines = _DEFAULT_MACHINES
    fallbacks: Fallbacks = dataclasses.field(default_factory=Fallbacks)
    steps: StepMachines = dataclasses.field(default_factory=StepMachines)
    preparing: PrepareSettings = dataclasses.field(default_factory=PrepareSettings)
    criteria: Criteria = dataclasses.field(default_factory=Criteria)
    serving: ServingMachines = dataclasses.field(default_factory=ServingMachines)
    resources: Resources = dataclasses.field(default_factory=Resources)
    notification: Notification = dataclasses.field(default_factory=Notification)

    def __post_init__(self) -> None:
        """Refuse image names and a recipe that are not valid.

        Raises:
            UserError: One is not valid.
        """
        check_image("image", self.image)
        check_image("cpu_image", self.step_image)
        recipes.parse(self.recipe)

    @property
    def step_image(self) -> str:
        """The container image of the steps without GPUs."""
        return self.cpu_image or self.image

    @property
    def values(self) -> dict[str, Any]:
        """The values of a settings file by name; some are only the defaults of parameters."""
        return {field.name: getattr(getattr(self, group), field.name) for group, field in _fields()}

    def fixed(self, parameters: Collection[str]) -> dict[str, Any]:
        """Return the constants of machines, comparison, deployment and resources that are not parameters."""
        # Without fallbacks the compiled file is the same as without this setting.
        groups: list[Any] = [self.machines, self.criteria, self.serving, self.resources]
        groups += [self.fallbacks] if self.fallbacks.fallbacks else []
        values = {name: value for group in groups for name, value in dataclasses.asdict(group).items()}
        return {name: value for name, value in values.items() if name not in parameters}


def _fields() -> list[tuple[str, dataclasses.Field[Any]]]:
    """Return the fields that a settings file may have, each with the name of its group."""
    groups = {name: group for name, group in vars(Settings()).items() if dataclasses.is_dataclass(group)}
    return [(name, field) for name in groups for field in dataclasses.fields(groups[name]) if field.metadata]


def describe() -> str:
    """Return a line per key of a settings file: its name, default and description."""
    defaults = {name: f" ({value})" if value else "" for name, value in Settings().values.items()}
    return "\n".join(f"  {field.name}{defaults[field.name]}: {field.metadata['help']}" for _, field in _fields())


def read_settings(path: Path | None) -> dict[str, Any]:
    """Return the groups of `Settings` that a YAML file changes; None changes none.

    Raises:
        UserError: The file cannot be read, a key is unknown or a value is wrong; the message begins with its path.
    """
    if path is None:
        return {}
    defaults, given, groups = Settings(), read(path), dict[str, dict[str, Any]]()
    types = {name: type(value) for name, value in defaults.values.items()}
    try:
        check_keys(given, {name: int | float if kind is float else kind for name, kind in types.items()})
        if given.get("fallbacks") and "timeout_seconds" not in given:
            raise UserError(
                "fallbacks is set without timeout_seconds, which bounds what all machines together may cost; add the "
                "longest time that the training may take, e.g. timeout_seconds: 86400"
            )
        for group, field in _fields():
            if field.name in given:
                groups.setdefault(group, {})[field.name] = types[field.name](given[field.name])
        return {name: dataclasses.replace(getattr(defaults, name), **changes) for name, changes in groups.items()}
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
