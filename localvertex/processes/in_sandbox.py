"""The first program in the sandbox: take the variables of the step, let signals end it, and become its command.

Run as `python -I -S in_sandbox.py VARIABLES COMMAND...`. VARIABLES is a JSON file: outside of the sandbox, programs of
this machine start with none of the step's variables, of which some (LD_PRELOAD) load its code.

Standard library only, no import of this package: it may not be found in the sandbox.
"""

import json
import os
import signal
import sys


def main() -> None:
    """Become the command."""
    with open(sys.argv[1]) as file:
        env, command = json.load(file), sys.argv[2:]
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
