"""Versions that a step pins and that pip cannot install on this Python, found before the run starts.

pip is called only for scripts without an environment and pins that are not installed. The call comes from the
step's own script as a dry run, so that its index options apply.
"""

import importlib.metadata
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping

_PIN = re.compile(r"(?<![\w.=-])([A-Za-z0-9][\w.-]*)(?:\[[\w,.-]*\])?==([0-9][\w.!+]*)(?![\w.*])")
_NOT_FOUND = re.compile(r"satisfies the requirement (\S+?)(?:\[\S*\])?==(\S+) \(from versions: ([^)]*)\)")
_RELEASE = re.compile(r"\d+(?:\.\d+)*")

_CALL = re.compile(r"python3? -m pip (install [^\n&|;]*)")

_DRY = ("--dry-run", "--no-deps", "--ignore-installed", "--retries", "0", "--timeout", "10")
"""Arguments, not variables: a pip that does not know them fails, and installs nothing."""

_MAX_SECONDS = 120.0

_EARLIER_KFP_1_8 = re.compile(r"\bkfp==1\.8\.(?:\d|1\d|2[01])(?![\w.])")

_KFP_1_8 = "kfp==1.8.22"

_KFP_1_8_WARNING = (
    f"steps that pin an earlier kfp 1.8 install {_KFP_1_8}, the last release of 1.8: 1.8.13, for example, needs a "
    "PyYAML that cannot be built any more"
)


def replaced(script: str, pins: Mapping[str, str]) -> str:
    """Return an install script with some of its pins replaced.

    Args:
        script: The script.
        pins: Replacements of pins such as `numpy==1.21.6`.
    """
    for wanted, used in pins.items():
        name, version = wanted.split("==")
        pattern = rf"(?<![\w.=-])({re.escape(name)}(?:\[[\w,.-]*\])?==){re.escape(version)}(?![\w.*+!])"
        script = re.sub(pattern, rf"\g<1>{used.partition('==')[2]}", script)
    return script


def unsatisfied(script: str) -> list[str]:
    """Return the pins of a script that the user's environment does not have."""
    return [match[0] for match in _PIN.finditer(script) if _installed(match[1]) != match[2]]


def resolve(script: str) -> tuple[dict[str, str], str]:
    """Return replacements for pins that cannot be installed, or why one has none.

    If nothing is known about a pin, for example without a connection, the run decides.

    Returns:
        The versions to use instead, and the reason to refuse the step, or an empty text.
    """
    pins = dict.fromkeys(_EARLIER_KFP_1_8.findall(script), _KFP_1_8)
    while True:
        script = replaced(script, pins)
        found = _NOT_FOUND.search(_errors_of(script))
        if found is None:
            return pins, ""
        pin, versions = f"{found[1]}=={found[2]}", [each.strip() for each in found[3].split(",")]
        if versions in ([""], ["none"]):
            return pins, ""
        nearest = _nearest(found[2], versions)
        if not nearest or pin not in script or pin in pins.values():
            return pins, f"{pin} and other releases of its minor version cannot be installed on Python {_python()}"
        pins[pin] = f"{found[1]}=={nearest}"


def announcement(pins: Mapping[str, str]) -> str:
    """Return which versions are used instead; empty when all are as pinned."""
    texts = [
        f"{wanted} cannot be installed on Python {_python()}; using {used} instead"
        for wanted, used in pins.items()
        if used != _KFP_1_8
    ]
    texts += [_KFP_1_8_WARNING] * (_KFP_1_8 in pins.values())
    return "; ".join(texts)


def _errors_of(script: str) -> str:
    """Return the errors of a dry run of the script's pip calls; empty if all would succeed.

    Nothing else of the script runs: it may change the user's environment, for example install pip itself.
    """
    errors = ""
    for match in _CALL.finditer(script):
        try:
            # -P: nothing is imported from the current folder.
            words = [sys.executable, "-P", "-m", "pip", *shlex.split(match[1]), *_DRY]
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_MAX_SECONDS,
                check=False,
            )
        except (OSError, ValueError, subprocess.SubprocessError):
            continue
        errors += done.stderr if done.returncode else ""
    return errors


def _nearest(wanted: str, versions: Iterable[str]) -> str:
    """Return the release of the same minor version nearest to another one, the newer of two; empty if there is none."""
    number = _numbers(wanted)
    same = [each for each in versions if _RELEASE.fullmatch(each) and _numbers(each)[:2] == number[:2]]
    return min(same, key=lambda each: (abs(_micro(each) - _micro(wanted)), -_micro(each)), default="")


def _numbers(version: str) -> list[int]:
    match = _RELEASE.match(version)
    return [int(part) for part in match[0].split(".")] if match else []


def _micro(version: str) -> int:
    return (*_numbers(version), 0, 0, 0)[2]


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"
