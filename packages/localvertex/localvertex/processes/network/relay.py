"""The first program of a serving container in a sandbox without network: passes connections on to its port.

Run as `python -I -S relay.py SOCKET PORT COMMAND...`. The sandbox has a loopback interface of its own, so that the
container listens at the port of its spec. This program listens at a Unix socket in a folder that both sides see.

Standard library only, no import of this package: it may not be found in the sandbox.
"""

import os
import signal
import socket
import sys
import threading

_CHUNK = 65_536


def main() -> None:
    """Start the command, and pass connections on until it ends."""
    path, port, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    child = os.fork()
    if child == 0:
        listener.close()
        try:
            os.execvp(command[0], command)  # noqa: S606 - a list, without a shell
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(127)
    # The command gets them itself, and has its whole grace time.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_accept, args=(listener, port), daemon=True).start()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _accept(listener: socket.socket, port: int) -> None:
    while True:
        outer, _ = listener.accept()
        threading.Thread(target=_connect, args=(outer, port), daemon=True).start()


def _connect(outer: socket.socket, port: int) -> None:
    with outer:
        try:
            inner = socket.create_connection(("127.0.0.1", port))
        except OSError:
            return
        with inner:
            back = threading.Thread(target=_pass, args=(inner, outer), daemon=True)
            back.start()
            _pass(outer, inner)
            back.join()


def _pass(source: socket.socket, target: socket.socket) -> None:
    """Forward all bytes, and then the end of the stream."""
    try:
        while data := source.recv(_CHUNK):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


if __name__ == "__main__":
    main()
