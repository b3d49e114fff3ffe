"""The container image that every step of ours runs in, and how an image is named."""

import re

from userinput.errors import UserError

PLACEHOLDER_IMAGE = "placeholder/image-training-python:build-and-push-yours"
"""Stands in a spec compiled without `--image`: runs locally, where no image is used, and nowhere else."""

# host[:port]/path/name[:tag][@digest], after the reference grammar of the OCI distribution specification.
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(rf"{_PART}(?::\d+)?(?:/{_PART})*(?::\w[\w.-]{{0,127}})?(?:@sha256:[0-9a-f]{{64}})?", re.ASCII)


def check_image(field: str, image: str) -> None:
    """Refuse what is no image name.

    Raises:
        UserError: The name is empty or has characters that no registry takes.
    """
    if not _REFERENCE.fullmatch(image):
        raise UserError(
            f"{field} is {image!r}, which is no image name; expected lower-case letters, best with a digest: "
            "us-docker.pkg.dev/my-project/my-repository/name@sha256:<64 hexadecimal digits>"
        )
