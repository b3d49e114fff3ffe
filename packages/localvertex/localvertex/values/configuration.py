"""The file localvertex.toml: what a run uses in place of what it does not have on this machine.

    [step.train-model]                      # the task's path in the graph, for example "group.train-model"
    outputs = {model = "given/model", accuracy = 0.93}

    [image."europe-docker.pkg.dev/p/r/train:1"]
    path = "src"                            # the source folder of the image's code
    python = ".venv-tf/bin/python"          # its interpreter
    packages = ["torch==2.9.1"]             # packages of the image, installed as a step's own are
    command = ["python", "-m", "training"]  # what runs before the container's arguments

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
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.reading import read_bytes
from localvertex_base.userinput.spelling import did_you_mean, quote

FILE = "localvertex.toml"
MAX_BYTES = 2**20

_TYPES = {dict: "a table", list: "a list of texts", str: "a text", bool: "true or false"}
_TABLES: dict[str, dict[str, type]] = {
    "step.*": {"outputs": dict},
    "image.*": {"path": str, "python": str, "packages": list, "command": list},
    "packages": {"relax": list, "python": str},
    "buckets": {"root": str, "create": bool, "files": dict},
}
"""The keys of each table, `*` for a name of the pipeline, with the type of each value."""


@dataclass(frozen=True, kw_only=True)
class ImageStandIn:
    """What runs in place of a container image; all paths are absolute."""

    path: Path | None = None
    python: Path | None = None
    packages: tuple[str, ...] = ()
    """As pip takes them, such as `torch==2.9.1`."""
    command: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """The content of a localvertex.toml, checked for its shape alone; all paths are absolute."""

    file: Path | None = None
    """None: there is none."""
    given_outputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By the task's path, the values of its outputs by name, as written; paths are relative to `folder`."""
    images: Mapping[str, ImageStandIn] = field(default_factory=dict)
    relaxed: frozenset[str] = frozenset()
    """Names of packages whose pins need not hold, as pip normalises them: lower case, with "-"."""
    python: Path | None = None
    """The interpreter of Python steps; None: this one."""
    gcs_root: Path | None = None
    create_buckets: bool = False
    bucket_files: Mapping[str, Path] = field(default_factory=dict)
    """Files and folders of this machine by their gs:// address."""

    @property
    def folder(self) -> Path:
        """Return the folder to which paths in `given_outputs` are relative."""
        return self.file.parent if self.file else Path.cwd()

    def as_json(self) -> dict[str, Any]:
        """Return it for the record of a run."""
        values = asdict(self) | {"file": self.file or self.folder / FILE, "relaxed": sorted(self.relaxed)}
        # Paths become texts, and so do dates, which TOML has.
        content: dict[str, Any] = json.loads(json.dumps(values, default=str))
        return {} if self == Configuration() else content

    @classmethod
    def of_json(cls, content: dict[str, Any]) -> "Configuration":
        """Return what `as_json` returned.

        Raises:
            LookupError, TypeError, AttributeError: The record is damaged.
        """
        if not content:
            return cls()
        images = {
            name: ImageStandIn(
                path=_path(each["path"]),
                python=_path(each["python"]),
                packages=tuple(each["packages"]),
                command=tuple(each["command"]),
            )
            for name, each in content["images"].items()
        }
        paths = {name: _path(content[name]) for name in ("file", "python", "gcs_root")}
        files = {address: Path(path) for address, path in content["bucket_files"].items()}
        changed = {"images": images, "relaxed": frozenset(content["relaxed"]), "bucket_files": files}
        return cls(**content | paths | changed)


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def key(name: str) -> str:
    """Return a name as a key of TOML."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quoted(name)


def quoted(text: str) -> str:
    """Return a text as TOML in ASCII, which every terminal shows as it is; TOML has no surrogates, as JSON has."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(each if " " <= each <= "~" else f"\\U{ord(each):08x}" for each in plain) + '"'


def path_in(folder: Path, text: str) -> Path:
    """Return a path of the file, which is relative to its folder.

    Raises:
        UserError: It begins with "~" and the name of nobody.
    """
    try:
        return folder / Path(text).expanduser()
    except RuntimeError:
        raise UserError(f"no home directory for {quote(text)}; write the whole path") from None


def find(given: Path | None) -> Configuration:
    """Read the given file, or that of the current folder if there is one.

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
    try:
        tables = tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file} is not TOML: {error}") from None
    try:
        return _configuration(file.absolute(), tables)
    except UserError as error:
        raise UserError(f"{file}: {error}") from None


def _configuration(file: Path, tables: dict[str, Any]) -> Configuration:
    for name, table in tables.items():
        _check_table(name, table)
    packages, buckets = tables.get("packages", {}), tables.get("buckets", {})
    files = buckets.get("files", {})
    for address, path in files.items():
        _check_type(f"buckets.files.{quote(address)}", path, str)
        if not address.startswith("gs://"):
            raise UserError(f"buckets.files: {quote(address)} is not an address; expected gs://BUCKET/OBJECT")

    def absolute(path: str | None) -> Path | None:
        return None if path is None else path_in(file.parent, path)

    return Configuration(
        file=file,
        given_outputs={name: table.get("outputs", {}) for name, table in tables.get("step", {}).items()},
        images={
            name: ImageStandIn(
                path=absolute(table.get("path")),
                python=absolute(table.get("python")),
                packages=tuple(table.get("packages", ())),
                command=tuple(table.get("command", ())),
            )
            for name, table in tables.get("image", {}).items()
        },
        relaxed=frozenset(name.casefold().replace("_", "-") for name in packages.get("relax", ())),
        python=absolute(packages.get("python")),
        gcs_root=absolute(buckets.get("root")),
        create_buckets=buckets.get("create", False),
        bucket_files={address: path_in(file.parent, path) for address, path in files.items()},
    )


def _check_table(name: str, table: Any) -> None:
    """Refuse an unknown table, an unknown key and a value of another type.

    Raises:
        UserError: There is one.
    """
    if f"{name}.*" in _TABLES:
        _check_type(name, table, dict)
        for key, inner in table.items():
            _check_keys(f"{name}.{key}", inner, _TABLES[f"{name}.*"])
    elif name in _TABLES:
        _check_keys(name, table, _TABLES[name])
    else:
        known = [each.removesuffix(".*") for each in _TABLES]
        raise UserError(f"unknown table [{name}]{did_you_mean(name, known)}; expected {', '.join(known)}")


def _check_keys(name: str, table: Any, keys: Mapping[str, type]) -> None:
    _check_type(name, table, dict)
    for key, value in table.items():
        if key not in keys:
            raise UserError(f"[{name}]: unknown key {quote(key)}{did_you_mean(key, keys)}; expected {', '.join(keys)}")
        _check_type(f"{name}.{key}", value, keys[key])


def _check_type(name: str, value: Any, expected: type) -> None:
    is_text_list = isinstance(value, list) and all(isinstance(each, str) for each in value)
    if not (is_text_list if expected is list else type(value) is expected):
        raise UserError(f"{name} is {quote(value)}; expected {_TYPES[expected]}")
