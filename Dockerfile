# The container image of all steps: pinned packages with TensorFlow for GPUs, and this project.
# For reproducible builds give the base image by digest: --build-arg BASE_IMAGE=python@sha256:...
ARG BASE_IMAGE=python:3.12-slim-bookworm
FROM ${BASE_IMAGE}

ENV PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1

RUN useradd --create-home --uid 1000 trainer

# Packages come first: their layer is large, and they change less often than the code.
COPY requirements/gpu.txt /tmp/gpu.txt
RUN python -m pip install --require-hashes -r /tmp/gpu.txt && rm /tmp/gpu.txt

WORKDIR /opt/image-training
COPY pyproject.toml README.md LICENSE ./
COPY accelerators accelerators
COPY components components
COPY localvertex localvertex
COPY pipelines pipelines
COPY trainer trainer
COPY training_job training_job
COPY vertex_gpu_training vertex_gpu_training
# In place: a wheel has only the tools for anybody's pipelines.
RUN python -m pip install --no-deps --no-build-isolation -e .

USER trainer
WORKDIR /home/trainer
# Vertex AI runs each step with its own command. Without a command, the image prints the trainer's help.
CMD ["python", "-m", "trainer.task", "--help"]
