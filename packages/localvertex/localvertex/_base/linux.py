"""All that only Linux offers; LOCALVERTEX_PORTABLE=1 makes these packages behave there as on any other system.

| function | on Linux | elsewhere |
|---|---|---|
| `end_with_parent` | a command ends with its supervisor | it outlives a supervisor that is killed |
| `root_of` | `prove` fills a small disk | it does not judge a full one |
| `INJECTION` | `prove` kills at a call of the program itself | it does not judge `at-every-file-event` |
| `adopt_orphans`, `descendants` | a step's processes end with it | those that left its process group do not |
| `tree_bytes` | the peak memory of all processes of a step together | of the largest one |
| `is_frozen` | a job without progress names its frozen replicas, after 2 minutes | it names none, after 10 minutes |
| `tcp_tables` | the user at the other end of a connection | unknown: only the token protects the endpoint |
| `Inotify`, `reports_all_changes` | lists look only at what has changed | lists look at each file |
| `Inotify` | `prove` makes the files that a kill in a save leaves | it makes none |
| `rights`, `namespaces`, `enter` | Python steps are forked behind their mask | each starts its own Python |
| `bind_to_loopback` | only this machine reaches a job's ports | a warning: other machines may |
| `bubblewrap` | a sandbox for container commands, and the mask of steps | an engine or --allow-host-commands; none |
| `has_no_screen` | no browser takes the terminal | a browser is opened |
| `cpu_name`, `num_cores` | the model, and the cores of this process | the architecture, and all cores |
| `container_bytes` | the memory that a container has left | the memory of the machine |

The supervisor of each command loads this file by its path. Hence it imports nothing else of ours, and what takes long
to import only where it is called.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import ExitStack

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _SIGKILL = 1, 36, 9
"""From linux/prctl.h and signal.h."""

_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _RAISE, _CLEAR_ALL = 24, 38, 47, 2, 4
_CAPABILITIES = (0x20080522, 0)
"""Version 3 and this process, from linux/capability.h."""

_NS_GET_USERNS = 0xB701
"""From linux/nsfs.h."""

_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")
_RIGHTS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")
"""From /proc/PID/status, see proc(5)."""

_PIDFD_GETFD = 438
"""Number of the system call that copies a file descriptor of a process, the same on all architectures; Linux 5.6."""

_LOCAL_FILE_SYSTEMS = (0xEF53, 0x58465342, 0x9123683E, 0xF2F52010, 0x2FC12FC1, 0x01021994, 0x794C7630)
"""ext2 to ext4, XFS, Btrfs, F2FS, ZFS, tmpfs and overlayfs, from linux/magic.h and statfs(2)."""

KERNEL_SETTINGS = ("/sys", "/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus")
"""Folders and files through which root changes the machine, not only its own processes."""

OWN_STATUS = "/proc/self/status"

_TCP_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")

_CGROUP = "/sys/fs/cgroup"
_CGROUPS = (
    ("memory.max", "memory.current", "memory.stat"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
)
"""Limit, usage and statistics of a container, in versions 2 and 1 of Linux control groups."""


def is_used() -> bool:
    """Return whether this is Linux, and its own calls are not switched off."""
    return sys.platform == "linux" and not os.environ.get("LOCALVERTEX_PORTABLE")


def end_with_parent() -> None:
    """Let the kernel kill this process when its parent ends."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parents end."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if is_used():
        _call("prctl", option, value, 0, 0, 0)


def _call(name: str, *arguments: int | bytes) -> bool:
    """Call a function of the C library; return whether it succeeded."""
    # Importing `ctypes` takes a third of the time in which a supervisor starts.
    import _ctypes

    return bool(_ctypes.call_function(_ctypes.dlsym(_ctypes.dlopen("", 0), name), arguments) == 0)


def rights(process: int | str) -> dict[str, str]:
    """Return the namespaces of a process, and what it may do in them besides what its user may.

    Raises:
        OSError: It has ended, or is another user's.
    """
    lines = [line.partition(":") for line in _text(f"/proc/{process}/status").splitlines()]
    found = {name: value.strip() for name, _, value in lines if name in _RIGHTS}
    return found | {name: os.readlink(f"/proc/{process}/ns/{name}") for name in _NAMESPACES}


