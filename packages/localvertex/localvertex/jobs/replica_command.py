"""How the command of a replica is started: with this Python, or as a container command."""

import hashlib
from contextlib import ExitStack
from pathlib import Path

from localvertex._base.lines import WriteLine
from localvertex._base.step_endpoint import MARKER
from localvertex._base.userinput.temporary import temporary_folder
from localvertex.containers import leftovers
from localvertex.containers.call import ContainerCommand, Prepared
from localvertex.containers.choice import Choice
from localvertex.containers.gpus import VARIABLE
from localvertex.containers.mounts import mentioned_paths, output_folders
from localvertex.containers.options import ENGINES
from localvertex.containers.programs import with_bash
from localvertex.containers.variables import OUTPUT_FOLDERS, own_environment
from localvertex.credentials.isolation import IsolatedCredentials
from localvertex.errors import TaskFailed
from localvertex.jobs import images
from localvertex.jobs.environment import metadata_environment
from localvertex.jobs.job import CustomJob, Pool, Replica
from localvertex.jobs.status import Workspace
from localvertex.processes import environments
from localvertex.processes.environments import add_own
from localvertex.processes.processes import Processes
from localvertex.values.buckets import Buckets

_INSTALL = """\
python3 -m pip install --disable-pip-version-check --no-build-isolation --ignore-installed --no-deps "$@" &&
python3 -m pip install --disable-pip-version-check --no-build-isolation "$@"
"""
"""Installs the packages themselves, even where one of the same name is installed here, then missing dependencies."""

LOG = "packages.log"


class ReplicaCommands:
    """Prepares the processes of a job's replicas; their temporary folders end with `holders`."""

    def __init__(
        self,
        job: CustomJob,
        workspace: Workspace,
        processes: Processes,
        credentials: IsolatedCredentials,
        containers: Choice,
        holders: ExitStack,
        warn: WriteLine,
    ) -> None:
        self._job, self._workspace, self._processes = job, workspace, processes
        self._credentials, self._containers, self._holders = credentials, containers, holders
        self._warn = warn
        self._calls: list[ContainerCommand] = []
        self._foreign = {pool.number for pool in job.pools if images.is_container_command(pool, containers)}

    @property
    def announcement(self) -> str:
        """Return how the container commands of the job run; empty when it has none."""
        return self._containers.how.announcement if self._foreign else ""

    def prepare(self, replica: Replica, service: dict[str, str], metadata_address: str) -> Prepared:
        """Return the process of a replica.

        Args:
            replica: The replica.
            service: The variables that the service sets for it.
            metadata_address: Host and port of its metadata server.

        Raises:
            TaskFailed: Its packages cannot be installed, or its outputs are at a place that it may not write.
            Cancelled: The run is being stopped.
        """
        pool, workspace = replica.pool, self._workspace
        buckets = Buckets(root=workspace.buckets)
        env = own_environment() | service | buckets.variables | {MARKER: str(workspace.folder)}
        plain = self._credentials.environment(env)
        package: Path | None
        if pool.is_python_package:
            package = environment_of(pool, workspace, self._processes, plain, self._warn)
        else:
            package = pool.stand_in.environment(
                workspace.private_dir, self._processes, workspace.folder, plain, workspace.folder / LOG, self._warn
            )
        own = Path(self._holders.enter_context(temporary_folder()))
        env = pool.stand_in.add_path(add_own(env | pool.env, own, package, pool.stand_in.python))
        env = self._credentials.environment(env, declared=pool.env)
        metadata = {} if self._credentials.is_users else metadata_environment(metadata_address)
        if pool.number not in self._foreign:
            program, *arguments = pool.command
            if program in ("python", "python3"):
                program = env["PIP_PYTHON"]
            env |= metadata
            # Who names a container engine gives what `--engine` gives.
            has_mask = not (pool.has_local_command and Path(program).name in ENGINES)
            command = [program, *arguments]
            return Prepared(command=buckets.mount(command) if has_mask else command, env=env, has_mask=has_mask)
        declared = frozenset((*pool.env, *service, *metadata))
        call = self._call(replica, env | metadata, declared, own)
        self._calls.append(call)
        return self._containers.how.prepared(call)

    def check_leftovers(self) -> None:
        """Remove links that lead out of the folders that container commands have written.

        Raises:
            TaskFailed: There was something.
        """
        for call in self._calls if self._foreign and self._containers.how.confines else ():
            leftovers.check(call)

    def _call(
        self, replica: Replica, env: dict[str, str], declared: frozenset[str], temporary: Path
    ) -> ContainerCommand:
        """Return the container command of a replica.

        Raises:
            TaskFailed: The base output directory is at a place that it may not write.
        """
        pool, folder, work_dir = replica.pool, self._workspace.folder, self._workspace.private_dir.parent
        base, is_image = self._job.base_output_directory, self._containers.how.runs_images
        gcs_root = self._workspace.buckets
        writable = output_folders(
            base, (*OUTPUT_FOLDERS.values(),), folder=folder, work_dir=work_dir, gcs_root=gcs_root
        )
        if writable is None:
            raise TaskFailed(
                f"base_output_directory {base}: a container command may write only in the work folder "
                f"({work_dir}), outside of other runs; choose a folder there",
                is_retryable=False,
            )
        return ContainerCommand(
            image=pool.image_uri,
            command=[*pool.entry_point] if is_image else with_bash([*pool.command]),
            arguments=[*pool.arguments] if is_image else [],
            env=self._credentials.step_file.sandbox_variables(env) if self._containers.how.confines else env,
            declared=declared,
            folder=folder,
            temporary=temporary,
            work_dir=work_dir,
            credentials=self._credentials.files,
            readable=(
                *self._workspace.readable,
                *mentioned_paths(pool.command, work_dir=work_dir),
                *self._credentials.step_file.readable,
                *pool.stand_in.readable,
            ),
            writable=tuple(writable),
            gcs_root=gcs_root,
            known_links=leftovers.links_out(gcs_root),
            gpus=env.get(VARIABLE, "").removeprefix("-1") if pool.num_gpus else "",
            host_name=replica.name,
        )


def environment_of(
    pool: Pool, workspace: Workspace, processes: Processes, env: dict[str, str], report: WriteLine
) -> Path:
    """Return the environment with the pool's packages; the same files share one.

    Raises:
        TaskFailed: A package is not on this machine, or its installation failed.
        Cancelled: The run is being stopped.
    """
    stand_in = pool.stand_in
    script = f"{stand_in.install_script} || exit 1\n{_INSTALL}" if stand_in.packages else _INSTALL
    files = [_package_file(uri, workspace) for uri in pool.package_uris]
    identity = [script, *(f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files)]
    return environments.build(
        identity,
        ["sh", "-c", script, "sh", *map(str, files)] if files else [],
        private_dir=workspace.private_dir,
        processes=processes,
        cwd=workspace.folder,
        env=env,
        log=workspace.folder / LOG,
        report=report,
        python=stand_in.python,
    )


def _package_file(uri: str, workspace: Workspace) -> Path:
    """Return the package's file on this machine: a local path, or an object of a bucket that is a folder here.

    Raises:
        TaskFailed: There is no such file.
    """
    file = Path(Buckets().path_of(workspace.to_local_path(uri)))
    if not file.is_file():
        raise TaskFailed(
            f"package_uris: {uri} is not on this machine ({file} is not a file); give a local path", is_retryable=False
        )
    return file.absolute()
