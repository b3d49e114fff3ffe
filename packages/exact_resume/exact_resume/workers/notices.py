"""Preemption and maintenance notices of Compute Engine, received by a thread that waits for changes.

The metadata server answers `wait_for_change` when a value differs from that at `last_etag`
(https://cloud.google.com/compute/docs/metadata/querying-metadata, "Waiting for a change").
"""

import dataclasses
import threading
from collections.abc import Mapping
from typing import Literal

from exact_resume.files import linux

Kind = Literal["preempted", "maintenance"]
_KEYS: dict[str, tuple[Kind, str]] = {
    "instance/preempted": ("preempted", "FALSE"),
    "instance/maintenance-event": ("maintenance", "NONE"),
}
"""Watched key -> kind of notice, and the value of the key when there is none."""
_HOST = "metadata.google.internal"
_PRODUCTS = ("Google", "Google Compute Engine")
"""Compute Engine's names for its machines, so that other machines need not wait for a timeout."""
_WAIT_SECONDS = 60
"""The server answers after this time, even if nothing has changed."""
_LONGEST_PAUSE_SECONDS = 30.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Notice:
    """One announcement."""

    kind: Kind
    """preempted: about 30 seconds are left; maintenance: up to an hour."""
    text: str
    """The value from the server, such as TRUE or TERMINATE_ON_HOST_MAINTENANCE."""


class NoMetadataServer:
    """The watcher of a machine without a metadata server."""

    def pending(self) -> list[Notice]:
        """Return no notices."""
        return []

    def close(self) -> None:
        """Do nothing."""


class MetadataWatcher:
    """One daemon thread per key; after a failure or a timeout it asks again, with growing pauses."""

    def __init__(self, host: str) -> None:
        """Start listening.

        Args:
            host: Host of the metadata server, with or without a port.
        """
        self._host = host
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._pending: list[Notice] = []
        for key in _KEYS:
            threading.Thread(target=self._listen, args=(key,), name=f"notices {key}", daemon=True).start()

    def pending(self) -> list[Notice]:
        """Return the notices since the last call."""
        with self._lock:
            notices, self._pending = self._pending, []
        return notices

    def close(self) -> None:
        """Stop listening; a pending request ends on its own."""
        self._closed.set()

    def _listen(self, key: str) -> None:
        kind, quiet = _KEYS[key]
        # No value has the etag 0, so the first answer comes at once and includes a notice from before the start.
        etag, value, pause = "0", quiet, 1.0
        while not self._closed.is_set():
            try:
                current, etag = self._ask(key, etag)
                pause = 1.0
            except OSError:
                self._closed.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
                continue
            if current not in (value, quiet):
                with self._lock:
                    self._pending.append(Notice(kind=kind, text=current))
            if current == value and etag == "0":
                # A server without etags answers at once, so pause before the next request.
                self._closed.wait(_LONGEST_PAUSE_SECONDS)
            value = current

    def _ask(self, key: str, etag: str) -> tuple[str, str]:
        """Return value and etag once the value has changed or the waiting time is over."""
        # A quarter of the time of NumPy's import, which only Google's machines need.
        import http.client

        connection = http.client.HTTPConnection(self._host, timeout=_WAIT_SECONDS + 10)
        try:
            path = f"/computeMetadata/v1/{key}?wait_for_change=true&last_etag={etag}&timeout_sec={_WAIT_SECONDS}"
            connection.request("GET", path, headers={"Metadata-Flavor": "Google"})
            response = connection.getresponse()
            text = response.read(4096).decode("utf-8", "replace").strip()
            # Another server at that address does not send this header.
            if response.status != 200 or response.getheader("Metadata-Flavor") != "Google":
                raise OSError(f"HTTP {response.status}")
            return text, response.getheader("ETag", "0")
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()


Watcher = MetadataWatcher | NoMetadataServer


def watch(environment: Mapping[str, str]) -> Watcher:
    """Listen to the metadata server at GCE_METADATA_HOST, or to Google's own on Compute Engine."""
    if host := environment.get("GCE_METADATA_HOST", "").strip():
        return MetadataWatcher(host)
    if environment.get("NO_GCE_CHECK", "").lower() in ("true", "1") or linux.product_name() not in _PRODUCTS:
        return NoMetadataServer()
    return MetadataWatcher(_HOST)
