"""Versions that a step pins and that pip cannot install on its Python, found before the run starts.

pip is called only for scripts without an environment and pins that are not installed. The call comes from the
step's own script as a dry run, so that its index options apply. This Python's pip also serves other Pythons: a
check runs nothing of theirs, and builds nothing: what has no wheel only has to be in the index.
"""

import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import distributions
from subprocess import CompletedProcess

from localvertex.processes import interpreters
from localvertex.processes.answers import ask
from localvertex.processes.interpreters import OWN, Interpreter

Run = Callable[[Sequence[str]], CompletedProcess[str]]
"""Runs a program to its end."""

_PIN = re.compile(r"(?<![\w.=-])([A-Za-z0-9][\w.-]*)(?:\[[\w,.-]*\])?==([0-9][\w.!+]*)(?![\w.*])")
_NOT_FOUND = re.compile(r"satisfies the requirement (\S+?)(?:\[\S*\])?==(\S+) \(from versions: ([^)]*)\)")
_RELEASE = re.compile(r"\d+(?:\.\d+)*")

_PIP = (sys.executable, "-P", "-m", "pip")
"""-P: nothing is imported from the current folder."""

_CALL = re.compile(r"python3? -m pip (install [^\n&|;]*)")

_VERSIONS = re.compile(r"^Available versions: (.*)$", re.MULTILINE)

_INDEX = re.compile(r"--(?:extra-)?index-url|--find-links|--no-index|-[if]")
"""Options of pip that name an index."""

_WITH_PLACE = (
    "-c",
    "--constraint",
    "-r",
    "--requirement",
    "-i",
    "--index-url",
    "--extra-index-url",
    "-f",
    "--find-links",
)
"""Options of pip with a file or an address."""

_SHORT = ("--retries", "0", "--timeout", "10")

_DRY = ("--dry-run", "--no-deps", "--ignore-installed", "--only-binary", ":all:", *_SHORT)
"""Arguments, not variables: a pip that does not know them fails, and installs nothing."""

MAX_SECONDS = 60.0
"""Limit of all dry runs before a run."""

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


