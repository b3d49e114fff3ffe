"""The options of a run as the command line has them, for the command that resumes the run."""

import shlex

from localvertex.runner.options import Options

_DEFAULT = Options()


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
        "--allow-cloud-launchers": options.allow_cloud_launchers,
    }
    values = [
        ("--max-parallel", options.max_parallel, default.max_parallel),
        ("--max-backoff", options.max_backoff_seconds, default.max_backoff_seconds),
        ("--grace", options.grace_seconds, default.grace_seconds),
        ("--engine", containers.engine, default.containers.engine),
        ("--gcs-root", options.gcs_root and options.gcs_root.absolute(), None),
        ("--restart-rule", options.custom_jobs.restart_rule, default.custom_jobs.restart_rule),
    ]
    found = [flag for flag, is_given in switches.items() if is_given]
    found += [f"{flag}={value}" for flag, value, usual in values if value != usual]
    # On a server, each run has the images of all pipelines.
    return found + [f"--image={image}={shlex.join(command)}" for image, command in options.command_prefixes.items()]
