"""Lightweight Python components: run their command with this interpreter, whatever their image."""

import ast
import re
import sys
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from localvertex._base.compiled.spec import Container, Importer
from localvertex._base.userinput.reading import parse_python
from localvertex.containers.call import Prepared
from localvertex.containers.stand_ins import StandIn, advice, missing_python
from localvertex.errors import TaskFailed
from localvertex.executors.attempt import Attempt
from localvertex.processes import environments, logs, old_kfp, pins
from localvertex.processes.forking import program_of
from localvertex.processes.interpreters import OWN
from localvertex.store import executor_files

MODULE = "kfp.dsl.executor_main"

_MODULE_1_8 = "kfp.v2.components.executor_main"
"""The executor of kfp 1.8 with its `v2` compiler."""

MODULES = (MODULE, "kfp.components.executor_main", _MODULE_1_8)
"""The executors of kfp 2.1 and later, of 2.0 and of 1.8."""

_INSTALLS = re.compile(r"python3? -m pip install|pip3? install")

_OWN_ENVIRONMENT = re.compile(r"^tmp=.*\npython3 -m venv .*\n\. .*/bin/activate\"?\n", re.MULTILINE)
"""Added by `@dsl.component(use_venv=True)` (kfp 2.17, component_factory.py); here each step has its own environment."""

_OF_KFP = ("-", "kfp", "typing-extensions")
"""Beginnings of the words with which kfp installs itself."""

_LATEST_METHOD = "set_path"
"""The method that the artifacts of kfp got last."""

_WARNING = (
    f"steps run in this Python ({sys.version_info.major}.{sys.version_info.minor}), not in their container images; "
    "CPU, memory and accelerator settings of steps have no effect here"
)
_OTHER_WARNING = (
    "some steps run in Python {python.version} ({python.path}), not in their container images; "
    "CPU, memory and accelerator settings of steps have no effect here"
)

_MISSING = re.compile(
    r"ModuleNotFoundError: No module named '([\w.]+)"
    r"|ImportError: cannot import name '(\w+)' from '([\w.]+)' \(unknown location\)"
    r"|(?:Please install (?:the ')?|Missing optional dependency ')([\w-]+)(?:'| to access Google Storage)"
)
"""Modules without a location share their name with several packages, as in google.cloud. The last three messages are
those of the BigQuery SDK, pandas and fsspec."""


class PythonStepExecutor:
    """Executes `@dsl.component` steps. One that installs packages gets its own environment, kept for later runs."""

    name: ClassVar[str] = "python step"

    def accepts(self, executor: Container | Importer) -> bool:
        """Accept a command that contains its function's source and runs it with kfp's executor."""
        if not isinstance(executor, Container) or executor.command[:1] != ("sh",):
            return False
        return any(module in part and "ephemeral_component" in part for part in executor.command for module in MODULES)

    def refusals(self, executor: Container | Importer) -> list[str]:
        """Refuse life-cycle hooks, and an interpreter that the command would not find."""
        reasons = []
        if isinstance(executor, Container) and executor.has_lifecycle:
            reasons.append(f"{executor.path}.lifecycle: life-cycle hooks do not run locally")
        if not (OWN.path.parent / "python3").exists():
            reasons.append(f"{executor.path}: steps call python3, which does not exist next to {sys.executable}")
        if isinstance(executor, Container) and (missing := _missing_names(executor.command)):
            reasons.append(
                f"{executor.path}: the step uses {', '.join(missing)}, which kfp {version('kfp')} does not have; "
                "install a newer kfp, or let the step install its own"
            )
        return reasons

    def execute(self, attempt: Attempt) -> None:
        """Run the command in the task's folder."""
        python, warn = attempt.stand_in.python, attempt.context.warnings.add
        warn(_WARNING if python is OWN else _OTHER_WARNING.format(python=python))
        command = [*attempt.container.command, *attempt.arguments()]
        if any(_MODULE_1_8 in part for part in command):
            executor_files.add_typed_values(attempt.executor_input)
        base, command = _own_environment(command, attempt)
        resolved = attempt.context.buckets.mount([attempt.resolve(part) for part in command])
        env = attempt.add_own(attempt.environment(), base)
        # What has packages or an interpreter of its own is not what the server has imported.
        program = program_of(resolved, attempt.container.env) if base is None and python is OWN else None
        code = attempt.run(Prepared(command=resolved, env=env, has_mask=True, program=program))
        attempt.report_exit(code)
        if code != 0:
            reason, module = logs.failure_text(code, attempt.log), missing_module(logs.last_exception(attempt.log))
            image = attempt.container.image
            if module and (way_on := advice(image, module, attempt.context.repository)):
                reason += f"; {way_on}"
            raise TaskFailed(reason, exit_code=code)


