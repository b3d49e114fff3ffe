"""What a forked step leaves to be done at its end is done as by its own interpreter: files, finalizers and threads."""

import re
from pathlib import Path

import pytest
from kfp import dsl

from localvertex.values.configuration import Configuration
from vertex_testing.runs import STEP, Execute, FindTask, ReadLog


@dsl.component(**STEP)
def finish(how: str) -> None:
    """Leave the interpreter something to do at the end, and report what it does in the log and in files."""
    import atexit
    import json
    import sys
    import threading
    import time
    import weakref
    from typing import Any

    class Reports:
        """Reports its end, and what it still finds then."""

        def __init__(self, name: str) -> None:
            self.name, self.other = name, None

        def __del__(self) -> None:
            print("end of", self.name, flush=True)

    with open("/proc/self/cmdline") as file:
        print("forked:", "fork_server.py" in file.read(), flush=True)
    module = sys.modules[finish.__module__]
    names = dict(first="_first", second="second", third="third") if "module" in how else {}
    for name, each in names.items():
        setattr(module, each, Reports(name))
    if "circle" in how:
        one, two = Reports("one"), Reports("two")
        one.other, two.other = two, one
        json.left = Reports("in a module of the parent's")
    if "files" in how:
        for name, owner in (("own", module), ("parent's", json)):
            owner.left_open = open(f"{name}.txt", "w")
            owner.left_open.write("the last line")
            owner.left_binary = open(f"{name}.bin", "wb")
            owner.left_binary.write(b"the last bytes")
    if "archive" in how:
        import gzip
        import io
        import zipfile

        module.compressed = io.TextIOWrapper(gzip.GzipFile("own.gz", "w", mtime=0))
        module.compressed.write("compressed")
        module.archive = zipfile.ZipFile("left.zip", "w")
        module.archive.writestr("a.txt", "content")
    if "log" in how:
        import logging
        import logging.handlers

        memory = logging.handlers.MemoryHandler(1000, target=logging.FileHandler("left.log"))
        logging.getLogger("left").addHandler(memory)
        logging.getLogger("left").warning("the last record")
    if "temporary" in how:
        import os
        import tempfile

        module.folder, module.file = tempfile.TemporaryDirectory(dir="."), tempfile.NamedTemporaryFile(dir=".")
        print(sorted(name[:3] for name in os.listdir() if name.startswith("tmp")))
    if "finalizer" in how:
        weakref.finalize(module, print, "finalized")
        atexit.register(print, "at exit")
        atexit.register(lambda: 1 / 0)
    if "thread" in how:

        def late() -> None:
            time.sleep(0.3)
            print("a thread has ended", flush=True)

        threading.Thread(target=late, daemon="daemon" in how).start()
    if "library" in how:
        import ctypes

        libc = ctypes.CDLL(None)
        libc.puts(b"from C")
    if "replaced" in how:

        class Output:
            write, flush = sys.stdout.write, sys.stdout.flush

        sys.stdout = Output()
        sys.modules["csv"] = type(sys)("csv")
        sys.modules["csv"].end = Reports("in place of a module")
    if "handler" in how:
        import bz2
        import codecs
        import signal

        module.archive = bz2.open("left.bz2", "wt")
        module.archive.write("compressed")
        signal.signal(signal.SIGTERM, lambda *_: module)
        codecs.register(lambda _: module and None)
    if "callback" in how:
        module.told, module.teller = Reports, weakref.ref(Reports, lambda _: print("told", flush=True))
        module.slots = type("Slots", (), {"__slots__": (), "__del__": lambda _: print("slots", flush=True)})()
    if "generator" in how:

        def generator() -> Any:
            try:
                yield
            finally:
                print("a generator has ended", flush=True)

        module.started = generator()
        next(module.started)
    if "parent" in how:
        logging = sys.modules["logging"]
        logging.getLogger("left").addFilter(lambda _: module)
        module.left_in_parent = Reports("what a module of the parent refers to")
    if "closed" in how:
        atexit.register(sys.stdout.close)
    if "own libraries" in how:
        import array
        import sqlite3

        module.database = sqlite3.connect("left.sqlite")
        module.database.execute("pragma journal_mode = wal")
        module.database.execute("create table t (a)")
        module.array = array.array("b")
    if "recursion" in how:
        sys.setrecursionlimit(30)
    if "excepthook" in how:
        sys.excepthook = lambda *_: print("my hook")
        raise ValueError
    if "exit 300" in how:
        sys.exit(300)
    if "exit in exit" in how:
        atexit.register(lambda: sys.exit(5))


@dsl.pipeline(name="finishes")
def finishes(how: str) -> None:
    finish(how=how)
    finish(how=how).set_env_variable("PYTHON_NEW", "1")


@pytest.mark.parametrize(
    "how",
    [
        "module",
        "circle",
        "files, archive, log, temporary",
        "finalizer",
        "thread",
        "daemon thread, files",
        "library",
        "library, files, module, finalizer",
        "closed, files, module",
        "handler",
        "callback",
        "generator",
        "files, parent",
        "replaced, files, module",
        "own libraries",
        "recursion",
        "excepthook, files, module",
        "exit 300, files",
        "exit in exit, files",
    ],
)
def test_what_a_step_leaves_to_the_interpreter_is_done_as_by_its_own(
    execute: Execute, task: FindTask, log_text: ReadLog, how: str
) -> None:
    record = execute(finishes, {"how": how}, configuration=Configuration(sandbox="none"))
    steps = [task(record, name) for name in ("finish", "finish-2")]
    assert len({each["exit_code"] for each in steps}) == 1
    logs = [log_text(record, each) for each in steps]
    # After what kfp's executor has printed of the step's own files; addresses differ.
    ends = [re.sub(r"0x[0-9a-f]+|finish(-2)?/|localvertex-held-\w+|/tmp\.\w+", "", each) for each in logs]
    ends = [re.sub(r"\d\d:\d\d:\d\d,\d+", "", each).partition("forked: ")[2] for each in ends]
    assert [each.partition("\n")[0] for each in ends] == ["True", "False"]
    assert ends[0].removeprefix("True") == ends[1].removeprefix("False")
    folders = [Path(record["work_dir"], record["run_id"], each["log"]).parent for each in steps]
    own = ("log.txt", "executor_input.json", "executor_output.json")
    left = [{path.name: path.read_bytes() for path in each.iterdir() if path.name not in own} for each in folders]
    assert left[0].keys() == left[1].keys()
    assert {name: each for name, each in left[0].items() if each != left[1][name] and name != "left.zip"} == {}
