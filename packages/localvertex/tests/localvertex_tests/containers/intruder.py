"""Try to leave a container command's sandbox; write each attempt and its result, as JSON, to the first argument."""

import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path


def attempt(name: str, function: Callable[[], object]) -> None:
    """Note the value of an attempt, or the name of its error."""
    try:
        found[name] = function()
    except OSError as error:
        found[name] = type(error).__name__


def connect(address: str | tuple[str, int]) -> str:
    """Connect to an address of the internet family, or to a socket of a path."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with contextlib.closing(socket.socket(family)) as client:
        client.settimeout(2)
        client.connect(address)
    return "connected"


def write(path: str | Path) -> str:
    """Create a file."""
    Path(path).write_text("intruder")
    return "written"


found: dict[str, object] = {}
target = json.loads(sys.argv[2])
home = os.path.expanduser("~")
attempt("ssh key", lambda: Path(home, ".ssh", "id_rsa").read_text())
attempt("gcloud", lambda: Path(home, ".config", "gcloud", "credentials.db").read_text())
attempt("home", lambda: sorted(name for name in os.listdir(home) if not name.startswith(".pyenv")))
attempt("other run", lambda: Path(target["work_dir"], "other", "secret.txt").read_text())
attempt("cache", lambda: write(Path(target["work_dir"], ".localvertex", "cache", "poison")))
attempt("record", lambda: write(Path(target["work_dir"], target["run"], "run.json.new")))
attempt("outside", lambda: write(target["outside"]))
attempt("etc", lambda: write("/etc/intruder"))
attempt("usr", lambda: write("/usr/intruder"))
attempt("packages", lambda: write(Path(target["packages"], "intruder.py")))
attempt("metadata", lambda: connect(("169.254.169.254", 80)))
attempt("this machine", lambda: connect(("127.0.0.1", target["port"])))
attempt("agent", lambda: connect(target["agent"]))
attempt("process", lambda: os.kill(target["pid"], signal.SIGUSR1))
attempt("variables of others", lambda: len(Path("/proc", str(target["pid"]), "environ").read_bytes()) > 0)
with socket.create_server(("127.0.0.1", 0)) as server:
    attempt("own loopback", lambda: connect(server.getsockname()))
found["variables"] = [name for name in target["variables"] if name in os.environ]
found["number of processes"] = len([name for name in os.listdir("/proc") if name.isdigit()])
attempt("own folder", lambda: write("own.txt"))
attempt("temporary", lambda: write(target["temporary"]))
attempt("temporary of the step", lambda: write(Path(os.environ["TMPDIR"], "x")))
Path(sys.argv[1]).parent.mkdir(parents=True, exist_ok=True)
Path(sys.argv[1]).write_text(json.dumps(found))
