"""`gsutil` and `gcloud storage` of a step: cp, ls and rsync between files and buckets that are folders.

Everything else, and buckets that have no folder, is left to the program of that name on PATH; without one, or without
folders of buckets, a sentence names what there is. Options follow gsutil's help; those that change what is copied are
refused.

Standard library only, no import of this package: the step's Python, from 3.8, may not have it.
"""

import argparse
import filecmp
import glob
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

_SCHEME = "gs://"
_ROOT = os.environ.get("LOCALVERTEX_GCS_ROOT", "")
_IS_LOCAL = os.environ.get("BOTO_CONFIG") == os.devnull
"""Set where a run has no credentials."""


class _Unserved(Exception):
    """This is not served here; the text says why."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Unserved(message)


def main(program: str, *words: str) -> int:
    """Run a command of the program; return its exit code."""
    try:
        if not _IS_LOCAL:
            raise _Unserved("this run uses the buckets of Google Cloud")
        if not _ROOT:
            raise _Unserved("buckets are folders of this machine, and this run has none; add --gcs-root DIR")
        options = _read(program, list(words))
        command = {"cp": _copy, "ls": _list, "rsync": _synchronise}[options.command]
        try:
            return command(options)
        except (OSError, ValueError) as error:
            return _fail(program, str(error))
    except _Unserved as reason:
        return _leave(program, list(words), str(reason))


def _read(program: str, words: list[str]) -> argparse.Namespace:
    parser = _Parser(add_help=False, allow_abbrev=False)
    for name in ("-m", "-q", "-D", "--quiet"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("-o", action="append")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    for name in ("cp", "ls", "rsync"):
        command = commands.add_parser(name, add_help=False, allow_abbrev=False)
        command.add_argument("-r", "-R", "--recursive", action="store_true", dest="recursive")
        command.add_argument("-n", "--no-clobber", action="store_true", dest="keeps")
        command.add_argument("-d", "--delete-unmatched-destination-objects", action="store_true", dest="deletes")
        command.add_argument("-l", "--long", action="store_true", dest="long")
        for ignored in ("-c", "-P", "-U", "-v", "-q", "--quiet", "--no-user-output-enabled"):
            command.add_argument(ignored, action="store_true")
        command.add_argument("paths", nargs="*")
    options = parser.parse_args(words[1:] if program == "gcloud" and words[:1] == ["storage"] else words)
    if program == "gcloud" and words[:1] != ["storage"]:
        raise _Unserved("only gcloud storage is served")
    least = 0 if options.command == "ls" else 2
    if len(options.paths) < least or (options.command == "rsync" and (len(options.paths) != least or options.keeps)):
        raise _Unserved("the arguments are not served")
    return options


def _local(address: str) -> str:
    """Return the path of an address or a file, with a bucket that has a folder."""
    if not address.startswith(_SCHEME):
        return address
    bucket, _, name = address[len(_SCHEME) :].partition("/")
    folder = os.path.join(_ROOT, bucket)
    if not bucket or bucket.startswith(".") or not os.path.isdir(folder):
        raise _Unserved(f"buckets are folders here, and there is no folder {folder!r} for {_SCHEME}{bucket}")
    path = os.path.join(folder, name)
    # The part before a wildcard, of which nothing else is a link.
    real, inside = os.path.realpath(path), os.path.realpath(folder)
    if real != inside and not real.startswith(inside + os.sep):
        raise ValueError(f"{address} leads out of its bucket")
    return path


def _shown(path: str) -> str:
    root = os.path.join(_ROOT, "")
    return _SCHEME + path[len(root) :] if path.startswith(root) else path


def _matches(address: str) -> list[str]:
    path = _local(address)
    found = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else [path] * os.path.exists(path)
    if not found:
        raise ValueError(f"No URLs matched: {address}")
    for each in found:
        _local(_shown(each))
    return found


def _files(folder: str, *, is_deep: bool = True) -> Iterator[tuple[str, str]]:
    """Yield the files below a folder, each with its name relative to it."""
    for inner, folders, names in os.walk(folder):
        folders[:] = sorted(folders) if is_deep else []
        for name in sorted(names):
            path = os.path.join(inner, name)
            yield path, os.path.relpath(path, folder)


def _put(source: str, target: str, options: argparse.Namespace) -> None:
    if options.keeps and os.path.exists(target):
        return
    for each in (source, target):
        _local(_shown(each))
    os.makedirs(os.path.dirname(os.path.abspath(target)), exist_ok=True)
    if os.path.abspath(source) != os.path.abspath(target):
        shutil.copyfile(source, target)
    print(f"Copying {_shown(source)} to {_shown(target)}", file=sys.stderr)


def _copy(options: argparse.Namespace) -> int:
    *sources, last = options.paths
    if last == "-":
        for path in [each for source in sources for each in _matches(source)]:
            sys.stdout.buffer.write(Path(path).read_bytes())
        return 0
    target = _local(last)
    found = [each for source in sources for each in _matches(source)]
    is_folder = last.endswith("/") or os.path.isdir(target) or len(found) > 1
    for path in found:
        inner = os.path.join(target, os.path.basename(path.rstrip("/"))) if is_folder else target
        if not os.path.isdir(path):
            _put(path, inner, options)
        elif options.recursive:
            for file, name in _files(path):
                _put(file, os.path.join(inner, name), options)
        else:
            raise ValueError(f"{_shown(path)} is a folder; add -r")
    return 0


def _synchronise(options: argparse.Namespace) -> int:
    source, target = map(_local, options.paths)
    if not os.path.isdir(source):
        raise ValueError(f"{options.paths[0]} is not a folder")
    wanted = {name: path for path, name in _files(source, is_deep=options.recursive)}
    for name, path in wanted.items():
        there = os.path.join(target, name)
        if not os.path.exists(there) or not filecmp.cmp(path, there, shallow=False):
            _put(path, there, options)
    for path, name in [*_files(target, is_deep=options.recursive)] if options.deletes else []:
        if name not in wanted:
            os.remove(path)
    return 0


def _list(options: argparse.Namespace) -> int:
    for address in options.paths or [_SCHEME]:
        if address == _SCHEME:
            paths = [each.path for each in sorted(os.scandir(_ROOT), key=lambda each: each.name) if each.is_dir()]
        else:
            paths = []
            for path in _matches(address):
                if options.recursive and os.path.isdir(path):
                    paths += [file for file, _ in _files(path)]
                else:
                    paths += sorted(glob.glob(os.path.join(path, "*"))) if os.path.isdir(path) else [path]
        for path in paths:
            size = f"{os.path.getsize(path):>11}  " if options.long and os.path.isfile(path) else ""
            print(f"{size}{_shown(path)}{'/' * os.path.isdir(path)}")
    return 0


def _leave(program: str, words: list[str], reason: str) -> int:
    """Start the program of this name that is behind this one on PATH."""
    own = os.environ.get("LOCALVERTEX_PROGRAMS", "")
    path = os.pathsep.join(each for each in os.environ.get("PATH", "").split(os.pathsep) if each != own)
    real = shutil.which(program, path=path)
    if real:
        os.execve(real, [program, *words], {**os.environ, "PATH": path})  # noqa: S606 - the step's own words
    return _fail(program, f"{reason}; {program} is not installed here, but cp, ls and rsync work on such folders")


def _fail(program: str, text: str) -> int:
    print(f"error: {program}: {text}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
