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
_NAMES = {name: frozenset(vars(each)) for name, each in _OF_STEPS.items()}

# What follows is not in `sys.modules` of a step.
import _ctypes  # noqa: E402, F401 - loaded once here, and not in each process
import _io  # noqa: E402
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

_SPECIAL = (
    "path",
    "argv",
    "last_type",
    "last_value",
    "last_traceback",
    "path_hooks",
    "path_importer_cache",
    "meta_path",
)
"""What the interpreter takes from `sys` before it ends the modules."""

_FILES = (_io.TextIOWrapper, _io.BufferedWriter, _io.BufferedRandom)

_LIBRARIES = f"{os.path.dirname(os.__file__)}/lib-dynload/"
"""Folder of Python's own libraries in C."""

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


def _run_step() -> int:
    """Run the step and return its exit code; what else it exits with is left to the interpreter."""
    try:
        runpy._run_module_as_main(_MODULE)  # type: ignore[attr-defined] # noqa: SLF001 - what `python -m` calls
    except SystemExit as error:
        if not isinstance(error.code, int | None):
            raise
        return error.code or 0
    except BaseException as error:
        # As in a new interpreter, without the frame of this function.
        trace = error.__traceback__ and error.__traceback__.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _end(code: int) -> None:
    """End this process as an interpreter ends, but leave what its parent has imported: to clear it copies the memory.

    That takes longer than the rest of a small step. This returns where only the interpreter itself ends all: with a
    thread that still runs, a library in C, which may have something to do at the end, or a file that reports an error.
    """
    own = [each for name, each in sys.modules.items() if _OF_STEPS.get(name) is not each]
    modules = [each for each in own if isinstance(each, type(sys))]
    if any(map(_is_foreign, modules)):
        return
    sys.modules["threading"]._shutdown()  # noqa: SLF001 - the interpreter's first call
    atexit._run_exitfuncs()  # noqa: SLF001 - and its second
    # The first counts also threads that `threading` does not know. In a circle of references, a file may end after the
    # one that it writes to, so all are written before.
    if _thread._count() or not _flush():  # noqa: SLF001
        return
    # As finalize_modules in CPython's pylifecycle.c does it: objects end with their last reference, then the newest
    # modules are emptied first.
    for name in _SPECIAL:
        setattr(sys, name, None)
    left = [ref(each) for each in modules]
    for name in [name for name, each in sys.modules.items() if _OF_STEPS.get(name) is not each]:
        del sys.modules[name]
    del own, modules
    gc.collect()
    for module in filter(None, (each() for each in reversed(left))):
        names = sorted(vars(module).keys() - {"__builtins__"}, key=lambda name: name[:1] != "_" or name[1:2] == "_")
        vars(module).update(dict.fromkeys(names))
    for name, each in _OF_STEPS.items():
        if len(vars(each)) != len(_NAMES[name]):
            vars(each).update(dict.fromkeys(vars(each).keys() - _NAMES[name]))
    gc.collect()
    if _flush():
        os._exit(code)


def _flush() -> bool:
    """Write what is left in open files, also in those to which a module of the parent refers; return whether all is.

    Only in plain files: those that compress would be other bytes.
    """
    is_done, standard = True, (sys.stdout, sys.stderr)
    for file in (*(each for each in gc.get_objects() if type(each) in _FILES), *standard):
        try:
            raw = getattr(getattr(file, "buffer", file), "raw", None)
            if not file.closed and (type(raw) is _io.FileIO or file in standard):
                file.flush()
        except Exception:
            is_done = False
    return is_done


def _is_foreign(module: "Any") -> bool:
    """Return whether a module is a library in C that is not Python's own, or may call any."""
    is_library = type(vars(module).get("__loader__")) is ExtensionFileLoader
    return is_library and (module.__name__ == "_ctypes" or not module.__file__.startswith(_LIBRARIES))


def main(connection: int) -> int:
    """Answer the requests of a socket, and run the step in the process of each; return the step's exit code."""
    _become(_serve(_socket.socket(fileno=connection)))
    code = _run_step()
    try:
        _end(code)
    except BaseException:  # noqa: S110 - objects of the step run code when they end
        pass  # The interpreter ends what is left.
    return code
