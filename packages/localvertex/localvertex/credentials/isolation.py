"""The variables of every process of a run: without the user's credentials, unless the user passes them on."""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

from localvertex._base.userinput.temporary import temporary_folder
from localvertex.credentials import step_python
from localvertex.credentials.emulator import has_emulator, is_loopback
from localvertex.credentials.secrets import Secrets, is_secret_address, looks_like_secret
from localvertex.credentials.step_file import StepFile
from localvertex.processes.network.metadata_server import MetadataServer

_TESTING_TOKEN = "GOOGLE_AUTH_TOKEN_FOR_TESTING"  # noqa: S105 - the name of a variable of TensorFlow

_CREDENTIALS = frozenset(
    (
        "BOTO_PATH",
        "CLOUDSDK_ACTIVE_CONFIG_NAME",
        "GCE_METADATA_MTLS_MODE",
        "GCE_METADATA_ROOT",
        "GEMINI_API_KEY",
        "GOOGLE_API_CERTIFICATE_CONFIG",
        "GOOGLE_API_KEY",
        "GOOGLE_APPLICATION_CREDENTIALS",
        _TESTING_TOKEN,
        "GOOGLE_CLOUD_KEYFILE_JSON",
        "GOOGLE_CREDENTIALS",
        "GOOGLE_GHA_CREDS_PATH",
        "GOOGLE_OAUTH_ACCESS_TOKEN",
    )
)
"""Variables through which Google's libraries and tools find credentials or another metadata server."""

STEP_PYTHON = str(Path(step_python.__file__).parent)
"""Python's start-up file of steps, which keeps their calls of Google's services on this machine."""

_CREDENTIALS_PREFIX = "CLOUDSDK_AUTH_"


class IsolatedCredentials(ABC):
    """Credentials that the processes of a run get; `close` ends the processes that it started."""

    def __init__(self) -> None:
        self.secrets = Secrets()
        """The secrets that the processes have received."""
        self.step_file = StepFile()
        """How they find the registry of the work folder."""

    is_users: ClassVar[bool] = False
    """Whether they are the user's own, which a metadata server of localvertex would hide."""

    @abstractmethod
    def environment(self, env: Mapping[str, str], *, declared: Collection[str] = ()) -> dict[str, str]:
        """Return the variables for a process.

        Args:
            env: All variables that it would have, including the user's own environment.
            declared: Names of those that the pipeline sets itself, which it gets even if they look like secrets.
        """

    @property
    def files(self) -> list[Path] | None:
        """Return the files with credentials that processes may read; None when they get no credentials."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Release everything; no process may run any more."""


class UserCredentials(IsolatedCredentials):
    """All of them: `--with-credentials`."""

    is_users: ClassVar[bool] = True

    def environment(self, env: Mapping[str, str], *, declared: Collection[str] = ()) -> dict[str, str]:
        """Return the variables unchanged."""
        self.secrets.learn(env)
        return self.step_file.add_to(env)

    @property
    def files(self) -> list[Path] | None:
        """Return the key file and the folder of gcloud, as far as they exist."""
        key = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS", "")
        folder = Path(os.environ.get("CLOUDSDK_CONFIG") or Path.home() / ".config" / "gcloud")
        return [each.absolute() for each in (*([Path(key)] if key else []), folder) if each.exists()]

    def close(self) -> None:
        """Do nothing."""


class NoCredentials(IsolatedCredentials):
    """None: Google's libraries find no file, no token and a metadata server that has none; `step_python` routes calls.

    Safe for several threads.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._own: tuple[str, MetadataServer] | None = None
        self._held = ExitStack()

    def environment(self, env: Mapping[str, str], *, declared: Collection[str] = ()) -> dict[str, str]:
        """Return the variables without credentials, even where the pipeline sets them, and without other secrets."""
        self.secrets.learn({name: env[name] for name in env if name in declared or is_secret_address(name)})
        kept = {name: text for name, text in env.items() if name in declared or not looks_like_secret(name)}
        removed = _CREDENTIALS - ({_TESTING_TOKEN} if _is_emulated(env) else set())
        kept = {name: text for name, text in kept.items() if not name.startswith(_CREDENTIALS_PREFIX)}
        kept = {name: text for name, text in kept.items() if name not in removed}
        if _is_emulated(env) and _TESTING_TOKEN in env:
            kept[_TESTING_TOKEN] = env[_TESTING_TOKEN]
        folder, server = self._start()
        return self.step_file.add_to(kept) | {
            "CLOUDSDK_CONFIG": folder,
            "BOTO_CONFIG": os.devnull,
            "GCE_METADATA_HOST": server.address,
            "GCE_METADATA_IP": server.address,
            "NO_GCE_CHECK": "true",
            "PYTHONPATH": os.pathsep.join(filter(None, (STEP_PYTHON, env.get("PYTHONPATH")))),
        }

    def _start(self) -> tuple[str, MetadataServer]:
        """Return the empty folder and the server; make them at the first call."""
        with self._lock:
            if self._own is None:
                self._own = self._held.enter_context(temporary_folder()), MetadataServer()
            return self._own

    def close(self) -> None:
        """Remove the folder and stop the server."""
        with self._lock:
            if self._own is not None:
                self._own[1].close()
                self._held.close()
                self._own = None


def _is_emulated(env: Mapping[str, str]) -> bool:
    """Return whether TensorFlow's gs://, which knows no emulator, is redirected to one on this machine by a proxy."""
    return has_emulator(env) and is_loopback(env.get("https_proxy") or env.get("HTTPS_PROXY") or "")
