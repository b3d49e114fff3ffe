"""The faults that a training has to survive, and when each happens: a plan that its seed decides."""

import random
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from localvertex.commands.prove.watch import LOGS
from localvertex.errors import TaskFailed
from localvertex.jobs import CustomJob
from localvertex.jobs.faults.faults import ALL


class FaultKind(StrEnum):
    """A fault, by the name that `--fault` takes (docs/prove.md)."""

    EARLY = "killed-early"
    MIDDLE = "killed-in-the-middle"
    END = "killed-at-the-end"
    TWICE = "killed-twice"
    FIRST_WRITE = "killed-at-first-write"
    SIGTERM = "sigterm"
    NOTICE = "notice"
    FROZEN = "frozen"
    ONE_REPLICA = "one-replica"
    TORN = "torn-checkpoint"
    BIT_FLIPPED = "bit-flipped"
    DISK_FULL = "disk-full"
    OTHER_WORKERS = "other-workers"
    FILE_EVENTS = "at-every-file-event"


DEFAULT = [each for each in FaultKind if each is not FaultKind.FILE_EVENTS]
"""All but the one that takes a run for each call of a save."""
KILLS = {*FaultKind} - {FaultKind.SIGTERM, FaultKind.NOTICE, FaultKind.FROZEN, FaultKind.DISK_FULL}
"""Faults after which a replica has not ended by itself."""

RESIDUES = {FaultKind.EARLY: 1, FaultKind.MIDDLE: 3, FaultKind.END: 0, FaultKind.TWICE: 2}
"""The number of saves before a kill, modulo 4: what only every second to fourth save has is lost by one of them."""

_MIDDLE = (0.4, 0.65)
_FRACTIONS = {
    FaultKind.EARLY: (0.08, 0.25),
    FaultKind.FIRST_WRITE: (0.0, 0.0),
    FaultKind.TWICE: (0.25, 0.35),
    FaultKind.TORN: (0.3, 0.5),
    FaultKind.DISK_FULL: (0.2, 0.5),
    FaultKind.END: (0.8, 0.93),
}


MAX_FILE_EVENTS = 40
_INJECTION = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))
static __thread int busy;
static int seen;

/* Record a call in the folder; return whether it is the one at which to be killed, once. */
static int hit(const char *call, int at, const char *path) {
    const char *folder = getenv("PROVE_FOLDER"), *target = getenv("PROVE_TARGET"), *record = getenv("PROVE_RECORD");
    char full[2 * PATH_MAX] = "", event[2 * PATH_MAX + 32], link[64];
    int file, is_hit = 0;
    if (busy || !folder || !target || !record)
        return 0;
    busy = 1;
    if (!path || *path != '/') {
        snprintf(link, sizeof link, at == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", at);
        if (readlink(link, full, PATH_MAX - 1) < 0)
            *full = 0;
    }
    if (path)
        snprintf(full + strlen(full), PATH_MAX, *path == '/' ? "%s" : "/%s", path);
    size_t length = strlen(folder);
    if (!strncmp(full, folder, length) && full[length] == '/') {
        char *to = event + sprintf(event, "%s ", call);
        for (char *from = full + length + 1; *from; from++)
            if (*from < '0' || *from > '9')
                *to++ = *from == '\n' ? '?' : *from;
            else if (to[-1] != '#')
                *to++ = '#';
        *to = 0;
        if (!*target && (file = REAL(open)(record, O_WRONLY | O_CREAT | O_APPEND, 0666)) >= 0) {
            *to = '\n';
            if (REAL(write)(file, event, to - event + 1) >= 0)
                REAL(close)(file);
        } else if (*target && !strcmp(event, target) && ++seen == atoi(getenv("PROVE_NUMBER")))
            is_hit = REAL(open)(record, O_WRONLY | O_CREAT | O_EXCL, 0666) >= 0;
    }
    busy = 0;
    return is_hit;
}

static void end(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

#define MODE va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, int); va_end(rest);
#define OPEN(name) int name(const char *path, int flags, ...) { MODE \
    if (flags & (O_WRONLY | O_RDWR) && hit("open", AT_FDCWD, path)) end(); return REAL(name)(path, flags, mode); }
#define OPENAT(name) int name(int at, const char *path, int flags, ...) { MODE \
    if (flags & (O_WRONLY | O_RDWR) && hit("open", at, path)) end(); return REAL(name)(at, path, flags, mode); }