def used_by(script: str, pins: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the pins of a script that are replaced, each with what is used."""
    return [pin for pin in pins.items() if replaced(script, dict([pin])) != script]


def unsatisfied(script: str, python: Interpreter = OWN) -> list[str]:
    """Return the pins of a script that the environment of its interpreter does not have."""
    path = [*python.search_path]
    return [
        match[0]
        for match in _PIN.finditer(script)
        if not any(each.version == match[2] for each in distributions(name=match[1], path=path))
    ]


def run(words: Sequence[str]) -> CompletedProcess[str]:
    """Run pip without a mask."""
    return ask(words, seconds=MAX_SECONDS)


def resolve(
    script: str, *, relaxed: Iterable[str] = (), python: Interpreter = OWN, run: Run = run
) -> tuple[dict[str, str], str]:
    """Return replacements for pins that cannot be installed, or why one has none.

    If nothing is known about a pin, for example without a connection, the run decides.

    Args:
        script: The install script.
        relaxed: Names of packages of which the next newer release will do, else the newest older one.
        python: The interpreter of the step.
        run: Runs pip.

    Returns:
        The versions to use instead, and the reason to refuse the step, or an empty text.
    """
    relaxed = {each.casefold().replace("_", "-") for each in relaxed}
    pins, sources = dict.fromkeys(_EARLIER_KFP_1_8.findall(script), _KFP_1_8), set[str]()
    while True:
        script = replaced(script, pins)
        found = _NOT_FOUND.search(_errors_of(script, python, run, sources))
        if found is None:
            return pins, ""
        pin, versions = f"{found[1]}=={found[2]}", [each.strip() for each in found[3].split(",")]
        versions = _with_sources(found[1], script, python, run) or versions
        if pin in sources or versions in ([""], ["none"]):
            return pins, ""
        if found[2] in versions:
            sources.add(pin)
            continue
        nearest, other = _replacements(found[2], versions)
        if not nearest and found[1].casefold().replace("_", "-") in relaxed:
            nearest = other
        if not nearest or pin not in script or pin in pins.values():
            reason = f"{pin} and other releases of its minor version cannot be installed on Python {python.minor}"
            return pins, reason + _ways_on(found[1], other, script, python, run)
        pins[pin] = f"{found[1]}=={nearest}"


def _ways_on(name: str, other: str, script: str, python: Interpreter, run: Run) -> str:
    """Return what the user can add to localvertex.toml for a pin without a release of its minor version."""
    ways = [f'relax = ["{name}"] to use {name}=={other}'] if other else []
    if python is OWN:
        having = (each for each in interpreters.others() if not _NOT_FOUND.search(_errors_of(script, each, run)))
        if found := next(having, None):
            ways.append(f'python = "{found.path}" to use Python {found.minor}, which has it')
    return f"; add to localvertex.toml under [packages]: {', or '.join(ways)}" if ways else ""


def announcement(pins: Mapping[str, str]) -> str:
    """Return which versions are used instead; empty when all are as pinned."""
    texts = [
        f"{wanted} cannot be installed on the Python of its step; using {used} instead"
        for wanted, used in pins.items()
        if used != _KFP_1_8
    ]
    texts += [_KFP_1_8_WARNING] * (_KFP_1_8 in pins.values())
    return "; ".join(texts)


def _calls(script: str) -> Iterator[list[str]]:
    for match in _CALL.finditer(script):
        with suppress(ValueError):
            yield shlex.split(match[1])


def _target(python: Interpreter) -> list[str]:
    return ["--python-version", python.minor] if python is not OWN else []


def _with_sources(name: str, script: str, python: Interpreter, run: Run) -> list[str]:
    """Return all releases in the script's index that a Python accepts, including those without a wheel."""
    options: list[str] = []
    for words in _calls(script):
        pairs = zip(words, ["", *words], strict=False)
        options += [
            word
            for word, before in pairs
            if _INDEX.match(word) or (_INDEX.fullmatch(before) and before != "--no-index")
        ]
    done = run([*_PIP, "index", "versions", "--pre", name, *options, *_target(python), *_SHORT])
    found = _VERSIONS.search(done.stdout)
    return found[1].split(", ") if found else []


def _errors_of(script: str, python: Interpreter, run: Run, without: Collection[str] = ()) -> str:
    """Return the errors of a dry run of the script's pip calls; empty if all would succeed.

    Nothing else of the script runs: it may change the user's environment, for example install pip itself.

    Args:
        script: The script.
        python: The interpreter of the step.
        run: Runs pip.
        without: Pins that are left out.
    """
    errors = ""
    for words in _calls(script):
        # Files, folders and addresses would be built.
        left = [
            word
            for before, word in zip(["", *words], words, strict=False)
            if re.sub(r"\[.*\]", "", word) not in without
            and (word.startswith("-") or before in _WITH_PLACE or not ("/" in word or word.startswith(".")))
        ]
        # Earlier versions of pip want a target, which a dry run does not touch.
        target = [*_target(python), "--target", "/nonexistent"] if python is not OWN else []
        done = run([*_PIP, *left, *_DRY, *target])
        errors += done.stderr if done.returncode else ""
    return errors


def _replacements(wanted: str, versions: Iterable[str]) -> tuple[str, str]:
    """Return the nearest release of the same minor version, and the next newer one, else the newest older one.

    Each is empty without such a version; of two equally near versions, the newer is returned.
    """
    number = _numbers(wanted)
    known = sorted((each for each in versions if _RELEASE.fullmatch(each)), key=_numbers, reverse=True)
    same = [each for each in known if _numbers(each)[:2] == number[:2]]
    newer = [each for each in known if _numbers(each) > number]
    nearest = min(same, key=lambda each: abs(_numbers(each)[2] - number[2]), default="")
    return nearest, (newer[-1:] or known[:1] or [""])[0]


def _numbers(version: str) -> list[int]:
    match = _RELEASE.match(version)
    return [*map(int, match[0].split(".") if match else ()), 0, 0, 0]
