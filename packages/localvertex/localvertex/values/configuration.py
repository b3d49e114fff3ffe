"""The file localvertex.toml: what a run uses in place of what it does not have on this machine.

    sandbox = "mask"                        # hide secrets and other runs from steps and jobs; or "none"

    [step.train-model]                      # the task's path in the graph, for example "group.train-model"
    outputs = {model = "given/model", accuracy = 0.93}

    [step.read-csv]
    addresses = "gs"                        # gs:// stays so for a step that parses it; or "folder", the default
    bigquery = {"shop.orders" = "orders.csv"}  # rows of its queries and tables: CSV, JSON Lines or Parquet

    [image."europe-docker.pkg.dev/p/r/train:1"]
    path = "src"                            # the source folder of the image's code
    python = ".venv-tf/bin/python"          # its interpreter; or a version that is installed here, "3.9"
    packages = ["torch==2.9.1"]             # packages of the image, installed as a step's own are
    command = ["python", "-m", "training"]  # what runs before the container's arguments

    [parameters]
    project = "my-project"                  # where a run gives no other value

    [pipeline.taxi.step.train-model]        # as [step.NAME] and [parameters], of this pipeline alone
    outputs = {model = "given/model"}

    [packages]
    relax = ["tensorflow"]                  # pins that need not hold
    python = "/usr/bin/python3.10"          # the interpreter of Python steps

    [buckets]
    root = "buckets"                        # as --gcs-root
    create = true                           # create the folders that are missing

    [buckets.files]
    "gs://cloud-samples-data/iris.csv" = "data/iris.csv"

Paths are relative to the folder of the file. Options of the command line override the file.
"""

import json
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.kinds import Text, check
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import parse_toml, read_bytes
from localvertex._base.userinput.spelling import did_you_mean, quote

FILE = "localvertex.toml"
MAX_BYTES = 2**20

_VERSION = re.compile(r"3\.\d+")

MASK, NO_SANDBOX = "mask", "none"


def _kinds(folder: Path) -> JsonObject:
    """Return what each table may contain; a path is a text in the file, relative to its folder."""
    path = Text(convert=lambda text: str(path_in(folder, text)))
    python = Text(convert=lambda text: text if _VERSION.fullmatch(text) else path.convert(text))
    steps = {str: {"outputs": dict, "addresses": ("gs", "folder"), "bigquery": {str: path}}}
    return {
        "step": steps,
        "image": {str: {"path": path, "python": python, "packages": [str], "command": [str]}},
        "packages": {"relax": [str], "python": python},
        "buckets": {"root": path, "create": bool, "files": {str: path}},
        "parameters": dict,
        "pipeline": {str: {"step": steps, "parameters": dict}},
        "sandbox": (MASK, NO_SANDBOX),
    }


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """The tables of a localvertex.toml, checked for their shape alone; all paths except paths of outputs are absolute.

    Raises:
        UserError: A table has another shape.
    """

    file: Path | None = None
    """None: the file has no such setting."""
    sandbox: str = MASK
    """Whether steps and jobs run behind a mask."""
    step: Mapping[str, Any] = field(default_factory=dict)
    """Paths in outputs are relative to `folder`, all others absolute."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    pipeline: Mapping[str, Any] = field(default_factory=dict)
    """The tables `step` and `parameters` of single pipelines, by the pipeline's name."""
    image: Mapping[str, Any] = field(default_factory=dict)
    packages: Mapping[str, Any] = field(default_factory=dict)
    buckets: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the values, and make the paths in them absolute."""
        for name, kind in _kinds(self.folder).items():
            object.__setattr__(self, name, check(name, getattr(self, name), kind))
        for address in self.buckets.get("files", {}):
            if not address.startswith("gs://"):
                raise UserError(f"buckets.files: {quote(address)} is not an address; expected gs://BUCKET/OBJECT")

    @property
    def folder(self) -> Path:
        """Return the folder to which paths are relative."""
        return self.file.parent if self.file else Path.cwd()

    def tables_of(
        self, pipeline: str, kind: str, known: Collection[str], *, ignores_unknown: bool = False
    ) -> JsonObject:
        """Return the steps or the parameters of a pipeline: its own, and those for all pipelines.

        Args:
            pipeline: The name of the pipeline.
            kind: "step" or "parameters".
            known: The names that the pipeline has. An own name that is not like any of them may be of another pipeline
                of this name, and is left out.
            ignores_unknown: Whether all unknown names are left out.
        """
        own = self.pipeline.get(pipeline, {}).get(kind, {})
        every = {**getattr(self, kind), **own}
        others = [each for each in known if each not in every]
        is_foreign = {each: ignores_unknown or (each in own and not did_you_mean(each, others)) for each in every}
        return {name: each for name, each in every.items() if name in known or not is_foreign[name]}

    def as_json(self) -> JsonObject:
        """Return it for the record of a run."""
        # Paths become texts, and so do dates, which TOML has.
        content: JsonObject = json.loads(
            json.dumps(asdict(self) | {"file": self.file or self.folder / FILE}, default=str)
        )
        return {} if self == Configuration() else content

    @classmethod
    def of_json(cls, content: JsonObject) -> "Configuration":
        """Return what `as_json` returned.

        Raises:
            UserError, LookupError, TypeError: The record is damaged.
        """
        return cls(**content | {"file": Path(content["file"])}) if content else cls()


def key(name: str) -> str:
    """Return a name as a key of TOML."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quoted(name)


def quoted(text: str) -> str:
    """Return a text as TOML in ASCII, which every terminal shows as it is; TOML has no surrogates, as JSON has."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(each if " " <= each <= "~" else f"\\U{ord(each):08x}" for each in plain) + '"'


def toml(value: Any) -> str:
    """Return a value of JSON as TOML."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key(name)} = {toml(each)}' for name, each in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    return quoted(value) if isinstance(value, str) else json.dumps(value)


def path_in(folder: Path, text: str) -> Path:
    """Return a path of the file, which is relative to its folder.

    Raises:
        UserError: It begins with "~" and an unknown user name.
    """
    try:
        return folder / Path(text).expanduser()
    except RuntimeError:
        raise UserError(f"no home directory for {quote(text)}; write the whole path") from None


def find(given: Path | None) -> Configuration:
    """Read the given file, or the localvertex.toml of the current folder if it exists.

    Raises:
        UserError: As `read`.
    """
    file = given or Path(FILE)
    return read(file) if given or file.exists() else Configuration()


def read(file: Path) -> Configuration:
    """Read a configuration.

    Raises:
        UserError: The file cannot be read, is larger than `MAX_BYTES`, is not TOML, or has another shape.
    """
    # An empty file is TOML, but nothing else that is read here.
    data = b"" if os.path.isfile(file) and not os.path.getsize(file) else read_bytes(file)
    if len(data) > MAX_BYTES:
        raise UserError(f"{file} has {len(data):,} bytes; expected at most {MAX_BYTES:,}")
    tables = parse_toml(data, str(file))
    try:
        known = _kinds(file.parent)
        for name in tables.keys() - known:
            raise UserError(f"unknown table [{name}]{did_you_mean(name, known)}; expected {', '.join(known)}")
        return Configuration(file=file.absolute(), **tables)
    except UserError as error:
        raise UserError(f"{file}: {error}") from None