def namespaces(process: int, opened: "ExitStack") -> list[int]:
    """Open the namespaces of a process in which this one is not, in the order in which they can be entered.

    Args:
        process: The process.
        opened: Closes them.

    Raises:
        OSError: It has ended, or is another user's.
    """
    import fcntl

    every = list[int]()
    for name in ("mnt", "pid", "user"):
        every.append(os.open(f"/proc/{process}/ns/{name}", os.O_RDONLY))
        opened.callback(os.close, every[-1])
    # bubblewrap makes a second user namespace, in which the user has their own name again.
    every.insert(0, fcntl.ioctl(every[0], _NS_GET_USERNS))
    opened.callback(os.close, every[0])
    inodes = [os.stat("/proc/self/ns/user").st_ino, *(os.fstat(each).st_ino for each in every)]
    return [each for at, each in enumerate(every, 1) if inodes[at] not in inodes[:at]]


def enter(namespaces: list[int], wanted: dict[str, str]) -> bool:
    """Enter namespaces with this process, which gives up all `rights` that are not wanted; return whether it did."""
    bounding, ambient, *sets = (int(wanted[f"Cap{each}"], 16) for each in ("Bnd", "Amb", "Eff", "Prm", "Inh"))
    words = [each >> shift & 0xFFFFFFFF for shift in (0, 32) for each in sets]
    version, content = (b"".join(each.to_bytes(4, sys.byteorder) for each in all_) for all_ in (_CAPABILITIES, words))
    every = range(int(_text("/proc/sys/kernel/cap_last_cap")) + 1)
    return (
        all(_call("setns", each, 0) for each in namespaces)
        # Only a process with capabilities can reduce its bounding set.
        and all(_call("prctl", _PR_CAPBSET_DROP, each, 0, 0, 0) for each in every if not bounding >> each & 1)
        and _call("prctl", _PR_CAP_AMBIENT, _CLEAR_ALL, 0, 0, 0)
        and _call("capset", version, content)
        and all(_call("prctl", _PR_CAP_AMBIENT, _RAISE, each, 0, 0) for each in every if ambient >> each & 1)
        and _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    )


def descendants(parent: int) -> list[int]:
    """Return the process ids of all descendants, including those in other process groups."""
    children = map(int, _text(f"/proc/{parent}/task/{parent}/children").split())
    return [pid for child in children for pid in (child, *descendants(child))]


def tree_bytes(parent: int) -> int:
    """Return the memory of all descendants together, what they share counted once; 0 for one alone, and if unknown."""
    pids = descendants(parent)
    # The kernel knows the peak of one process.
    return sum(map(_proportional_bytes, pids)) if len(pids) > 1 else 0


def _proportional_bytes(pid: int) -> int:
    words = _text(f"/proc/{pid}/smaps_rollup").split()
    return int(words[words.index("Pss:") + 1]) * 1024 if "Pss:" in words else 0


def largest_bytes() -> int:
    """Return the peak memory of the largest descendant that has ended."""
    # Importing it takes half a millisecond, which a command that has ended does not wait for.
    import resource

    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def root_of(pid: int) -> str:
    """Return the root folder of a process, with what is mounted for it alone."""
    return f"/proc/{pid}/root"


def is_frozen(parent: int) -> bool:
    """Return whether a descendant is stopped; False if it is not known."""
    # The state follows the name of the program, see proc(5).
    found = (_text(f"/proc/{pid}/stat").rpartition(")")[2].split() for pid in descendants(parent))
    return any(fields[0] in "Tt" for fields in found if fields)


def tcp_tables() -> list[str]:
    """Return the files with the kernel's tables of TCP sockets; empty if there are none."""
    return [path for path in _TCP_TABLES if is_used() and os.path.exists(path)]


