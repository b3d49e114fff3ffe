"""The container image of the steps and of the training job, and the syntax of image names."""

import re

from localvertex._base.userinput.errors import UserError

PLACEHOLDER_IMAGE = "placeholder/image-training-python:build-and-push-yours"
"""The image of a spec compiled without `--image`: the spec runs locally, where no container image is used."""

# host[:port]/path/name[:tag][@digest], after the reference grammar of the OCI distribution specification.
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(rf"{_PART}(?::\d+)?(?:/{_PART})*(?::\w[\w.-]{{0,127}})?(?:@sha256:[0-9a-f]{{64}})?", re.ASCII)


def check_image(field: str, image: str) -> None:
    """Refuse text that is not an image name.

    Raises:
        UserError: The name is empty or has characters that no registry accepts.
    """
    if not _REFERENCE.fullmatch(image) or "/" not in image:
        raise UserError(
            f"{field} is {image!r}, which is not an image name; expected a registry and a path, ideally with a digest: "
            "us-docker.pkg.dev/my-project/my-repository/name@sha256:<64 hexadecimal digits>"
        )