#define FOPEN(name) FILE *name(const char *path, const char *mode) { \
    if (strpbrk(mode, "wa+") && hit("open", AT_FDCWD, path)) end(); return REAL(name)(path, mode); }
/* A kill in a write leaves half of it. */
#define WRITE(name, parameters, half, all) ssize_t name parameters { \
    if (hit("write", fd, 0)) { if (REAL(name) half) end(); end(); } return REAL(name) all; }
#define ON_FD(name, parameters, all) int name parameters { if (hit(#name, fd, 0)) end(); return REAL(name) all; }
#define ON_PATH(name, at, parameters, all) int name parameters { \
    if (hit(#name, at, path)) end(); return REAL(name) all; }
OPEN(open) OPEN(open64) OPENAT(openat) OPENAT(openat64) FOPEN(fopen) FOPEN(fopen64)
WRITE(write, (int fd, const void *data, size_t size), (fd, data, size / 2), (fd, data, size))
WRITE(pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size / 2, at), (fd, data, size, at))
WRITE(pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size / 2, at), (fd, data, size, at))
WRITE(writev, (int fd, const struct iovec *parts, int number), (fd, parts, number / 2), (fd, parts, number))
WRITE(sendfile, (int fd, int from, off_t *at, size_t size), (fd, from, at, size / 2), (fd, from, at, size))
ON_FD(close, (int fd), (fd))
ON_FD(fsync, (int fd), (fd))
ON_FD(ftruncate, (int fd, off_t size), (fd, size))
ON_PATH(rename, AT_FDCWD, (const char *path, const char *to), (path, to))
ON_PATH(renameat, at, (int at, const char *path, int to_at, const char *to), (at, path, to_at, to))
ON_PATH(unlink, AT_FDCWD, (const char *path), (path))
ON_PATH(unlinkat, at, (int at, const char *path, int flags), (at, path, flags))
ON_PATH(mkdir, AT_FDCWD, (const char *path, mode_t mode), (path, mode))
ON_PATH(rmdir, AT_FDCWD, (const char *path), (path))
"""
"""A library that kills the process at a call of its own, which no other process could do at the same place twice."""


def build_injection(folder: Path) -> Path:
    """Compile the library, and return its path.

    Raises:
        TaskFailed: This machine has no C compiler, or its library is another one.
    """
    library = folder / "injection.so"
    if not (compiler := shutil.which("cc")):
        raise TaskFailed("found no C compiler, whose name is cc, for a library that counts the program's calls")
    words = [compiler, "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", str(library), "-ldl"]
    done = subprocess.run(words, input=_INJECTION, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TaskFailed(f"cc cannot compile a library that counts the program's calls: {done.stderr[:200]}")
    return library


def file_events(record: Path) -> list[tuple[str, int]]:
    """Return the kinds of calls and paths of the saves in a record, and which of each is in the middle of the run."""
    lines = record.read_text(errors="replace").splitlines() if record.exists() else []
    counts = Counter(each for each in lines if not LOGS.search(each.partition(" ")[2]))
    return [(event, (count + 1) // 2) for event, count in counts.items()][:MAX_FILE_EVENTS]


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A fault of the plan."""

    kind: FaultKind
    fraction: float
    """Of the training, at which it happens."""
    target: str
    """The replica, or `all`."""
    draw: int
    """Chooses what is left open, such as the bit."""


def plan(seed: int, job: CustomJob) -> list[Planned]:
    """Return all faults, in their order."""
    others = [each.name for each in job.replicas if not each.is_primary]
    planned = []
    for kind in FaultKind:
        draw = random.Random(f"{seed}-{kind}")  # noqa: S311 - a plan that can be repeated
        fraction = draw.uniform(*_FRACTIONS.get(kind, _MIDDLE))
        target = draw.choice(others) if kind is FaultKind.ONE_REPLICA and others else ALL
        planned.append(Planned(kind=kind, fraction=fraction, target=target, draw=draw.randrange(2**30)))
    return planned
