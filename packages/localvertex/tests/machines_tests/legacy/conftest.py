"""Shared by the tests of legacy: conversions, and the content of their jobs and reports."""

import re
import textwrap
from typing import Any

import yaml
from machines_tests.conftest import TODAY

from localvertex.machines.legacy.command_line import read_command
from localvertex.machines.legacy.convert import Conversion, convert
from localvertex.machines.legacy.report import Report


def configs(text: str) -> list[Any]:
    """Return the config.yaml examples of a guide."""
    blocks = re.findall(r"^    trainingInput:\n(?:      .*\n)+", text, re.M)
    return [yaml.safe_load(textwrap.dedent(block)) for block in blocks]


def command_lines(text: str) -> list[str]:
    """Return the command lines of a guide or the blog, as a user would paste them."""
    found = re.findall(r"^ *gcloud (?:ai-platform|ml-engine) .*(?:\n {8,}.*)*", text, re.M)
    return [textwrap.dedent(line).rstrip(" |") for line in found]


def run(document: Any = None, line: str | None = None, **options: Any) -> Conversion:
    """Convert a config.yaml, a command line or both."""
    report = Report()
    command = read_command([line], report) if line else None
    return convert(document, command, report=report, today=TODAY, **options)


def machines(conversion: Conversion) -> list[tuple[Any, ...]]:
    """Return (machine_type, accelerator_type, accelerator_count, replica_count) of each pool; () if it is unused."""
    spec = conversion.job["job_spec"]
    names = ("machine_type", "accelerator_type", "accelerator_count")
    return [
        (*(pool["machine_spec"].get(name) for name in names), pool["replica_count"]) if pool else ()
        for pool in spec["worker_pool_specs"]
    ]


def cpus(machine: str, replicas: int) -> tuple[str, None, None, int]:
    """Return a pool without GPUs as `machines` does."""
    return (machine, None, None, replicas)


def remarks(conversion: Conversion, kind: str, field: str) -> list[str]:
    """Return the messages of the remarks of a kind on a field."""
    return [remark.message for remark in conversion.report.remarks if (remark.kind, remark.field) == (kind, field)]
