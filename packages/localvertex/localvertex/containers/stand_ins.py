"""Programs that run in place of a container image: `[image."IMAGE"]` and `[packages] python` of localvertex.toml.

Python code of the image, and the command that the user has named, are processes of this machine, as code that is
installed here is. A shell command goes where container commands go, and finds the folder and the interpreter there.
"""

import ast
import configparser
import hashlib
import os
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from localvertex._base.compiled.payload import PLACEHOLDER
from localvertex._base.lines import WriteLine
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import parse_python
from localvertex._base.userinput.spelling import join_or
from localvertex.containers.programs import is_python, python_target
from localvertex.containers.started import started
from localvertex.credentials.isolation import STEP_PYTHON
from localvertex.errors import Refusal
from localvertex.processes import environments, pins
from localvertex.processes.interpreters import OWN, Interpreter, find, named
from localvertex.processes.processes import Processes
from localvertex.values.arguments import CommandPrefixes
from localvertex.values.configuration import Configuration, quoted
from localvertex.values.repository import Repository
from localvertex.values.sources import scripts, source_files

_TAG = re.compile(r"(@[\w+.-]+:[0-9a-f]+|:[\w.-]+)$")
"""The digest or the tag at the end of an image."""

_EXECUTOR = "executor_main"
"""Part of the name of the module that runs Python components in every version of kfp."""

_CONFIG = "kfp_config.ini"
"""Written by `kfp component build`: the file of each component."""

_MAX_SHOWN = 3

_NEAR = 0.9
"""Similarity of a misspelt image; images of one registry have more than half of their names in common."""

_CODE_SUFFIXES = frozenset(
    ".bash .c .cc .cfg .conf .cpp .cu .go .h .hpp .ini .ipynb .java .jl .js .json .lua .pl .py .pyx .r .rb .rs .scala"
    " .sh .so .sql .toml .ts .yaml .yml".split()
)
"""Programs and their configuration, among the files of a source folder."""

_MAX_CODE_BYTES, _MAX_FILES = 50_000_000, 100_000

