# The container images: pinned packages with this project. `docker build .` makes the GPU steps' image, the last one;
# `docker build --target cpu .` makes the image of other steps and the prediction server.
# `docker build --target dataflow .` makes the image of the same steps and Dataflow's workers, with Apache Beam.
# For reproducible builds give the images by digest: --build-arg BASE_IMAGE=python@sha256:..., and BEAM_IMAGE alike.
ARG BASE_IMAGE=python:3.12-slim-bookworm
ARG BEAM_IMAGE=apache/beam_python3.12_sdk:2.77.0

FROM ${BEAM_IMAGE} AS beam

FROM ${BASE_IMAGE} AS base
ENV PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1
RUN useradd --create-home --uid 1000 trainer

FROM scratch AS project
COPY pyproject.toml README.md LICENSE ./
COPY components components
COPY packages packages
COPY pipelines pipelines
COPY trainer trainer

# For CPUs, without CUDA.
FROM base AS cpu
# Packages come first: their layer is large, and they change less often than the code.
COPY requirements/cpu-image.txt /tmp/cpu-image.txt
RUN python -m pip install --require-hashes --no-deps -r /tmp/cpu-image.txt && rm /tmp/cpu-image.txt
COPY --from=project / /opt/image-training/
# In place, because a wheel of the project is never made.
RUN cd /opt/image-training && python -m pip install --no-deps --no-build-isolation -e . -e packages/exact_resume -e packages/localvertex
USER trainer
WORKDIR /home/trainer
CMD ["python", "-m", "trainer.prepare", "--help"]

# For CPUs, with Apache Beam.
FROM base AS dataflow
COPY requirements/beam.txt /tmp/beam.txt
RUN python -m pip install --require-hashes --no-deps -r /tmp/beam.txt && rm /tmp/beam.txt
COPY --from=project / /opt/image-training/
RUN cd /opt/image-training && python -m pip install --no-deps --no-build-isolation -e . -e packages/exact_resume -e packages/localvertex
# Dataflow starts a worker by Beam's boot program, as root, because it mounts folders that only root can write. The
# variable makes it use the packages of this image. Steps of the pipeline and the server have commands of their own.
COPY --from=beam /opt/apache/beam /opt/apache/beam
ENV RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT=1
WORKDIR /home/trainer
ENTRYPOINT ["/opt/apache/beam/boot"]

# For training and evaluation on GPUs. The last stage is what is built without --target.
FROM base AS gpu
COPY requirements/gpu.txt /tmp/gpu.txt
RUN python -m pip install --require-hashes --no-deps -r /tmp/gpu.txt && rm /tmp/gpu.txt
COPY --from=project / /opt/image-training/
RUN cd /opt/image-training && python -m pip install --no-deps --no-build-isolation -e . -e packages/exact_resume -e packages/localvertex
USER trainer
WORKDIR /home/trainer
# Vertex AI runs each step with its own command. Without a command, the image prints the trainer's help.
CMD ["python", "-m", "trainer.task", "--help"]
