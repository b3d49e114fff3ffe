# The one image of all steps: pinned packages with GPU-ready TensorFlow, and this project.
# Give the base by digest for a build that can be repeated: --build-arg BASE_IMAGE=python@sha256:...
ARG BASE_IMAGE=python:3.12-slim-bookworm
FROM ${BASE_IMAGE}

ENV PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1

RUN useradd --create-home --uid 1000 trainer

# The packages first: they change less often than the code, and the layer is large.
COPY requirements/gpu.txt /tmp/gpu.txt
RUN python -m pip install --require-hashes -r /tmp/gpu.txt && rm /tmp/gpu.txt

WORKDIR /opt/image-training
COPY pyproject.toml README.md LICENSE ./
COPY accelerators accelerators
COPY compiled compiled
COPY components components
COPY localvertex localvertex
COPY pipelines pipelines
COPY trainer trainer
COPY training_job training_job
COPY userinput userinput
RUN python -m pip install --no-deps --no-build-isolation .

USER trainer
WORKDIR /home/trainer
# Vertex AI gives every step its own command; by itself the image explains the trainer.
CMD ["python", "-m", "trainer.task", "--help"]
