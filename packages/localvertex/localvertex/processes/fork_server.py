"""Forks Python steps from a process that has imported kfp's executor, each into the mask that was made for it, if any.

With `-S`, it has imported nothing of kfp's, and forks the supervisors of commands, which start their own programs.

Its environment is localvertex's own, whose code runs without a mask anyway, and its variables are those that Python
reads when it starts. It confirms its imports with one byte. A request on its socket is one byte with descriptors, of
which one is a file with JSON: this process does not read it, so that no step finds another step's request in its
memory. It forks a process that enters the namespaces of a mask, and gives up what bubblewrap gives up there. That
process forks a supervisor in the mask, which compares itself with a process that bubblewrap started. Only if nothing
differs, the answer is the id of the process above the supervisor, otherwise 0. When the client permits it with a byte,
the supervisor forks the step, which runs `python -m kfp.dsl.executor_main` with the imports already done. The end of
the socket ends the server.

Standard library only, and no import of this package: a step finds its modules as in a new interpreter.
"""

import os
import runpy
import sys

_MODULE = "kfp.dsl.executor_main"

if not sys.flags.no_site:
    # The executor defines its arguments before it imports the code of a step, and with the first argparse imports more.
    runpy.run_module(_MODULE, run_name="imports")["argparse"].ArgumentParser().add_argument("--first")
_OF_STEPS = dict(sys.modules)

# What follows is not in `sys.modules` of a step.
import _ctypes  # noqa: E402, F401 - loaded once here, and not in each process
import _socket  # noqa: E402
import _thread  # noqa: E402
import atexit  # noqa: E402
import gc  # noqa: E402
import json  # noqa: E402
import resource  # noqa: E402, F401 - once here, and not in each supervisor
from _frozen_importlib_external import ExtensionFileLoader, SourceFileLoader  # noqa: E402
from _weakref import ref  # noqa: E402

TYPE_CHECKING = False  # typing's own would be imported at each start
if TYPE_CHECKING:
    from typing import Any

_DONE = b"\1"

_REQUEST, _LOG, _LIFELINE, _HOLDER, _NO_INPUT, _PERMISSION, _NUM_FIXED = range(7)
"""Descriptors of a request by their place; up to four namespaces follow, and what the supervisor only keeps open."""

_FINDERS = [*sys.path_importer_cache.values()]
"""A step forgets them; to free what they have read would copy the memory."""

_MAX_FDS = 16

_HARMLESS = frozenset(
    "_asyncio _bisect _blake2 _bz2 _contextvars _csv _datetime _decimal _elementtree _hashlib _heapq _json _lzma _md5 "
    "_opcode _pickle _posixsubprocess _queue _random _sha1 _sha2 _sha256 _sha3 _sha512 _socket _ssl _statistics "
    "_struct _typing _uuid _zoneinfo array binascii cmath fcntl grp math pyexpat resource select unicodedata "
    "zlib".split()
)
"""Python's own libraries in C whose objects only free memory at their end, or have a finalizer that can be seen."""

_FUNCTION = type(runpy.run_module)

_INTERPRETERS = ("_xxsubinterpreters", "_interpreters")

supervisor = type(sys)("supervisor")
supervisor.__file__ = os.path.abspath(f"{__file__}/../supervisor.py")
SourceFileLoader("supervisor", supervisor.__file__).exec_module(supervisor)
signal, linux = supervisor.signal, supervisor.linux


def _receive(connection: "_socket.socket") -> "list[int]":
    """Return the descriptors of the next request; none when the client has closed the connection."""
    ancillary = connection.recvmsg(1, _socket.CMSG_SPACE(4 * _MAX_FDS))[1]
    data = b"".join(each for _, _, each in ancillary)
    return [int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, len(data) - 3, 4)]


def _serve(connection: "_socket.socket") -> "Any":
    """Answer requests; return only in the process of each step, with its request."""
    # Processes that have ended leave nothing.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # The collection of garbage in a step does not touch these objects, so that their memory stays shared.
    gc.freeze()
    connection.sendall(_DONE)
    while True:
        fds = _receive(connection)
        if not fds:
            os._exit(0)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            # It is closed with all others, so that its end causes no warning in the log of a step.
            connection.detach()
            with open(fds[_REQUEST], "rb", closefd=False) as file:
                request = json.load(file)
            _enter_and_supervise(request, fds, writer)
            return request
        for fd in (writer, *fds):
            os.close(fd)
        is_done = os.read(reader, 1) == _DONE
        os.close(reader)
        connection.sendall((child if is_done else 0).to_bytes(4, "big"))


