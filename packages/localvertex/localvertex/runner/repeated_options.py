"""The options of a run as the command line has them, for the command that resumes the run."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from localvertex.runner.options import Options

_DEFAULT = Options()

_READ = {
    "--max-parallel": ("max_parallel", int),
    "--max-backoff": ("max_backoff_seconds", float),
    "--grace": ("grace_seconds", float),
    "--gcs-root": ("gcs_root", Path),
}
"""Options with a value that give a run no further rights, with the field and the type of each."""


def words(options: Options) -> list[str]:
    """Return the options that are not defaults and not stored elsewhere in the record.

    Faults are not among them: a resumed run must not be stopped again.
    """
    containers, default = options.containers, _DEFAULT
    switches = {
        "--no-cache": not options.use_cache,
        "--fail-fast": options.fail_fast,
        "--allow-network": containers.allow_network,
        "--allow-host-commands": containers.allow_host_commands,
        "--with-credentials": options.with_credentials,
    }
    values = [
        ("--max-parallel", options.max_parallel, default.max_parallel),
        ("--max-backoff", options.max_backoff_seconds, default.max_backoff_seconds),
        ("--grace", options.grace_seconds, default.grace_seconds),
        ("--engine", containers.engine, default.containers.engine),
        ("--gcs-root", options.gcs_root and options.gcs_root.absolute(), None),
    ]
    found = [flag for flag, is_given in switches.items() if is_given]
    found += [f"{flag}={value}" for flag, value, usual in values if value != usual]
    # On a server, each run has the images of all pipelines.
    return found + [f"--image={image}={shlex.join(command)}" for image, command in options.command_prefixes.items()]


def merge_options(options: Options, given: Sequence[str]) -> tuple[Options, list[str]]:
    """Return the options merged with an earlier run's, and its words that these options do not allow.

    Args:
        options: The options of the process that resumes the run.
        given: The words of the earlier run, see `words`.

    Raises:
        UserError: A value is out of range.
        ValueError: A word has no value of its type.
    """
    allowed, missing = words(options), []
    options = replace(options, faults=())
    for word in given:
        name, _, value = word.partition("=")
        if name in _READ:
            field, kind = _READ[name]
            options = replace(options, **{field: kind(value)})
        elif word == "--no-cache":
            options = replace(options, use_cache=False)
        elif word == "--fail-fast":
            options = replace(options, fail_fast=True)
        elif word not in allowed:
            missing.append(word)
    return options, missing
