"""gs:// addresses in the inputs of a pipeline: refused where a run has no credentials to read or write them with."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from compiled.spec import Component, Importer, Pipeline

_EMULATORS = ("STORAGE_EMULATOR_HOST", "CLOUD_STORAGE_EMULATOR_ENDPOINT")
"""Variables that redirect Google's libraries to an emulator of Cloud Storage."""

_LOOPBACK = re.compile(r"localhost|127(?:\.\d+){3}|::1")
_ADDRESS = re.compile(r"(?:--?[\w-]+[= ])?gs://")
"""A text that is an address, or an option of a command with one; not a sentence that mentions one."""


def is_loopback(address: str) -> bool:
    """Return whether a URL, or a host with a port, is on this machine."""
    try:
        host = urlsplit(address if "://" in address else f"//{address}").hostname
    except ValueError:
        return False
    return host is not None and _LOOPBACK.fullmatch(host) is not None


def has_emulator(variables: Mapping[str, str]) -> bool:
    """Return whether gs:// means an emulator on this machine, which needs no credentials."""
    return any(is_loopback(variables.get(name, "")) for name in _EMULATORS)


def refusals(pipeline: Pipeline, values: Mapping[str, Any], components: list[Component]) -> list[str]:
    """Return one reason for each input that is a gs:// address, unless an emulator answers for it."""
    if has_emulator(os.environ):
        return []
    found = [(f"parameter {name}", address) for name, value in values.items() for address in _addresses(value)]
    for component in components:
        for task in component.dag.tasks.values() if component.dag else ():
            used = pipeline.components.get(task.component)
            # An importer only records its address.
            if used is None or isinstance(pipeline.executors.get(used.executor), Importer):
                continue
            constants = {name: source.constant for name, source in task.parameters.items()}
            defaults = {k: each.default for k, each in used.input_parameters.items() if k not in constants}
            for name, value in (constants | defaults).items():
                found += [(f"{task.path}.inputs.parameters.{name}", address) for address in _addresses(value)]
    return [
        f"{where}: {address} is in Cloud Storage, which a local run reaches only with your credentials; give a local "
        "path, or add --with-credentials"
        for where, address in found
    ]


def _addresses(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if _ADDRESS.match(value.strip()):
            yield value.strip()[:200]
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _addresses(item)
