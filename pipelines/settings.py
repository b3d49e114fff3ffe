"""What is decided when a pipeline is compiled; everything else is a parameter of the run."""

import dataclasses

from components.image import PLACEHOLDER_IMAGE
from components.mistakes import Mistake
from components.worker_pools import Machines

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
        """Refuse image names that no registry could serve."""
        for field, image in (("image", self.image), ("serving_image", self.serving_image)):
            if not image or image != "".join(image.split()):
                raise Mistake(
                    f"{field} is {image!r}; expected an image name without spaces, best by digest: "
                    "REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME@sha256:DIGEST"
                )
