"""Which environment a step's command runs in: this interpreter's, or one with the packages that it installs."""

import re
from pathlib import Path

from localvertex.executors.attempt import Job
from localvertex.processes import environments

INSTALLS = re.compile(r"python3? -m pip install|pip3? install")

OWN_ENVIRONMENT = re.compile(r"^tmp=.*\npython3 -m venv .*\n\. .*/bin/activate\"?\n", re.MULTILINE)
"""What `@dsl.component(use_venv=True)` adds (kfp 2.17, component_factory.py): the same purpose, served here already."""


def for_command(command: list[str], job: Job, bin_folder: Path) -> tuple[Path, list[str]]:
    """The folder of programs for a step's command, and what is left of the command to run.

    kfp writes `sh -c '<pip install ...> && "$0" "$@"' <the step's own command>`. The first part is done once, when the
    environment is built; a command of another form runs whole in an environment of its own.
    """
    if not any(INSTALLS.search(part) for part in command[:3]):
        return bin_folder, command
    script = OWN_ENVIRONMENT.sub("", command[2])
    can_split = command[:2] == ["sh", "-c"] and script.rstrip().endswith('&& "$0" "$@"')
    install = [*command[:2], script, "true"] if can_split else []
    environment = environments.build(
        [script],
        install,
        private_dir=job.context.private_dir,
        processes=job.context.processes,
        cwd=job.folder,
        env=job.environment(bin_folder),
        log=job.log,
    )
    return environment / "bin", command[3:] if can_split else command