def missing_module(text: str) -> str:
    """Return the module that an exception or an error names as missing; empty for none."""
    found = _MISSING.search(text)
    return (found[1] or (found[4] or "").replace("-", "_") or f"{found[3]}.{found[2]}") if found else ""


def _own_environment(command: list[str], attempt: Attempt) -> tuple[Path | None, list[str]]:
    """Return the environment of a step's packages, None without any, and the part of its command that remains.

    kfp writes `sh -c '<pip install ...> && "$0" "$@"' <the step's own command>`. The first part runs once, when the
    environment is built. A command of another form runs as a whole in its own environment.
    """
    command = _with_packages(command, attempt.stand_in)
    if not any(_INSTALLS.search(part) for part in command[:3]):
        return None, command
    script = pins.replaced(_OWN_ENVIRONMENT.sub("", command[2]), attempt.context.pins)
    can_split = _can_split(command)
    is_old = not any(MODULE in part for part in command)
    afterwards = ["python3", old_kfp.__file__] if is_old else ["true"]
    install = [*command[:2], script, *afterwards] if can_split else []
    try:
        environment = environments.build(
            _identity(script, command),
            install,
            private_dir=attempt.context.private_dir,
            processes=attempt.context.processes,
            cwd=attempt.folder,
            env=attempt.environment(),
            log=attempt.log,
            report=attempt.warn,
            python=attempt.stand_in.python,
        )
    except TaskFailed as error:
        text = f"{error}{missing_python(attempt.container.image)}"
        raise TaskFailed(text, exit_code=error.exit_code, is_retryable=error.is_retryable) from None
    return environment, command[3:] if can_split else command


def _with_packages(command: Sequence[str], stand_in: StandIn) -> list[str]:
    """Return a command that first installs the packages that the user names for its image."""
    if not (script := stand_in.install_script):
        return [*command]
    if _can_split(command):
        return [*command[:2], f"{script} || exit 1\n{command[2]}", *command[3:]]
    return ["sh", "-c", f'{script} && "$0" "$@"', *command]


def _can_split(command: Sequence[str]) -> bool:
    """Return whether a command installs packages first, and then runs the step."""
    return list(command[:2]) == ["sh", "-c"] and command[2].rstrip().endswith('&& "$0" "$@"')


def _identity(script: str, command: Sequence[str]) -> list[str]:
    """Return the identity of the environment of an install script."""
    return [script] if any(MODULE in part for part in command) else [script, "old kfp"]


def missing_install_script(container: Container, private_dir: Path, stand_in: StandIn) -> str:
    """Return the script that installs a step's packages, if that has to be done; otherwise an empty text."""
    command = _with_packages(container.command, stand_in)
    if not any(_INSTALLS.search(part) for part in command[:3]) or not _can_split(command):
        return ""
    script = _OWN_ENVIRONMENT.sub("", command[2])
    return "" if environments.is_complete(_identity(script, command), private_dir, stand_in.python) else script


def installs_packages(command: Sequence[str]) -> bool:
    """Return whether a step installs more than kfp itself, or in a way that cannot be read."""
    script = next((part for part in command[:3] if _INSTALLS.search(part)), "")
    words = re.findall(r"'([^']*)'", script)
    return bool(script) and not (words and all(each.startswith(_OF_KFP) for each in words))


def _missing_names(command: Sequence[str]) -> list[str]:
    """Return the names of kfp that a step uses and that the installed kfp, with which it runs, does not have."""
    kfp = find_spec("kfp")
    installs_kfp = any(_INSTALLS.search(part) and "kfp" in part for part in command[:3])
    if kfp is None or kfp.origin is None or installs_kfp:
        return []
    dsl = Path(kfp.origin).parent / "dsl"
    # Its text, because importing it takes as long as the start of a run.
    known = "".join((dsl / name).read_text() for name in ("__init__.py", "types/artifact_types.py"))
    used = sorted(_names_of_kfp(command[-1]))
    return [each for each in used if not re.search(rf"\b{each.rpartition('.')[2]}\b", known)]


def _names_of_kfp(source: str) -> set[str]:
    """Return the classes `dsl.X` and the latest method in the code of a component, not in its comments and texts."""
    nodes = [*ast.walk(parse_python(source))]
    imports = [each for each in nodes if isinstance(each, ast.Import | ast.ImportFrom)]
    others = [each for each in imports if not (isinstance(each, ast.ImportFrom) and each.module == "kfp")]
    is_kfps = "dsl" not in {alias.asname or alias.name for each in others for alias in each.names}
    used = set()
    for each in nodes:
        if isinstance(each, ast.Attribute) and each.attr == _LATEST_METHOD:
            used.add(f".{each.attr}")
        elif (
            is_kfps and isinstance(each, ast.Attribute) and ast.unparse(each.value) == "dsl" and each.attr[0].isupper()
        ):
            used.add(f"dsl.{each.attr}")
    return used
