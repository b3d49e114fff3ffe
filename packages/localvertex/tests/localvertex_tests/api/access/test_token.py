"""The token of a work folder without a server: its file, its check, and the credentials that send it."""

import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from google.auth import exceptions
from google.auth.exceptions import RefreshError

from localvertex.api.access import token_file
from localvertex.api.access.access import Access
from localvertex.client import Credentials
from localvertex.processes.network import sockets

NOBODY = 65534


def _can_act_as_nobody() -> bool:
    """Return whether this process may act as another user: as root, and in a container only with a mapped id."""
    try:
        os.seteuid(NOBODY)
    except OSError:
        return False
    os.seteuid(0)
    return True


as_root = pytest.mark.skipif(
    os.geteuid() != 0 or not _can_act_as_nobody(), reason="only root can act as another user, and not everywhere"
)


@pytest.fixture
def work_dir(tmp_path: Path) -> Path:
    """Return a work folder whose `api` folder the server has made."""
    (tmp_path / "runs" / "api").mkdir(parents=True)
    return tmp_path / "runs"


def fail(text: str) -> None:
    raise AssertionError(text)


def test_a_token_is_made_once_and_only_its_owner_can_read_it(work_dir: Path) -> None:
    old = os.umask(0)
    try:
        token = token_file.prepare(work_dir, fail)
        token_file.publish(work_dir, "http://127.0.0.1:1")
    finally:
        os.umask(old)
    assert len(token) >= 43
    for each in (work_dir / "api").iterdir():
        assert stat.S_IMODE(each.stat().st_mode) == 0o600
    assert token_file.prepare(work_dir, fail) == token_file.read(work_dir) == token
    token_file.path(work_dir).unlink()
    assert token_file.read(work_dir) == ""
    assert token_file.prepare(work_dir, fail) != token


@pytest.mark.parametrize(
    "text",
    [
        "",
        "words",
        "http://127.0.0.1:1@other.example:1",
        "http://other.example:1",
        "https://127.0.0.1:1",
        "http://[",
        "\0",
    ],
)
def test_only_an_address_of_this_machine_gets_the_token(work_dir: Path, text: str) -> None:
    file = work_dir / "api" / "address"
    file.write_text("http://127.0.0.1:1\n")
    file.chmod(0o600)
    assert token_file.address(work_dir) == "http://127.0.0.1:1"
    file.write_text(text)
    assert token_file.address(work_dir) == ""
    token_file.publish(work_dir, "http://127.0.0.1:2")
    assert token_file.address(work_dir) == "http://127.0.0.1:2"


def test_a_pipe_in_place_of_the_address_is_no_address(work_dir: Path) -> None:
    os.mkfifo(work_dir / "api" / "address", 0o600)
    assert token_file.address(work_dir) == ""


def readable(file: Path) -> None:
    file.chmod(0o640)


def damaged(file: Path) -> None:
    file.write_text("short\n")


def a_link(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to(file.with_name("elsewhere"))


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


def unreadable_text(file: Path) -> None:
    file.write_bytes(b"\xff" * 40)


def foreign(file: Path) -> None:
    os.chown(file, NOBODY, -1)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (readable, "can be read by other users"),
        (damaged, "does not contain a token"),
        (unreadable_text, "does not contain a token"),
        (a_link, "cannot be read"),
        (a_pipe, "cannot be read"),
        pytest.param(foreign, "belongs to another user", marks=as_root),
    ],
)
def test_a_token_that_others_may_know_is_replaced_and_never_sent(
    work_dir: Path, damage: Callable[[Path], None], reason: str
) -> None:
    token = token_file.prepare(work_dir, fail)
    file = token_file.path(work_dir)
    damage(file)
    with pytest.raises(exceptions.RefreshError, match=reason):
        Credentials(work_dir).refresh(None)
    lines: list[str] = []
    assert token_file.prepare(work_dir, lines.append) not in (token, "short")
    (line,) = lines
    assert line.startswith(f"{file} {reason}")
    assert token not in line
    assert stat.S_IMODE(os.lstat(file).st_mode) == 0o600


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Bearer t", "Bearer tokenx", "Basic token", "token"])
def test_only_the_whole_token_is_accepted(header: str | None) -> None:
    assert not Access("token").allows(header)
    assert not Access("token").allows("Bearer t\u00f6ken\ud800")
    assert Access("token").allows("Bearer token")
    assert Access("token").allows("bearer  token")
    assert not Access("").allows(header)


def test_a_cookie_is_not_the_token_and_belongs_to_one_port() -> None:
    access = Access("token")
    text = access.cookie(port="8700")
    value, *attributes = text.split("; ")
    assert {*attributes} == {"Path=/", "HttpOnly", "SameSite=Strict"}
    assert "token" not in value
    assert access.is_session(f"other={{bad; {value}", port="8700")
    assert not access.is_session(value, port="8701")
    assert not access.is_session(value[:-1], port="8700")
    assert not access.is_session(value.replace("8700", "8701"), port="8701".replace("1", "2"))
    assert not access.is_session(None, port="8700")
    assert not Access("another").is_session(value, port="8700")
    assert not access.allows(f"Bearer {value.partition('=')[2]}")


def sent(work_dir: Path, url: str) -> str:
    """Return the header that a request gets."""
    headers: dict[str, str] = {}
    Credentials(work_dir).before_request(None, "GET", url, headers)
    return headers.pop("authorization", "") if headers else ""


@contextmanager
def listening(address: str = "127.0.0.1") -> Iterator[int]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as server:
        yield server.getsockname()[1]


def test_the_token_is_sent_only_to_this_machine(work_dir: Path) -> None:
    token = token_file.prepare(work_dir, fail)
    with listening() as port:
        assert sent(work_dir, f"http://127.0.0.1:{port}/v1/x") == f"Bearer {token}"
        assert sent(work_dir, f"https://localhost:{port}/google.Service") == f"Bearer {token}"
        for url in (
            "https://storage.googleapis.com/b",
            f"http://127.0.0.1.example.com:{port}/",
            f"http://10.0.0.1:{port}/",
        ):
            assert sent(work_dir, url) == ""
    assert sent(work_dir, f"http://127.0.0.1:{port}/") == ""


def test_programs_continue_with_a_new_token_and_work_without_one(work_dir: Path) -> None:
    credentials = Credentials(work_dir)
    with listening("::") as port:
        url, headers = f"http://127.0.0.1:{port}/", dict[str, str]()
        credentials.before_request(None, "GET", url, headers)
        assert headers == {}
        for _ in range(2):
            token = token_file.prepare(work_dir, fail)
            credentials.before_request(None, "GET", url, headers)
            assert headers == {"authorization": f"Bearer {token}"}
            token_file.path(work_dir).unlink()


def test_no_proxy_gets_the_token(work_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token_file.prepare(work_dir, fail)
    with listening() as port:
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with pytest.raises(RefreshError, match=r"add 127\.0\.0\.1 and localhost to the variable NO_PROXY"):
            sent(work_dir, f"http://127.0.0.1:{port}/")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
        assert sent(work_dir, f"http://127.0.0.1:{port}/").startswith("Bearer ")


@as_root
def test_the_server_of_another_user_gets_no_token(work_dir: Path) -> None:
    token_file.prepare(work_dir, fail)
    os.seteuid(NOBODY)
    try:
        server: Any = socket.create_server(("127.0.0.1", 0))
    finally:
        os.seteuid(0)
    with server:
        port = server.getsockname()[1]
        assert not sockets.are_own(port)
        assert sent(work_dir, f"http://127.0.0.1:{port}/") == ""
