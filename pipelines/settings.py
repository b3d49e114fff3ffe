"""What is decided when a pipeline is compiled; everything else is a parameter of the run."""

import dataclasses
import re

from training_job.image import PLACEHOLDER_IMAGE, check_image
from training_job.machines import Machines
from userinput.errors import UserError

SERVING_IMAGE = "us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest"
"""Newest prebuilt TensorFlow image of Vertex AI Prediction; docs/models.md says what was tried with it."""


DEFAULT_MACHINES = Machines(machine_type="n1-standard-8", accelerator_type="NVIDIA_TESLA_T4", accelerator_count=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Images and the defaults that the compile flags override."""

    image: str = PLACEHOLDER_IMAGE
    """Image of every step of ours and of the training job."""
    serving_image: str = SERVING_IMAGE
    region: str = "us-central1"
    """Region the machines are checked for; the compiled file itself runs wherever it is submitted."""
    machines: Machines = DEFAULT_MACHINES
    recipients: tuple[str, ...] | None = None
    """E-mail addresses for Google's notification op as the exit handler; None takes our `summary`."""

    def __post_init__(self) -> None:
        """Refuse image names that no registry could serve, and addresses that no mail reaches."""
        check_image("image", self.image)
        check_image("serving_image", self.serving_image)
        for recipient in self.recipients or ():
            if not re.fullmatch(r"[^@\s]+@[^@\s]+", recipient):
                raise UserError(f"--notify {recipient!r} is no e-mail address; expected e.g. team@example.com")
