"""What Compute Engine says about this machine before it takes it away, heard by a thread that waits for changes.

The metadata server answers `wait_for_change` when a value is another than at `last_etag`
(https://cloud.google.com/compute/docs/metadata/querying-metadata, "Waiting for a change").
"""

from __future__ import annotations

import dataclasses
import http.client
import threading
import time
from collections.abc import Mapping
from typing import Literal, Protocol

Kind = Literal["preempted", "maintenance"]
_KEYS: dict[str, tuple[Kind, str]] = {
    "instance/preempted": ("preempted", "FALSE"),
    "instance/maintenance-event": ("maintenance", "NONE"),
}
"""What is watched, and its value while all is well."""
_HOST = "metadata.google.internal"
_PRODUCT_NAME = "/sys/class/dmi/id/product_name"
"""Says Google Compute Engine there, inside containers too: nothing has to be asked, and to time out, elsewhere."""
_WAIT_SECONDS = 60
"""The server answers after this time at the latest, changed or not."""
_LONGEST_PAUSE_SECONDS = 30.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Notice:
    """One announcement."""

    kind: Kind
    """preempted: about 30 seconds are left; maintenance: up to an hour."""
    text: str
    """The value as the server gave it, such as TRUE or TERMINATE_ON_HOST_MAINTENANCE."""
    time: float
    """Seconds since 1970-01-01 UTC when it was heard."""


class Watcher(Protocol):
    """Who is asked for notices."""

    def pending(self) -> list[Notice]:
        """What came since this was asked last."""
        ...

    def close(self) -> None:
        """Listen no longer."""
        ...


class NobodyToAsk:
    """Where there is no metadata server."""

    def pending(self) -> list[Notice]:
        """Nothing."""
        return []

    def close(self) -> None:
        """Nothing."""


class MetadataWatcher:
    """One daemon thread a key; a server that fails or is silent is asked again, ever more slowly."""

    def __init__(self, host: str) -> None:
        """Begin to listen.

        Args:
            host: of the metadata server, with or without a port.
        """
        self._host = host
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._pending: list[Notice] = []
        for key in _KEYS:
            threading.Thread(target=self._listen, args=(key,), name=f"notices {key}", daemon=True).start()

    def pending(self) -> list[Notice]:
        """What came since this was asked last."""
        with self._lock:
            given, self._pending = self._pending, []
        return given

    def close(self) -> None:
        """Listen no longer; a request under way ends by itself, and nobody waits for it."""
        self._closed.set()

    def _listen(self, key: str) -> None:
        kind, quiet = _KEYS[key]
        # 0 is no etag of any value: the first answer comes at once, and a notice given before we began is heard.
        etag, value, pause = "0", quiet, 1.0
        while not self._closed.is_set():
            try:
                said, etag = self._ask(key, etag)
                pause = 1.0
            except (OSError, http.client.HTTPException):
                self._closed.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
                continue
            if said not in (value, quiet):
                with self._lock:
                    self._pending.append(Notice(kind=kind, text=said, time=time.time()))
            if said == value and etag == "0":
                # A server without etags would be asked without a break.
                self._closed.wait(_LONGEST_PAUSE_SECONDS)
            value = said

    def _ask(self, key: str, etag: str) -> tuple[str, str]:
        """Value and etag when it has changed, or after the waiting time."""
        connection = http.client.HTTPConnection(self._host, timeout=_WAIT_SECONDS + 10)
        try:
            path = f"/computeMetadata/v1/{key}?wait_for_change=true&last_etag={etag}&timeout_sec={_WAIT_SECONDS}"
            connection.request("GET", path, headers={"Metadata-Flavor": "Google"})
            answer = connection.getresponse()
            text = answer.read(4096).decode("utf-8", "replace").strip()
            # Whoever else listens at that address does not send this header.
            if answer.status != 200 or answer.getheader("Metadata-Flavor") != "Google":
                raise http.client.HTTPException(f"HTTP {answer.status}")
            return text, answer.getheader("ETag", "0")
        finally:
            connection.close()


def watch(environment: Mapping[str, str]) -> Watcher:
    """Listen where there is a metadata server: at GCE_METADATA_HOST, or Google's own on a machine of Google's."""
    if host := environment.get("GCE_METADATA_HOST", "").strip():
        return MetadataWatcher(host)
    if environment.get("NO_GCE_CHECK", "").lower() in ("true", "1") or not _is_on_compute_engine():
        return NobodyToAsk()
    return MetadataWatcher(_HOST)


def _is_on_compute_engine() -> bool:
    try:
        with open(_PRODUCT_NAME, encoding="utf-8") as file:
            return file.read().strip() in ("Google", "Google Compute Engine")
    except OSError:
        return False
