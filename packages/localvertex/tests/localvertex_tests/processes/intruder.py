"""Try to get through the mask of steps; return each attempt with its result."""

import ctypes
import glob
import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PLANTED = "planted"


def attempts(target: dict[str, Any]) -> dict[str, object]:
    """Make all attempts.

    Args:
        target: `home`, `work_dir` with the run `other`, `key` that a variable names, `agent`, `port` and `pid`.
    """
    found: dict[str, object] = {}
    home, work = Path(target["home"]), Path(target["work_dir"])

    def attempt(name: str, function: Callable[[], object]) -> None:
        try:
            found[name] = function()
        except OSError as error:
            found[name] = type(error).__name__

    def shell(command: str) -> bool:
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
        return _PLANTED in done.stdout

    def written(path: Path) -> str:
        path.write_text("intruder")
        return "written"

    def connected(address: str | tuple[str, int]) -> str:
        with socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET) as client:
            client.settimeout(2)
            client.connect(address)
        return "connected"

    def memory() -> bool:
        attached = ctypes.CDLL(None, use_errno=True).ptrace(16, target["pid"], 0, 0)  # PTRACE_ATTACH
        if attached == 0:
            ctypes.CDLL(None).ptrace(17, target["pid"], 0, 0)
        return attached == 0

    def disks() -> list[str]:
        return [each for each in glob.glob("/dev/*") if Path(each).is_block_device()]

    for name in target["secrets"]:
        attempt(f"read {name}", lambda name=name: Path(home, name).read_text())  # type: ignore[misc]
        attempt(f"list {name}", lambda name=name: sorted(os.listdir(home / name)))  # type: ignore[misc]
    attempt("key of a variable", lambda: Path(target["key"]).read_text())
    attempt("token", lambda: (work / "api" / "token").read_text())
    attempt("records of the server", lambda: sorted(os.listdir(work / "api")))
    attempt("record of another run", lambda: (work / "other" / "run.json").read_text())
    attempt("log of another run", lambda: (work / "other" / "step" / "log.txt").read_text())
    attempt("cache", lambda: sorted(os.listdir(work / ".localvertex" / "cache")))
    attempt("hard link", lambda: os.link(home / ".netrc", home / "linked"))
    attempt("file elsewhere", lambda: os.rename(home / ".netrc", home / "moved"))
    attempt("folder elsewhere", lambda: os.rename(home / ".config", home / "moved"))
    attempt("uncovered", lambda: shell(f"umount {home}/.ssh; cat {home}/.ssh/id_rsa"))
    inner = f"umount {home}/.ssh {work}; cat {home}/.ssh/id_rsa {work}/api/token"
    attempt("uncovered in a new namespace", lambda: shell(f"unshare -Urm sh -c '{inner}'"))
    attempt("root of process 1", lambda: shell(f"cat /proc/1/root{home}/.ssh/id_rsa"))
    attempt("namespace of process 1", lambda: shell(f"nsenter -t 1 -m cat {home}/.ssh/id_rsa"))
    attempt("through descriptors", lambda: shell(f"cat /proc/*/root{home}/.ssh/id_rsa /proc/*/cwd/../api/token"))
    attempt("process", lambda: os.kill(target["pid"], signal.SIGUSR1))
    attempt("variables of a process", lambda: Path(f"/proc/{target['pid']}/environ").read_text())
    attempt("memory of a process", memory)
    attempt("agent", lambda: connected(target["agent"]))
    attempt("disks", disks)
    attempt("new device", lambda: os.mknod(home / "disk", 0o60600, os.makedev(7, 0)))
    # Opened only: what is written there would change this machine.
    attempt(
        "settings of the kernel", lambda: os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)) or "opened"
    )
    attempt("devices of the kernel", lambda: os.close(os.open("/sys/kernel/uevent_helper", os.O_WRONLY)) or "opened")
    attempt("passwords of the system", lambda: bool(Path("/etc/shadow").read_text().strip()))
    attempt("new key", lambda: written(home / ".ssh" / "authorized_keys"))
    attempt("new token", lambda: written(work / "api" / "token"))
    attempt("new record of another run", lambda: written(work / "other" / "run.json"))
    attempt("own record", lambda: written(work / target["run"] / "run.json"))
    attempt("model", lambda: written(work / "models" / "m" / "1" / "files" / "model.txt"))
    # What every step has.
    attempt("own model", lambda: (work / "models" / "m" / "1" / "files" / "model.txt").read_text())
    attempt("cache of the home folder", lambda: written(home / ".cache" / "mine"))
    attempt("shared", lambda: written(work / "training" / "checkpoint"))
    attempt("new folder", lambda: os.makedirs(work / "mine" / "deep", exist_ok=True))
    attempt("new file", lambda: written(work / "mine" / "deep" / "file"))
    attempt("own folder", lambda: written(Path("own.txt")))
    attempt("this machine", lambda: connected(("127.0.0.1", target["port"])))
    attempt("shared memory", lambda: written(Path("/dev/shm", f"intruder-{os.getpid()}")))
    attempt("remove", lambda: os.unlink(Path("/dev/shm", f"intruder-{os.getpid()}")))
    attempt("terminal", lambda: all(map(os.close, os.openpty())) or "opened")
    return found


if __name__ == "__main__":
    import sys

    Path(sys.argv[1]).write_text(json.dumps(attempts(json.loads(sys.argv[2]))))