def _enter_and_supervise(request: "Any", fds: "list[int]", answer: int) -> None:
    """Enter the mask and fork the supervisor in it; return only in the process of the step."""
    num_namespaces = request["num_namespaces"]
    namespaces = fds[_NUM_FIXED : _NUM_FIXED + num_namespaces]
    if namespaces and not linux.enter(namespaces, request["rights"]):
        os._exit(1)
    # This process stays in its own process table; what it forks is in the mask's.
    if os.fork():
        _close_all_but([])
        # The parent of the supervisor, which would be a child of the machine's first process without it.
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            pass  # It has ended, and its end is not reported to a process that ignores SIGCHLD.
        os._exit(0)
    if linux.rights("self") != request["rights"]:
        os._exit(1)
    os.setsid()
    os.chdir(request["folder"])
    for target, at in enumerate((_NO_INPUT, _LOG, _LOG)):
        os.dup2(fds[at], target)
    lifeline, permission = fds[_LIFELINE], fds[_PERMISSION]
    _close_all_but([lifeline, fds[_HOLDER], permission, answer, *fds[_NUM_FIXED + num_namespaces :]])
    supervisor.skip_process_ids(request["num_skipped_ids"])
    wakeup = supervisor.prepare()
    try:
        os.write(answer, _DONE)
    except BrokenPipeError:
        os._exit(1)
    os.close(answer)
    # A client that has not received the answer starts the step itself.
    if os.read(permission, 1) != _DONE:
        os._exit(1)
    os.close(permission)
    child = supervisor.fork_command(lifeline)
    if child:
        supervisor.supervise_to_end(child, lifeline, request["grace_seconds"], wakeup)
    _close_all_but([])
    if command := request["command"]:
        os.environ.clear()
        os.environ.update(request["env"])
        supervisor.execute(command)


def _close_all_but(kept: "list[int]") -> None:
    """Close all descriptors but the three standard ones and these; only a new program would do it by itself."""
    first = 3
    for fd in (*sorted(kept), os.sysconf("SC_OPEN_MAX")):
        os.closerange(first, fd)
        first = fd + 1


def _become(request: "Any") -> None:
    """Make this process a new interpreter with the folder, variables and arguments of its step."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    first, own = os.environ["TMPDIR"], request["env"]["TMPDIR"]
    os.environ.clear()
    os.environ.update(request["env"])
    # This process has the environment of the first step; the step's own is in another folder.
    for name in ("executable", "prefix", "exec_prefix"):
        setattr(sys, name, getattr(sys, name).replace(first, own))
    sys.path[:] = [each.replace(first, own) for each in sys.path]
    site = sys.modules["site"]
    vars(site)["PREFIXES"] = [each.replace(first, own) for each in site.PREFIXES]
    # What the shell of the command does.
    folder = os.path.join(os.environ["TMPDIR"], f"tmp.{os.urandom(5).hex()}")
    os.mkdir(folder, 0o700)
    path = os.path.join(folder, "ephemeral_component.py")
    with open(path, "wb") as file:
        file.write(os.fsencode(request["source"]))
    sys.argv = ["-m", "--component_module_path", path, *request["arguments"]]
    sys.orig_argv = ["python3", "-m", _MODULE, *sys.argv[1:]]
    sys.path[:0] = [] if sys.flags.safe_path else [os.getcwd()]
    sys.path_importer_cache.clear()
    for name in sys.modules.keys() - _OF_STEPS:
        del sys.modules[name]
    main = type(sys)("__main__")
    vars(main)["__builtins__"], vars(main)["__annotations__"] = __builtins__, {}
    sys.modules["__main__"] = main


def _end(num_frozen: int) -> None:
    """End the process of a step that has succeeded without clearing what it shares with its parent.

    To clear it copies the memory, which takes longer than the rest of a small step. This does what an interpreter does
    first at its end, and returns where it would do more than free memory: where a thread is left, or anything that does
    something at its own end.
    """
    modules = [each for name, each in sys.modules.items() if _OF_STEPS.get(name) is not each]
    if _thread._count() or sys.gettrace() or sys.getprofile() or any(map(_is_foreign, modules)):  # noqa: SLF001
        return
    sys.modules["threading"]._shutdown()  # noqa: SLF001 - the interpreter's first call
    atexit._run_exitfuncs()  # noqa: SLF001 - and its second
    if gc.get_freeze_count() > num_frozen or any(map(_acts_at_its_end, gc.get_objects())):
        return
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _is_foreign(module: "Any") -> bool:
    """Return whether a module is a library in C that may do something when the process ends, or that is not known."""
    loader, name = vars(module).get("__loader__"), vars(module).get("__name__")
    return (type(loader) is ExtensionFileLoader and name not in _HARMLESS) or name in _INTERPRETERS


def _acts_at_its_end(each: object) -> bool:
    """Return whether an object that the parent does not have, or one of its class, does something at its end."""
    kind = type(each)
    if issubclass(kind, ref):
        # Of the parent's modules, `logging` and `abc` have such references, which only forget what has ended.
        callback = each.__callback__  # type: ignore[attr-defined]
        is_known = isinstance(callback, _FUNCTION) and callback.__module__ in _OF_STEPS
        return not (callback is None or is_known or type(getattr(callback, "__self__", None)) is ref)
    return hasattr(kind, "__del__") or (issubclass(kind, type) and hasattr(each, "__del__"))


def main(connection: int) -> int:
    """Answer the requests of a socket, and run the step in the process of each; return the step's exit code."""
    _become(_serve(_socket.socket(fileno=connection)))
    num_frozen = gc.get_freeze_count()
    try:
        runpy._run_module_as_main(_MODULE)  # type: ignore[attr-defined] # noqa: SLF001 - what `python -m` calls
        try:
            _end(num_frozen)
        except BaseException:  # noqa: S110 - a signal may arrive, and what `atexit` calls is the program's
            pass
    except SystemExit:
        raise
    except BaseException as error:
        # As in a new interpreter, without the frame of this function.
        trace = error.__traceback__ and error.__traceback__.tb_next
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error.with_traceback(trace), trace
        sys.excepthook(type(error), error, trace)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    finally:
        # At its end, the interpreter looks at all objects.
        gc.unfreeze()
    return 0