class Inotify:
    """What the kernel reports of watched folders, see inotify(7); each change is there when the call that made it ends.

    Raises:
        OSError: This user has too many, or Linux's calls are not used.
    """

    MODIFY, ATTRIB, CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x2, 0x4, 0x8, 0x40, 0x80, 0x100, 0x200
    DELETE_SELF, MOVE_SELF, UNMOUNT, OVERFLOW, IGNORED = 0x400, 0x800, 0x2000, 0x4000, 0x8000
    ONLY_FOLDER, NO_LINK, KEEP_MASK, IS_FOLDER = 0x1000000, 0x2000000, 0x20000000, 0x40000000

    def __init__(self) -> None:
        import ctypes

        self._libc = ctypes.CDLL(None)
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC) if is_used() else -1
        if self._fd < 0:
            raise OSError("the kernel cannot watch folders for this process")

    def add(self, folder: str, mask: int) -> int:
        """Watch a folder; return the number in its reports, which is negative if it cannot be watched."""
        return int(self._libc.inotify_add_watch(self._fd, os.fsencode(folder), mask | self.KEEP_MASK))

    def remove(self, number: int) -> None:
        """Watch a folder no longer."""
        self._libc.inotify_rm_watch(self._fd, number)

    def events(self) -> "list[tuple[int, int, int, str]]":
        """Return what has happened since the last call: number, mask, cookie, and the name in the folder or nothing."""
        data, found, at = b"", [], 0
        try:
            while True:
                data += os.read(self._fd, 1 << 16)
        except OSError:  # there are no more
            pass
        while at < len(data):
            number, mask, cookie, length = (
                int.from_bytes(data[at + 4 * each :][:4], sys.byteorder) for each in range(4)
            )
            found.append((number, mask, cookie, os.fsdecode(data[at + 16 :][:length].rstrip(b"\0"))))
            at += 16 + length
        return found

    def close(self) -> None:
        """Watch nothing any more."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    __del__ = close


def max_watches() -> int:
    """Return how many folders all programs of this user may watch; 0 if it is not known."""
    return int(_text("/proc/sys/fs/inotify/max_user_watches") or 0)


def reports_all_changes(folder: str) -> bool:
    """Return whether all changes in a folder pass this kernel: those in network file systems do not."""
    import ctypes

    found = ctypes.create_string_buffer(256)
    # The type is the first field, see statfs(2).
    is_known = is_used() and ctypes.CDLL(None).statfs(os.fsencode(folder), found) == 0
    return is_known and ctypes.c_long.from_buffer(found).value & 0xFFFFFFFF in _LOCAL_FILE_SYSTEMS


def bind_to_loopback(inode: int) -> bool:
    """Bind a listening socket of any of the user's processes to the loopback device; False if no process has it.

    Raises:
        OSError: The system does not permit it.
    """
    import ctypes
    import socket
    from glob import iglob

    for link in iglob("/proc/[0-9]*/fd/*"):
        try:
            if os.readlink(link) != f"socket:[{inode}]":
                continue
            process = os.pidfd_open(int(link.split("/")[2]))
        except (FileNotFoundError, PermissionError, ProcessLookupError):  # it has ended, or is another user's
            continue
        copy = ctypes.CDLL(None, use_errno=True).syscall(_PIDFD_GETFD, process, int(link.split("/")[4]), 0)
        os.close(process)
        if copy < 0:
            raise OSError(number := ctypes.get_errno(), os.strerror(number))
        with socket.socket(fileno=copy) as same:
            same.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
        return True
    return False


def bubblewrap() -> str | None:
    """Return the path of bubblewrap's program; None where it is not installed."""
    import shutil

    return shutil.which("bwrap") if is_used() else None


def has_no_screen() -> bool:
    """Return whether all browsers of this machine would take the terminal, which no variable changes."""
    return sys.platform == "linux" and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))


def cpu_name() -> str:
    """Return the model of this machine's CPU; empty if it is not known."""
    import re

    found = re.search(r"^model name\s*:\s*(.+)$", _text("/proc/cpuinfo"), re.MULTILINE)
    return found[1].strip() if found else ""


def num_cores() -> int:
    """Return how many cores this process may use; 0 if it is not known."""
    return len(os.sched_getaffinity(0)) if is_used() else 0


def container_bytes() -> int:
    """Return the memory that this process's container has left; the largest number without a container or a limit.

    Source: the Linux kernel's cgroup-v2 and cgroup-v1 memory documentation.
    """
    found = [sys.maxsize]
    for names in _CGROUPS:
        limit, usage, statistics = (_text(f"{_CGROUP}/{name}") for name in names)
        try:
            left = int(limit) - int(usage)
        except ValueError:
            # There is no such file, or it contains "max": there is no limit.
            continue
        # Cached file pages count as used, but the kernel reclaims them before it refuses memory.
        found.append(max(0, left + _inactive_file_bytes(statistics)))
    return min(found)


def _inactive_file_bytes(statistics: str) -> int:
    try:
        values = {name: int(value) for name, value in map(str.split, statistics.splitlines())}
    except ValueError:
        return 0
    return values.get("total_inactive_file", values.get("inactive_file", 0))


def _text(path: str) -> str:
    """Return the text of a file of the kernel; empty if it cannot be read, and where Linux's calls are not used."""
    try:
        with open(path if is_used() else os.devnull, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


INJECTION = r"""
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
