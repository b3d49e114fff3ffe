"""Rules about what a pool runs and its boot disk: containers, Python packages, disks."""

from typing import Any

from accelerators.job.values import RuntimeValue, is_known, is_placeholder
from accelerators.rules.job import Job, Pool
from localvertex_base.userinput.spelling import closest, join_or

_MAX_LISTED = 100
"""Maximum number of env entries, and of package URIs, per pool (API reference)."""

_DISK_TYPES = ("pd-ssd", "pd-standard", "hyperdisk-balanced")
_DISK_SIZES_GB = range(100, 64001)
# Their default is hyperdisk-balanced (page on configuring compute); whether pd-ssd is rejected was not tried.
_HYPERDISK_MACHINES = ("a3-ultragpu-8g", "a4-highgpu-8g")
_REQUIRED = {
    "container_spec": ("image_uri",),
    "python_package_spec": ("executor_image_uri", "package_uris", "python_module"),
}


def check_containers(job: Job) -> None:
    """Check what every pool runs."""
    for pool in job.pools:
        given = [name for name in _REQUIRED if pool.fields.get(name) is not None]
        if len(given) != 1:
            found = "container_spec and python_package_spec are both set"
            if not given:
                found = "neither container_spec nor python_package_spec is set"
            job.note("container-choice", "error", pool.path, f"{found}; set exactly one of them")
        for name in given:
            spec = pool.fields[name]
            if isinstance(spec, dict):
                _task(job, spec, name, f"{pool.path}.{name}")


def _task(job: Job, spec: dict[str, Any], name: str, path: str) -> None:
    for key in _REQUIRED[name]:
        if not spec.get(key):
            job.note("required-field", "error", path, f"{key} is missing; {name} requires it")
    for key in ("env", "package_uris"):
        many = spec.get(key)
        if isinstance(many, list) and len(many) > _MAX_LISTED:
            message = f"found {len(many)} entries; expected at most {_MAX_LISTED}"
            job.note("list-length", "error", f"{path}.{key}", message)
    for key in ("image_uri", "executor_image_uri"):
        if is_placeholder(spec.get(key)):
            message = f"{spec[key]!r} is a placeholder; replace it with your container image before you submit the job"
            job.note("placeholder-image", "warning", f"{path}.{key}", message)


def check_disks(job: Job) -> None:
    """Check type and size of the boot disk of every pool."""
    for pool in job.pools:
        disk = pool.fields.get("disk_spec")
        if not isinstance(disk, dict):
            continue
        path = f"{pool.path}.disk_spec"
        kind, size_gb = disk.get("boot_disk_type"), disk.get("boot_disk_size_gb")
        if is_known(kind) and kind and kind not in _DISK_TYPES:
            message = f"{kind!r} is not a boot disk type; expected {join_or(_DISK_TYPES)}"
            job.note("disk-type", "error", f"{path}.boot_disk_type", message, closest(str(kind), _DISK_TYPES, 3))
        if isinstance(size_gb, int) and size_gb not in _DISK_SIZES_GB:
            message = f"boot_disk_size_gb is {size_gb}; expected 100 to 64000"
            nearest = f"boot_disk_size_gb {_DISK_SIZES_GB[0 if size_gb < _DISK_SIZES_GB[0] else -1]}"
            job.note("disk-size", "error", f"{path}.boot_disk_size_gb", message, (nearest,))
        _hyperdisk(job, pool, kind, path)


def _hyperdisk(job: Job, pool: Pool, kind: object, path: str) -> None:
    machine = pool.machine.get("machine_type")
    if machine in _HYPERDISK_MACHINES and not isinstance(kind, RuntimeValue) and kind and kind != _DISK_TYPES[2]:
        message = f"{kind} on {machine}, whose default is hyperdisk-balanced; omit disk_spec or use that type"
        job.note("disk-hyperdisk", "warning", f"{path}.boot_disk_type", message, (_DISK_TYPES[2],))
