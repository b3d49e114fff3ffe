"""`gsutil` and `gcloud storage` of a step: cp, ls and rsync between files and buckets that are folders.

Everything else, and buckets that have no folder, is left to the program of that name on PATH; without one, a message
names the supported commands. Options that would change what is copied are not served.

Standard library only, no import of this package: the step's Python, from 3.8, may not have it.
"""

import filecmp
import glob
import os
import shutil
import sys

_SCHEME = "gs://"
_DEEP, _KEEPS = {"-r", "-R", "--recursive"}, {"-n", "--no-clobber"}
_DELETES = {"-d", "--delete-unmatched-destination-objects"}
_OPTIONS = {"cp": _DEEP | _KEEPS | {"-c", "-P"}, "ls": _DEEP, "rsync": _DEEP | _DELETES | {"-c", "-P"}}
_OF_ALL = {"-m", "-q", "-D", "--quiet", "--no-user-output-enabled"}


class _Unserved(Exception):
    """A request that is not served here; the text is the reason."""


def main(program: str, *words: str) -> int:
    """Run a command of the program; return its exit code."""
    try:
        # This variable is set where a run has no credentials.
        if os.environ.get("BOTO_CONFIG") != os.devnull:
            raise _Unserved("this run uses the buckets of Google Cloud")
        if not _root():
            raise _Unserved("buckets are folders of this machine, and this run has none; add --gcs-root DIR")
        _serve(words[1:] if program == "gcloud" and words[:1] == ("storage",) else words)
        return 0
    except _Unserved as reason:
        own = os.environ.get("LOCALVERTEX_PROGRAMS", "")
        path = os.pathsep.join(each for each in os.environ.get("PATH", "").split(os.pathsep) if each != own)
        real = shutil.which(program, path=path)
        if real:
            os.execve(real, [program, *words], {**os.environ, "PATH": path})  # noqa: S606 - the step's own words
        text = f"{reason}; {program} is not installed here, but cp, ls and rsync work on such folders"
    except (OSError, ValueError) as error:
        text = " ".join(str(error).split())
    print(f"error: {program}: {text}", file=sys.stderr)
    return 1


def _serve(words: "tuple[str, ...]") -> None:
    options = {each for each in words if each.startswith("-") and each != "-"}
    command, *paths = [each for each in words if each not in options] or [""]
    is_served = command in _OPTIONS and options <= _OPTIONS[command] | _OF_ALL
    if not is_served or (len(paths) != 2 if command == "rsync" else len(paths) < 2 and command == "cp"):
        raise _Unserved(f"this use of {command or 'it'} is not served")
    if command == "rsync":
        _synchronise(_local(paths[0]), _local(paths[1]), options)
    elif command == "cp":
        _copy([each for address in paths[:-1] for each in _matches(address)], paths[-1], options)
    for path in [each for address in paths or [_SCHEME + "*"] for each in _matches(address)] if command == "ls" else ():
        inner = _names(path, options) if options & _DEEP else os.listdir(path) if paths and os.path.isdir(path) else ()
        for each in [os.path.join(path, name) for name in sorted(inner)] or [path]:
            print(f"{_shown(each)}{'/' * os.path.isdir(each)}")


def _root() -> str:
    return os.environ.get("LOCALVERTEX_GCS_ROOT", "")


def _local(address: str) -> str:
    """Return the path of a file or of an address, whose bucket has a folder."""
    if not address.startswith(_SCHEME):
        return address
    bucket, _, name = address[len(_SCHEME) :].partition("/")
    folder = os.path.join(_root(), bucket)
    if bucket != "*" and not os.path.isdir(folder):
        raise _Unserved(f"buckets are folders here, and there is no folder {folder!r}")
    path, inside = os.path.join(folder, name) if name else folder, os.path.realpath(folder)
    if os.path.commonpath([os.path.realpath(path), inside]) != inside:
        raise ValueError(f"{address} leads out of its bucket")
    return path


def _names(folder: str, options: "set[str]") -> "set[str]":
    """Return the files of a folder, optionally with those of its subfolders, relative to it."""
    every = (
        (inner, name) for inner, _, names in os.walk(folder) for name in names if options & _DEEP or inner == folder
    )
    return {os.path.relpath(os.path.join(*each), folder) for each in every}


def _shown(path: str) -> str:
    root = os.path.join(_root(), "")
    return _SCHEME + path[len(root) :] if path.startswith(root) else path


def _matches(address: str) -> "list[str]":
    found = sorted(glob.glob(_local(address), recursive=True))
    if not found:
        raise ValueError(f"no URLs matched {address}")
    return found


def _put(source: str, target: str) -> None:
    """Copy a file, unless a link leads out of a bucket."""
    for each in (source, target):
        _local(_shown(each))
    os.makedirs(os.path.dirname(os.path.abspath(target)), exist_ok=True)
    if os.path.abspath(source) != os.path.abspath(target):
        shutil.copyfile(source, target)


def _copy(found: "list[str]", last: str, options: "set[str]") -> None:
    target = _local(last)
    for path in found:
        is_inside = last.endswith("/") or os.path.isdir(target) or len(found) > 1
        inner = os.path.join(target, os.path.basename(path.rstrip("/"))) if is_inside else target
        if os.path.isdir(path) and not options & _DEEP:
            raise ValueError(f"{_shown(path)} is a folder; add -r")
        if last == "-":
            with open(path, "rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
            continue
        # The name of a file in itself is ".".
        for name in _names(path, _DEEP) if os.path.isdir(path) else ["."]:
            place = os.path.normpath(os.path.join(inner, name))
            if not (options & _KEEPS and os.path.exists(place)):
                _put(os.path.normpath(os.path.join(path, name)), place)


def _synchronise(source: str, target: str, options: "set[str]") -> None:
    # With -d, a wrong address would empty the target.
    if not os.path.isdir(source):
        raise ValueError(f"{_shown(source)} is not a folder")
    wanted = _names(source, options)
    for name in wanted:
        pair = os.path.join(source, name), os.path.join(target, name)
        if not os.path.exists(pair[1]) or not filecmp.cmp(*pair, shallow=False):
            _put(*pair)
    for name in _names(target, options) - wanted if options & _DELETES else ():
        os.remove(os.path.join(target, name))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
