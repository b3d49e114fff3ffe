"""Find the program, script or module that a container command starts, and whether this machine has it.

`sh run.sh`, `python3 /main.py` and `python -m module` are checked as far as the command can be read.
"""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from localvertex._base.compiled.payload import PLACEHOLDER
from localvertex.containers import interpreter

Shows = Callable[[str], bool]
"""Whether a command finds a path of this machine."""

SHELLS = frozenset(("ash", "bash", "dash", "ksh", "sh", "zsh"))
_OTHERS = frozenset(("Rscript", "node", "perl", "ruby"))
_PYTHON = re.compile(r"python(\d+(\.\d+)?)?")
_OWN = re.compile(r"pip(\d+(\.\d+)?)?|gsutil")
"""Each step has its own, as of `gcloud storage`; see processes/environments.py."""

_WITH_VALUE = frozenset(("-W", "-X", "--check-hash-based-pycs"))
"""Options of Python with a value in the next word."""

_SIMPLE = re.compile(r"[\w\s./=:,@%+-]*")
"""A script that is a single command without anything that a shell expands."""

_START = re.compile(
    r"(?:exec\s+|\w+=\S*\s+)*(?:\S*/)?(?:python[\d.]*|sh|bash)(?:\s+-(?![mc]\b)[A-Za-z]+)*"
    r"\s+[\"']?([\w./+@-]+\.(?:py|sh))(?=[\"'\s]|$)"
)
_HARMLESS = re.compile(
    r"(?:(?:set|echo|printf|export|mkdir|ls|pwd|date|env|whoami|sleep|nvidia-smi|(?:python[\d.]* -m )?pip3?)\b"
    r"[^<>`()|]*|\w+=\S*)?"
)
"""Commands that bring no script."""

_NO_COMMAND = re.compile(r"(?:^|(?<=\s))#.*|\\\n|\d?>\s*/dev/null|\d>&\d", re.MULTILINE)
"""Comments, line ends within commands, and output that is lost."""


_NEEDS_BASH = (
    r"\bpipefail\b|\[\[|^[ \t]*(?:function\s|source\s|declare\s|local -|shopt\s)|<<<|&>|[<>]\(|=\(|\$'|\becho -e\b"
    r"|\$\{\w+(?:\[|:\d|//|\^|,)|[;|&]\s*source\s"
)
"""Syntax that `sh` of many images accepts, because it is bash or ash, but `sh` of Debian does not."""


def missing(words: list[str], shows: Shows, env: Mapping[str, str]) -> str:
    """Return why a command cannot run here; empty when it can, or when only the run can decide.

    Args:
        words: The command and its arguments.
        shows: Whether a command finds a path of this machine.
        env: The variables that the container sets.
    """
    is_own = words and (_OWN.fullmatch(words[0]) or words[:2] == ["gcloud", "storage"])
    if not words or PLACEHOLDER.search(words[0]) or is_own:
        return ""
    program = _find_program(words[0])
    if not program:
        return f"the program {' '.join(words[0].split())[:80]!r} is not installed locally"
    if not (shows(program) or is_own_python(words[0])):
        return f"the program {words[0]!r} is {program}, which the sandbox does not show"
    name = os.path.basename(words[0])
    if name == "env":
        return missing(_after_variables(words[1:]), shows, env)
    if name in SHELLS:
        return _missing_of_shell(words[1:], shows, env)
    if _PYTHON.fullmatch(name):
        return _missing_of_python(words, shows, env)
    is_script = name in _OTHERS and len(words) > 1 and not words[1].startswith("-")
    return _missing_file(words[1], shows) if is_script else ""


def _find_program(name: str) -> str | None:
    """Return the path of a program; programs beside this interpreter come first."""
    try:
        # A relative path would be one in the image.
        if os.sep in name and not os.path.isabs(name):
            return None
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return shutil.which(name, path=path)
    except ValueError:
        return None


def is_own_python(program: str) -> bool:
    """Return whether a command starts this Python."""
    return program in ("python", "python3", sys.executable) or _find_program(program) == sys.executable


def with_bash(words: list[str]) -> list[str]:
    """Return a command with bash in place of `sh`, when its script needs a shell like bash and `sh` is not."""
    if words[:1] not in (["sh"], ["/bin/sh"]) or not any(
        re.search(_NEEDS_BASH, word, re.MULTILINE) for word in words[1:]
    ):
        return words
    if os.path.basename(os.path.realpath("/bin/sh")) in ("bash", "busybox"):
        return words
    bash = shutil.which("bash", path="/bin:/usr/bin:/usr/local/bin")
    return [bash, *words[1:]] if bash else words


