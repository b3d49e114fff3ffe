"""Secrets are removed from a log while it is written: at any cut of the stream, live, and after a kill."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from kfp import dsl

from localvertex.processes.masker import Masker
from localvertex.processes.sinks import MASK
from vertex_testing.runs import STEP, Compile
from vertex_testing.server import wait_until


def masked(parts: list[bytes], secrets: list[bytes]) -> bytes:
    masker = Masker(secrets, b"*")
    return b"".join(map(masker.feed, parts)) + masker.feed(b"", is_end=True)


@pytest.mark.parametrize("seed", range(20))
def test_no_cut_of_the_stream_lets_a_secret_through(seed: int) -> None:
    random = Random(seed)
    for _ in range(50):
        secrets = [bytes(random.choices(b"ab", k=random.randint(2, 6))) for _ in range(random.randint(1, 4))]
        text = bytes(random.choices(b"abc", k=random.randint(0, 60)))
        cuts = sorted(random.choices(range(len(text) + 1), k=random.randint(0, 20)))
        parts = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        result = masked(parts, secrets)
        assert result == masked([text], secrets), (secrets, parts)
        assert not [secret for secret in secrets if secret in result]


def test_what_cannot_be_a_secret_is_written_at_once() -> None:
    masker = Masker([b"secret"], b"*")
    assert [masker.feed(part) for part in (b"line\nse", b"e\nsec", b"ret!", b"x")] == [b"line\n", b"see\n", b"*!", b"x"]
    assert Masker([], b"*").feed(b"text") == b"text"


@dsl.component(**STEP)
def chatter(folder: str) -> None:
    """Print the secret, wait, print it again in pieces, and end only by a signal."""
    import os
    import signal
    import sys
    import time
    from pathlib import Path

    def end(*_: object) -> None:
        print("last words of", os.environ["API_TOKEN"], flush=True)
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    secret = os.environ["API_TOKEN"]
    print("begin", secret, flush=True)
    os.write(1, secret[:5].encode())
    Path(folder, "waiting").touch()
    while not Path(folder, "go").exists():
        time.sleep(0.01)
    os.write(1, (secret[5:] + "\n").encode())
    while True:
        time.sleep(1)


@dsl.pipeline(name="chatters")
def chatters(folder: str) -> None:
    chatter(folder=folder).set_env_variable("API_TOKEN", "planted-token-4711")


def test_a_kill_of_localvertex_leaves_a_whole_log_without_the_secret(compiled: Compile, tmp_path: Path) -> None:
    words = ["run", str(compiled(chatters)), "--run-id", "r", "--parameter", f"folder={tmp_path}", "--grace", "60"]
    command = [sys.executable, "-m", "localvertex", *words]
    with (tmp_path / "out").open("w") as out:
        process = subprocess.Popen(command, cwd=tmp_path, env=dict(os.environ), stdout=out, stderr=out)
    log = tmp_path / "runs" / "r" / "chatter" / "log.txt"
    try:
        wait_until(lambda: (tmp_path / "waiting").exists())
        wait_until(lambda: f"begin {MASK}\n" in log.read_text())
        assert "plant" not in log.read_text(), "the beginning of a secret is held back"
        (tmp_path / "go").touch()
        wait_until(lambda: log.read_text().count(MASK) == 2)
        process.send_signal(signal.SIGKILL)
        process.wait()
        # The supervisor ends the step, and the masker writes the rest.
        wait_until(lambda: f"last words of {MASK}\n" in log.read_text())
    finally:
        process.kill()
        process.wait()
    assert "planted-token" not in log.read_text()


@dsl.component(**STEP)
def many_lines() -> None:
    import os

    for number in range(20_000):
        print(number, os.environ["API_TOKEN"])


@dsl.pipeline(name="writes-much")
def writes_much() -> None:
    many_lines().set_env_variable("API_TOKEN", "planted-token-4711")


def test_nothing_of_a_long_log_is_lost(compiled: Compile, tmp_path: Path) -> None:
    import localvertex

    options = localvertex.Options(work_dir=tmp_path / "runs", run_id="r")
    assert localvertex.run(compiled(writes_much), options=options)["state"] == "SUCCEEDED"
    lines = (tmp_path / "runs" / "r" / "many-lines" / "log.txt").read_text().splitlines()
    assert [line for line in lines if line.endswith(MASK)] == [f"{number} {MASK}" for number in range(20_000)]