_SYSTEM_FOLDERS = frozenset(map(Path, ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin")))

_PLAIN = re.compile(r"(?:docker\.io/(?:library/)?)?python:(3\.\d+)?")
"""An image with nothing but Python; its minor version."""

_PLAIN_PATH = re.compile(r"[\w./+@%:=,~-]+")
"""A path that is the same in the text of a shell and in Python code."""

_KFP = re.compile(r"\bkfp==")

EXAMPLE = "path/to/source"
"""Stands for a source folder that only the user knows."""


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """The program that runs in place of one image; without `image`, nothing does."""

    image: str = ""
    """Name of the image in the configuration file."""
    path: Path | None = None
    command: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    python: Interpreter = OWN

    @property
    def install_script(self) -> str:
        """Return the shell line that installs its packages; empty without any."""
        words = "python3 -m pip install --quiet --disable-pip-version-check"
        return f"{words} {shlex.join(self.packages)}" if self.packages else ""

    @property
    def readable(self) -> tuple[Path, ...]:
        """Return the folders that a command in the sandbox needs."""
        folders = () if self.python is OWN else (Path(self.python.prefix), self.python.path.resolve().parents[1])
        return (*filter(None, [self.path]), *folders)

    def add_path(self, env: dict[str, str]) -> dict[str, str]:
        """Return variables with the source folder first among those in which Python finds modules.

        Only the start-up file of steps comes before it: a source may have a file of the same name.
        """
        if self.path is None:
            return env
        folders = [str(self.path), *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
        folders.sort(key=lambda each: each != STEP_PYTHON)
        return env | {"PYTHONPATH": os.pathsep.join(folders)}

    def environment(
        self, private_dir: Path, processes: Processes, cwd: Path, env: dict[str, str], log: Path, report: WriteLine
    ) -> Path | None:
        """Return the environment with its packages, see `environments.build`; None without any."""
        if not self.packages:
            return None
        return environments.build(
            [self.install_script],
            ["sh", "-c", self.install_script],
            private_dir=private_dir,
            processes=processes,
            cwd=cwd,
            env=env,
            log=log,
            report=report,
            python=self.python,
        )

    def words(self, command: Sequence[str], arguments: Sequence[str]) -> tuple[str, ...]:
        """Return the command that runs on this machine in place of an image's command; empty if none does.

        Raises:
            UserError: Its script, module or component is not here.
        """
        if not self.image:
            return ()
        words = [*(self.command or command), *arguments]
        if not (self.command or command):
            raise UserError(
                f"the entry point of {self.image!r} is not known locally; add to {self._table}: "
                'command = ["python", "-m", "MODULE"]'
            )
        if not is_python(words[0]):
            return tuple(words) if self.command else ()
        kind, number, name = python_target(words)
        if kind == "file":
            words[number] = self._script(name)
        elif kind == "module" and _EXECUTOR in name and "--component_module_path" not in words:
            words[number + 1 : number + 1] = ["--component_module_path", self._component(words)]
        elif kind == "module" and not PLACEHOLDER.search(name) and not self.finds(name):
            raise UserError(f"the module {name!r} is neither below path of {self._table} nor installed in its python")
        return ("python3", *words[1:])

    @property
    def _table(self) -> str:
        return f"[image.{quoted(self.image)}]"

    def finds(self, module: str) -> bool:
        """Return whether Python finds a module in the source folder or the interpreter, without importing anything."""
        file = os.path.join(self.path or "", *module.split("."))
        is_source = self.path and (os.path.isdir(file) or os.path.isfile(f"{file}.py"))
        return bool(is_source) or self.python.has(module)

    def _script(self, name: str) -> str:
        """Return the file of this machine for a script of the image: of several with its name, the one most like it."""
        if PLACEHOLDER.search(name) or (os.path.isabs(name) and os.path.isfile(name)):
            return name
        return str(
            self._only([file for file, _ in scripts(source_files(self.path), self.path, name)], f"the script {name!r}")
        )

    def localized(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return a command with the files of the source folder for the scripts of the image that it starts.

        Raises:
            UserError: One is not in the folder.
        """
        result = [*words]
        for name in started(words) if self.path else ():
            file = self._script(name)
            if file == name:
                continue
            if not _PLAIN_PATH.fullmatch(file):
                raise UserError(f"{file!r} cannot stand in a command for {name!r}; move it to a path without blanks")
            pattern = re.compile(rf"(?<![\w./-]){re.escape(name)}(?![\w./-])")
            result = [pattern.sub(file, each) for each in result]
        return tuple(result)

    def _component(self, words: list[str]) -> str:
        """Return the file with the function that kfp's executor would run."""
        option = "--function_to_execute"
        function = words[words.index(option) + 1] if option in words[:-1] else ""
        config = configparser.ConfigParser()
        if self.path and config.read(self.path / _CONFIG) and config.has_option("Components", function):
            return str(self.path / config.get("Components", function))
        found = [file for file in source_files(self.path) if file.suffix == ".py" and function in _functions(file)]
        return str(self._only(found, f"the component {function!r}"))

    def _only(self, found: list[Path], what: str) -> Path:
        if len(found) == 1:
            return found[0]
        if self.path is None:
            raise UserError(f'{what} is only in its image; add to {self._table}: path = "FOLDER" with its source')
        names = join_or(sorted(str(each.relative_to(self.path)) for each in found)[:_MAX_SHOWN], "and")
        there = f"could be {names}" if found else "is not"
        raise UserError(
            f"{what} {there} below {self.path} ({self._table}); expected one; name another path or a command"
        )

    def code_digest(self, work_dir: Path) -> str:
        """Return a digest of the programs and the configuration in place of the image; empty if they are not known.

        Args:
            work_dir: Work directory of the runs, which changes with each run.
        """
        # As in `env --chdir=FOLDER`.
        words = [Path(word.partition("=")[2] if word.startswith("-") else word) for word in self.command]
        named = [each for each in words if each.is_absolute() and each.exists()]
        files = [
            each for each in named if each.is_file() and each.parent not in _SYSTEM_FOLDERS and not is_python(str(each))
        ]
        for folder in [*filter(None, [self.path]), *(each for each in named if each.is_dir())]:
            for number, file in enumerate(source_files(folder, work_dir)):
                if number >= _MAX_FILES:
                    return ""
                files += [file] * (file.suffix.lower() in _CODE_SUFFIXES and file.is_file())
        known, num_bytes = hashlib.sha256(repr((self.command, self.packages, self.python.version)).encode()), 0
        for file in files:
            num_bytes += file.stat().st_size
            if num_bytes > _MAX_CODE_BYTES:
                return ""
            known.update(f"{file}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
        return known.hexdigest() if files else ""

    def digest(self) -> str:
        """Return a digest of what is here in place of the image; empty for nothing. Sources count by size and time."""
        if self == StandIn():
            return ""
        known = hashlib.sha256(repr((self.command, self.packages, self.python.path, self.python.version)).encode())
        for file in source_files(self.path):
            status = file.stat()
            known.update(f"{file} {status.st_size} {status.st_mtime_ns}\n".encode())
        return known.hexdigest()


def _functions(file: Path) -> set[str]:
    try:
        tree = parse_python(file.read_bytes())
    except OSError:
        return set()
    return {each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}


class StandIns:
    """The stand-ins of a configuration.

    Raises:
        UserError: A folder or an interpreter of it is not one.
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        configuration = configuration or Configuration()
        default = configuration.packages.get("python")
        self._default = named(default) if default else OWN
        self._images = {}
        for image, table in configuration.image.items():
            if "path" in table and not os.path.isdir(table["path"]):
                raise UserError(f'[image."{image}"] path = {table["path"]!r} is not a folder; name the source folder')
            # As all paths of the file: what it names in its folder is that file.
            command = tuple(
                str(configuration.folder / word) if "/" in word and (configuration.folder / word).is_file() else word
                for word in table.get("command", ())
            )
            runs_python = command and is_python(command[0]) and os.path.isabs(command[0])
            python = table.get("python", command[0] if runs_python else None)
            self._images[image] = StandIn(
                image=image,
                path=Path(table["path"]) if "path" in table else None,
                command=command,
                packages=tuple(table.get("packages", ())),
                python=named(python) if python else OWN,
            )

    def code_digests(self, work_dir: Path, command_prefixes: CommandPrefixes) -> dict[str, str]:
        """Return the digests of the code in place of images, by image; those that are not known are left out."""
        given = {image: StandIn(image=image, command=words) for image, words in command_prefixes.items()}
        found = {image: each.code_digest(work_dir) for image, each in (self._images | given).items()}
        return {image: digest for image, digest in found.items() if digest}

    @property
    def sources(self) -> list[Path]:
        """Return the source folders of all images."""
        return [each.path for each in self._images.values() if each.path]

    def of(self, image: str, words: Iterable[str] = ()) -> StandIn:
        """Return what runs in place of an image; one in the file without tag or digest stands for all of them.

        Args:
            image: The image.
            words: The container's command and arguments: Python components have an interpreter of their own.
        """
        untagged = _TAG.sub("", image)
        names = (image, untagged, _TAG.sub("", untagged))
        found = next((self._images[name] for name in names if name in self._images), StandIn())
        if found.python is OWN and any(_EXECUTOR in str(word) for word in words):
            return replace(found, python=self._default if self._default is not OWN else _of_image(image, words))
        return found

    def check(self, images: set[str]) -> None:
        """Refuse a name that looks like a misspelt one of these images; others may be of another pipeline.

        Raises:
            UserError: There is one.
        """
        used = {self.of(image).image for image in images}
        for name in self._images.keys() - used:
            for near in get_close_matches(name, images, n=1, cutoff=_NEAR):
                raise UserError(f'[image."{name}"]: no step uses this container image; did you mean "{near}"?')


def _of_image(image: str, words: Iterable[str]) -> Interpreter:
    """Return the interpreter of a plain image, if it is here, for a step that installs kfp and what this one lacks."""
    minor, script = _other_python(image), next((each for each in map(str, words) if "pip install" in each), "")
    pinned = [each for each in pins.unsatisfied(script) if not _KFP.match(each)] if minor else []
    python = find(minor) if pinned and _KFP.search(script) else None
    return python if python and (python.has("pip") or python.has("ensurepip")) else OWN


def source_of(
    text: str, image: str, command: Sequence[str], step: str = "", repository: Repository | None = None
) -> Refusal:
    """Return the refusal of an image whose source the user can name, and its entry point where there is no command.

    The source is the folder of the repository that has the script of the command, if there is exactly one.
    """
    entry = {} if command else {"command": ["python", "-m", "program"]}
    repository = repository or Repository()
    kind, _, name = python_target([*command]) if command and is_python(command[0]) else ("", 0, "")
    found = [each for script in started(command) for each in repository.files_like(script)]
    folders = {folder for _, folder in found} | {repository.source_of(name) if kind == "module" else ""} - {""}
    if len(folders) > 1:
        files = sorted(file for file, _ in found)
        text += f"; this repository has {join_or(files[:_MAX_SHOWN], 'and')}: name the folder of one"
    path = folders.pop() if len(folders) == 1 else EXAMPLE
    return Refusal(text, step=step, table=("image", image), content={"path": path} | entry)


def is_plain(image: str) -> bool:
    """Return whether an image has nothing but Python: what it lacks is missing on Vertex AI as well."""
    return not image or _PLAIN.match(image) is not None


def _other_python(image: str) -> str:
    """Return the version of a plain image's Python, such as "3.9"; empty for this one's and for other images."""
    found = _PLAIN.match(image)
    return "" if found is None or found[1] in (None, OWN.minor) else found[1]


def missing_python(image: str) -> str:
    """Return the advice on the Python of a plain image, as the end of a sentence; empty if it is here."""
    minor = _other_python(image)
    way_on = f"which is not installed here; install it, for example by `pyenv install {minor}`, and run the file again"
    return f"; its image has Python {minor}, {way_on}" if minor and not find(minor) else ""


def advice(image: str, module: str, repository: Repository) -> Refusal:
    """Return the advice for a step that lacks a module of its base image."""
    if is_plain(image):
        minor = _other_python(image)
        if minor and (found := find(minor)) and found.has(module.partition(".")[0]):
            text = f'Python {minor} of its image has {module}; add to [image.{quoted(image)}]: python = "{minor}"'
            return Refusal(text, table=("image", image), content={"python": minor})
        return Refusal("")
    table, python = f"[image.{quoted(image)}]", 'python = "VENV/bin/python" with an environment that has it'
    if folder := repository.source_of(module):
        text = f"its base image has {module}, and so has this repository; add to {table}: path = {quoted(folder)}"
        return Refusal(text, table=("image", image), content={"path": folder})
    missing = f"{module} is in its base image {image!r}, but not installed here"
    if package := repository.package_of(module):
        text = f"{missing}; add to localvertex.toml under {table}: packages = [{quoted(package)}], or {python}"
        return Refusal(text, table=("image", image), content={"packages": [package]})
    # An index may have another project's package with the name of the module.
    text = f'{missing}, and no requirement names its package; add to localvertex.toml under {table}: path = "FOLDER"'
    return source_of(f"{text} with its source, or {python}", image, ["known"])