def _missing_of_shell(words: list[str], shows: Shows, env: Mapping[str, str]) -> str:
    """Return what a shell command lacks: its script, or the only command in `-c`."""
    for number, word in enumerate(words):
        if not word.startswith(("-", "+")):
            return _missing_file(word, shows)
        if not word.startswith("--") and "c" in word:
            script = words[number + 1] if number + 1 < len(words) else ""
            if _SIMPLE.fullmatch(script) and "\n" not in script.strip():
                return _missing_of_line(shlex.split(script), shows, env)
            return next(filter(None, (_missing_file(each, shows) for each in scripts_of_shell(script))), "")
        if word.endswith("o"):
            return ""
    return ""


def scripts_of_shell(text: str) -> list[str]:
    """Return the scripts that the text of a shell starts in any case, and that nothing in it may have brought."""
    found = []
    for each in re.split(r"&&|[;\n]", _NO_COMMAND.sub(" ", text)):
        line = each.strip()
        if "||" in line or line.count('"') % 2 or line.count("'") % 2:
            break
        # Buckets are mounted at /gcs, or a folder of this machine takes its place.
        if (match := _START.match(line)) and not match[1].startswith("/gcs/"):
            found.append(match[1])
        elif not _HARMLESS.fullmatch(line):
            break
    return found


def _missing_of_line(words: list[str], shows: Shows, env: Mapping[str, str]) -> str:
    """Return what a shell line lacks; a name that is not a program may be built into the shell."""
    words = _after_variables(words)
    if words[:1] == ["exec"]:
        words = words[1:]
    return missing(words, shows, env) if words and (os.sep in words[0] or _find_program(words[0])) else ""


def is_python(program: str) -> bool:
    """Return whether a command of an image starts Python, wherever it has it."""
    return bool(_PYTHON.fullmatch(os.path.basename(program)))


def python_target(words: list[str]) -> tuple[str, int, str]:
    """Return the target of a Python command: "module" or "file", the index of the word that names it, and the name.

    The kind is empty for code in the command, standard input or nothing.
    """
    number = 1
    while number < len(words):
        word = words[number]
        if not word.startswith("-") or word == "-":
            return ("file", number, word) if word != "-" else ("", number, "")
        flags = "" if word.startswith("--") or word in _WITH_VALUE else word[1:]
        if "c" in flags:
            break
        if "m" in flags:
            joined = flags.partition("m")[2]
            following = words[number + 1] if number + 1 < len(words) else ""
            return ("module", number, joined) if joined else ("module", number + 1, following)
        number += 2 if word in _WITH_VALUE else 1
    return "", number, ""


def _missing_of_python(words: list[str], shows: Shows, env: Mapping[str, str]) -> str:
    """Return which module or file a Python command lacks."""
    kind, _, name = python_target(words)
    if kind == "module":
        is_found = PLACEHOLDER.search(name) or "PYTHONPATH" in env or name == "pip" or _has_module(name)
        return "" if is_found else f"the Python module {name!r} is not installed locally"
    return _missing_file(name, shows) if kind else ""


def _has_module(name: str) -> bool:
    """Return whether Python finds a module, without importing its packages."""
    path: list[str] | None = None
    for part in name.split("."):
        # The part alone: the spec of a folder without __init__.py would look for its parent among the imported modules.
        spec = _find_spec(part, path) if part else None
        if spec is None:
            return False
        path = list(spec.submodule_search_locations or [])
    return True


def _find_spec(name: str, path: list[str] | None) -> ModuleSpec | None:
    """Return the spec of a module, searched in these folders or on Python's own path."""
    if path is not None:
        return PathFinder.find_spec(name, path)
    every = (each.find_spec(name, interpreter.search_path() if each is PathFinder else None) for each in sys.meta_path)
    return next(filter(None, every), None)


def _missing_file(name: str, shows: Shows) -> str:
    """Return which script is missing; the step's folder, in which a command starts, is empty."""
    if PLACEHOLDER.search(name) or (os.path.isabs(name) and shows(name)):
        return ""
    return f"the script {name!r} is not on this machine"


def _after_variables(words: list[str]) -> list[str]:
    """Return a command without the variables in front of it."""
    while words and re.match(r"\w+=|-", words[0]):
        words = words[1:]
    return words
