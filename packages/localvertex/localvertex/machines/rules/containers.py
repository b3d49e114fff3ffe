"""Rules about what a pool runs and its boot disk: containers, Python packages, disks."""

import re

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.spelling import closest, join_or
from localvertex.machines.job.values import is_known, is_placeholder, mapping
from localvertex.machines.rules.job import Job, PoolSpec

_MAX_LISTED = 100
"""Maximum number of env entries, and of package URIs, per pool (API reference)."""

_PREBUILT = re.compile(r"[a-z]+-docker\.pkg\.dev/vertex-ai/training/([a-z-]+)-(?:cpu|gpu|tpu|xla)\.(\d+-\d+)[.:@\w]*")
"""Framework and version of Google's image, such as us-docker.pkg.dev/vertex-ai/training/tf-gpu.2-17.py310:latest."""

_DISK_TYPES = ("pd-ssd", "pd-standard", "hyperdisk-balanced")
_DISK_SIZES_GB = range(100, 64001)
# Their default is hyperdisk-balanced (page on configuring compute). A job with pd-ssd on the first one ended with
# INVALID_ARGUMENT in a user's runbook of July 2026; for the second rule, no such report is public.
_HYPERDISK_MACHINES = ("a3-ultragpu-8g", "a4-highgpu-8g")
_REQUIRED = {
    "container_spec": ("image_uri",),
    "python_package_spec": ("executor_image_uri", "package_uris", "python_module"),
}


def check_containers(job: Job) -> None:
    """Check the container or package of every pool."""
    for pool in job.pools:
        given = [name for name in _REQUIRED if pool.fields.get(name) is not None]
        if len(given) != 1:
            found = "container_spec and python_package_spec are both set"
            if not given:
                found = "neither container_spec nor python_package_spec is set"
            job.error("container-choice", pool.path, f"{found}; set exactly one of them")
        for name in given:
            if isinstance(pool.fields[name], dict):
                _task(pool, pool.fields[name], name)


def _task(pool: PoolSpec, spec: JsonObject, name: str) -> None:
    for key in _REQUIRED[name]:
        if not spec.get(key):
            pool.error("required-field", name, f"{key} is missing; {name} requires it")
    for key in ("env", "package_uris"):
        many = spec.get(key)
        if isinstance(many, list) and len(many) > _MAX_LISTED:
            pool.error("list-length", f"{name}.{key}", f"found {len(many)} entries; expected at most {_MAX_LISTED}")
    for key in ("image_uri", "executor_image_uri"):
        if is_placeholder(spec.get(key)):
            message = f"{spec[key]!r} is a placeholder; replace it with your container image before you submit the job"
            pool.warning("placeholder-image", f"{name}.{key}", message)
        elif match := _PREBUILT.match(str(spec.get(key))):
            ends = pool.job.catalogue.ended_images
            end = ends.get((match[1], match[2])) or ends.get((match[1], "*"))
            if end and end <= pool.job.today:
                message = (
                    f"{match[0]} reached its end of availability on {end}, so Vertex AI may no longer pull it; use an"
                    " image of your own, by digest"
                )
                pool.warning("prebuilt-image", f"{name}.{key}", message)


def check_disks(job: Job) -> None:
    """Check type and size of the boot disk of every pool."""
    for pool in job.pools:
        disk = mapping(pool.fields.get("disk_spec"))
        kind, size_gb = disk.get("boot_disk_type"), disk.get("boot_disk_size_gb")
        if is_known(kind) and kind and kind not in _DISK_TYPES:
            message = f"{kind!r} is not a boot disk type; expected {join_or(_DISK_TYPES)}"
            pool.error("disk-type", "disk_spec.boot_disk_type", message, closest(str(kind), _DISK_TYPES, 3))
        if isinstance(size_gb, int) and size_gb not in _DISK_SIZES_GB:
            message = f"boot_disk_size_gb is {size_gb}; expected 100 to 64000"
            nearest = f"boot_disk_size_gb {_DISK_SIZES_GB[0 if size_gb < _DISK_SIZES_GB[0] else -1]}"
            pool.error("disk-size", "disk_spec.boot_disk_size_gb", message, (nearest,))
        on_hyperdisk = pool.machine_type in _HYPERDISK_MACHINES
        if on_hyperdisk and is_known(kind) and kind not in ("", _DISK_TYPES[2]):
            found = f"{kind} on {pool.machine_type}, whose default is hyperdisk-balanced"
            message = f"{found}; omit disk_spec or use that type"
            if pool.machine_type == _HYPERDISK_MACHINES[0]:
                pool.error("disk-hyperdisk", "disk_spec.boot_disk_type", message, (_DISK_TYPES[2],))
            else:
                pool.warning("disk-hyperdisk", "disk_spec.boot_disk_type", message, (_DISK_TYPES[2],))
