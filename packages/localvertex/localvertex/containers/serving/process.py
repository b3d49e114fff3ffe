"""The process of one serving container, and the requests to it."""

import http.client
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from localvertex._base.userinput.temporary import temporary_folder
from localvertex.containers import gpus
from localvertex.containers.call import ContainerCommand, Prepared
from localvertex.containers.mounts import contains_private
from localvertex.containers.programs import with_bash
from localvertex.containers.serving.container import ServingContainer, expanded
from localvertex.containers.serving.machine import Machine
from localvertex.containers.variables import own_environment
from localvertex.errors import TaskFailed
from localvertex.processes import environments, logs
from localvertex.processes.network import relay
from localvertex.processes.processes import Process

_DEFAULT_SECONDS = 300.0
"""How long a container may take until it is healthy."""

_POLL_SECONDS = 0.05
_MAX_POLL_SECONDS = 0.5
_MAX_HEALTH_SECONDS = 10.0
"""How long the answer of a health check may take, as on the service."""

_MAX_ANSWER_BYTES = 64 << 20

_LOG_LINES = 5


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Content of a process: a container, the model's files and the names that it sees."""

    container: ServingContainer
    artifact: str
    """Path or URI of the model's files, `AIP_STORAGE_URI`; empty without files."""
    variables: Mapping[str, str]
    """The other variables of the service, such as `AIP_ENDPOINT_ID`."""
    default_route: str
    """The routes of a container without its own: this, and this with `:predict`."""
    log: Path
    created: str = ""
    """Time of the deployment; empty without one."""
    num_gpus: int = 0

    @property
    def health_route(self) -> str:
        """Return the path of health checks."""
        return self.container.health_route or self.default_route

    @property
    def predict_route(self) -> str:
        """Return the path of predictions."""
        return self.container.predict_route or f"{self.default_route}:predict"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A response of a container."""

    code: int
    content: bytes


class NotServing(Exception):
    """The container does not serve; the text is the reason, in one line."""


class ServingProcess:
    """A running serving container.

    Raises:
        NotServing: It cannot be started.
        Cancelled: The owner is being stopped.
    """

    def __init__(self, serving: Serving, machine: Machine) -> None:
        self.serving, self._machine, self._held = serving, machine, ExitStack()
        self._exit_code: int | None = None
        self._ended = threading.Event()
        self._is_confined = serving.container.is_confined(machine.choice)
        serving.log.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._own = Path(self._held.enter_context(temporary_folder()))
            self._socket = self._own / "serving.sock"
            how, options = machine.choice.how, machine.choice.options
            # Only then do confined commands not share the loopback interface of this machine.
            has_own_loopback = how.confines and not how.runs_images and not options.allow_network
            self._has_relay = self._is_confined and has_own_loopback
            self.port = serving.container.port if self._has_relay else _free_port()
            prepared = self._prepared()
            self._process: Process = machine.processes.start(
                prepared.command,
                cwd=self._folder,
                env=prepared.env,
                log=serving.log,
                clean_up=prepared.clean_up,
                has_mask=prepared.has_mask,
            )
        except TaskFailed as error:
            self._held.close()
            raise NotServing(str(error)) from None
        except BaseException:
            self._held.close()
            raise
        # A daemon thread, because the supervisor ends the process, and with it this wait.
        threading.Thread(target=self._wait, name="serving container", daemon=True).start()

    @property
    def is_running(self) -> bool:
        """Return whether the process has not ended."""
        return not self._ended.is_set()

    def ends_within(self, seconds: float) -> bool:
        """Wait for the end of the process; return whether it has ended."""
        return self._ended.wait(seconds)

    def wait_until_healthy(self, check_stopped: Callable[[], None] = lambda: None) -> None:
        """Wait for the first health check that succeeds.

        Raises:
            NotServing: The process has ended, or the time is over; it is stopped then.
        """
        seconds = self.serving.container.timeout_seconds or _DEFAULT_SECONDS
        deadline, pause = time.monotonic() + seconds, _POLL_SECONDS
        reason = ""
        while time.monotonic() < deadline:
            check_stopped()
            if self._ended.is_set():
                text = logs.failure_text(self._exit_code or 0, self.serving.log) or f"exit code {self._exit_code}"
                raise NotServing(f"the serving container ended before it was healthy: {text}")
            limit = min(_MAX_HEALTH_SECONDS, deadline - time.monotonic())
            try:
                answer = self.request("GET", self.serving.health_route, seconds=max(limit, _POLL_SECONDS))
                if answer.code == http.client.OK and self.is_running:
                    return
                reason = f"HTTP code {answer.code}"
            except TimeoutError:
                # Many containers listen before they have loaded the model.
                reason = f"no answer within {limit:.3g} s"
            except NotServing as error:
                reason = str(error)
            self._ended.wait(pause)
            pause = min(2 * pause, _MAX_POLL_SECONDS)
        self.stop()
        tail = " | ".join(logs.tail(self.serving.log, _LOG_LINES))
        raise NotServing(
            f"the serving container was not healthy within {seconds:g} s (GET {self.serving.health_route} at port "
            f"{self.port}: {reason}); it must listen on AIP_HTTP_PORT; its log in {self.serving.log} ends: {tail}"
        )

    def predict(self, body: bytes, *, seconds: float) -> Answer:
        """Send a request to the predict route.

        Raises:
            TimeoutError: The answer took too long.
            NotServing: There was no answer.
        """
        return self.request("POST", self.serving.predict_route, body=body, seconds=seconds)

    def request(self, method: str, route: str, *, seconds: float, body: bytes | None = None) -> Answer:
        """Send one request.

        Raises:
            TimeoutError: The answer took too long.
            NotServing: There was no answer.
        """
        connection = _Connection(self.port, self._socket if self._has_relay else None, seconds)
        headers = {"Content-Type": "application/json"} if body else {}
        try:
            with connection.limited(seconds):
                connection.request(method, route, body=body, headers=headers)
                response = connection.getresponse()
                content = response.read(_MAX_ANSWER_BYTES + 1)
        except TimeoutError:
            raise
        except (OSError, http.client.HTTPException) as error:
            raise NotServing(f"no answer from the serving container: {type(error).__name__}: {error}") from None
        finally:
            connection.close()
        if len(content) > _MAX_ANSWER_BYTES:
            raise NotServing(f"the answer of the serving container is larger than {_MAX_ANSWER_BYTES} bytes")
        if response.length:
            raise NotServing(f"the answer of the serving container ended {response.length} bytes too early")
        return Answer(code=response.status, content=content)

    def stop(self) -> None:
        """End the process and everything it started, and wait for that."""
        self._process.stop()
        self._ended.wait()

    def _wait(self) -> None:
        self._exit_code = self._machine.processes.wait(self._process)
        self._held.close()
        self._ended.set()

    @property
    def _folder(self) -> Path:
        """Return the working directory, which ends with the process."""
        folder = self._own / "work"
        folder.mkdir(exist_ok=True)
        return folder

    @property
    def _gpus(self) -> dict[str, str]:
        """Return the variable that shows the GPUs of the machine spec, as far as this machine has them."""
        visible = gpus.visible_gpus()
        return {gpus.VARIABLE: ",".join(visible[: self.serving.num_gpus]) or gpus.NONE} if visible else {}

    def _prepared(self) -> Prepared:
        """Return the process of the container."""
        container, machine = self.serving.container, self._machine
        service = {
            **self.serving.variables,
            "AIP_HTTP_PORT": str(self.port),
            "AIP_HEALTH_ROUTE": self.serving.health_route,
            "AIP_PREDICT_ROUTE": self.serving.predict_route,
            "AIP_STORAGE_URI": self.serving.artifact,
            "AIP_MODE": "PREDICTION",
            "AIP_FRAMEWORK": "CUSTOM_CONTAINER",
            **self._gpus,
        }
        own: dict[str, str] = {}
        for name, text in container.env.items():
            own[name] = expanded(text, service | own)
        command, arguments = container.words(service | own)
        env = environments.add_own(own_environment() | service | own, self._own)
        env = machine.credentials.environment(env, declared=container.env)
        if not self._is_confined:
            prefix = machine.choice.command_prefixes.get(container.image, ())
            words = [*prefix, *command, *arguments]
            if not prefix and words[0] in ("python", "python3"):
                words[0] = env["PIP_PYTHON"]
            # Servers that know the variable are not open to other machines; the service has none like it.
            return Prepared(command=words, env={"AIP_HTTP_HOST": "127.0.0.1", **env}, has_mask=True)
        return machine.choice.how.prepared(self._call(command, arguments, env, frozenset((*service, *own))))

    def _call(
        self, command: list[str], arguments: list[str], env: dict[str, str], declared: frozenset[str]
    ) -> ContainerCommand:
        """Return the container command."""
        machine, artifact = self._machine, self.serving.artifact
        is_local = bool(artifact) and "://" not in artifact and Path(artifact).exists()
        if is_local and (text := contains_private(Path(artifact), machine.work_dir)):
            raise TaskFailed(
                f"the model's files {artifact} contain {text}, which a container must not see; give their own folder"
            )
        if not machine.choice.how.runs_images:
            command, arguments = with_bash([*command, *arguments]), []
        if self._has_relay:
            command = [sys.executable, "-I", "-S", relay.__file__, str(self._socket), str(self.port), *command]
        return ContainerCommand(
            image=self.serving.container.image,
            command=command,
            arguments=arguments,
            env=env,
            declared=declared,
            folder=self._folder,
            temporary=self._own,
            work_dir=machine.work_dir,
            credentials=machine.credentials.files,
            readable=(Path(artifact),) if is_local else (),
            # An engine gives it the network of this machine then, and with it a port here.
            host_name="localhost",
            gpus=self._gpus.get(gpus.VARIABLE, "").removeprefix(gpus.NONE),
        )


class _Connection(http.client.HTTPConnection):
    """A connection to a port of this machine, or to a Unix socket."""

    def __init__(self, port: int, path: Path | None, seconds: float) -> None:
        super().__init__("127.0.0.1", port, timeout=seconds)
        self._path = path

    def connect(self) -> None:
        """Open the connection."""
        if self._path is None:
            super().connect()
        else:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(self.timeout)
            self.sock.connect(str(self._path))
        # The connection forgets it before the end of an answer without a length.
        self._opened = self.sock

    @contextmanager
    def limited(self, seconds: float) -> Iterator[None]:
        """Limit an exchange as a whole; a socket timeout applies to each read.

        Raises:
            TimeoutError: It took too long.
        """
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            with suppress(OSError, AttributeError):
                self._opened.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        except (OSError, http.client.HTTPException):
            if not is_late.is_set():
                raise
        finally:
            timer.cancel()
        if is_late.is_set():
            raise TimeoutError


def _free_port() -> int:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        port: int = holder.getsockname()[1]
        return port
