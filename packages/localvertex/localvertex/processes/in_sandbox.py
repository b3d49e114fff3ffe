"""The first program in the sandbox: take the variables of the step, let signals end it, and become its command.

Run as `python -I -S in_sandbox.py COMMAND...`. The step's variables have a prefix, so that outside of the sandbox none
of them changes what a program of this machine does, as LD_PRELOAD would. A file with them would outlive SIGKILL.

Standard library only, no import of this package: it may not be found in the sandbox.
"""

import os
import signal
import sys

_PREFIX = "LOCALVERTEX_VARIABLE_"


def carried(env: dict[str, str]) -> dict[str, str]:
    """Return the variables that carry others to the sandbox, with those that the programs on the way need."""
    needed = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    return needed | {f"{_PREFIX}{name}": text for name, text in env.items()}


def main() -> None:
    """Become the command."""
    env = {name.removeprefix(_PREFIX): text for name, text in os.environ.items() if name.startswith(_PREFIX)}
    command = sys.argv[1:]
    # bubblewrap's own processes ignore these, so that the command has its whole grace time.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(command[0], command, env)  # noqa: S606 - a list, without a shell
    except (OSError, ValueError) as error:
        os.write(2, f"{command[0]}: {getattr(error, 'strerror', None) or error}\n".encode())
    os._exit(127)


if __name__ == "__main__":
    main()
