"""Placeholder images against real ones."""

import pytest

from localvertex.machines.job.values import is_placeholder

PLACEHOLDERS = [
    "placeholder/image-training-python:local",
    "gcr.io/PROJECT_ID/train:latest",
    "gcr.io/YOUR_PROJECT/train",
    "REGION-docker.pkg.dev/p/r/i:1",
    "<your image>",
    "<region>-docker.pkg.dev/<project>/r/i:latest",
    "europe-docker.pkg.dev/{project}/r/i",
    "gcr.io/${PROJECT}/train",
    "gcr.io/$PROJECT/train",
    "gcr.io/%PROJECT%/train",
    "registry.example.com/train:1",
    "gcr.io/your-project-id/train",
    "IMAGE_URI",
    "...",
]
REAL = [
    "us-docker.pkg.dev/vertex-ai/training/tf-gpu.2-17.py310:latest",
    "europe-west4-docker.pkg.dev/shop-ml/train/train@sha256:" + "0a" * 32,
    "gcr.io/shop-ml/train:V1.2-RC",
    "python:3.12",
    "localhost:5000/train:1",
    "gcr.io/domain.org:shop/train_gpu",
    "gcr.io/placeholder-studio/placeholder:1",
    "docker.io/library/busybox",
    "{{$.inputs.parameters['image']}}",
    "",
    None,
    3,
]


@pytest.mark.parametrize("image", PLACEHOLDERS)
def test_placeholders(image: object) -> None:
    assert is_placeholder(image)


@pytest.mark.parametrize("image", REAL)
def test_real_images(image: object) -> None:
    assert not is_placeholder(image)
