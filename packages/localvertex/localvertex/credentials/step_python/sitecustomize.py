"""Keeps a step's calls of Google's services on this machine; Python runs this file when it starts.

Nothing happens until a step imports one of the modules in `_CHANGES`. Then, in that module:

1. `google.auth.default` returns credentials with a placeholder in place of a token, and a project id.
2. Calls of Vertex AI go to the endpoint of the run, by REST: that of a run has no gRPC. The token of the run is added
   when a request is sent, so that no code of the step has it. With `--gcs-root`, calls of Cloud Storage go there, too.
3. Calls of all other services get the answer 501, or an exception where Google's libraries have no answer, without a
   look-up of a name. Only a plain download of a public object is still possible (decision 27).

Standard library only, no import of this package, nothing newer than Python 3.8: a step may have its own interpreter.
"""

from __future__ import annotations  # noqa: TID251 - older interpreters run this file, too

import _thread
import os
import sys

TYPE_CHECKING = False  # typing's own would be imported in every step
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType
    from typing import Any

_GOOGLES = (".googleapis.com", ".vertexai.goog")
_VERTEX, _STORAGE = "aiplatform.googleapis.com", "storage.googleapis.com"

_API_PATHS = ("/storage/", "/download/", "/upload/", "/batch/", "/resumable/")
"""Of Cloud Storage's API; other paths are BUCKET/OBJECT."""

PLACEHOLDER = "localvertex-step"
"""The token that code of a step sees."""

PROJECT_NUMBER = "100000000001"
"""`values.buckets.PROJECT_NUMBER`."""

_downloads: set[int] = set()
"""Threads that download a public object."""


class NotEmulated(RuntimeError):
    """A call of a service of Google that stays on this machine; no OSError, which libraries repeat or hide."""


def text(host: str, call: str) -> str:
    """Return the one line that refuses a call."""
    advice = "give the step's outputs as [step.NAME] outputs in localvertex.toml"
    if _is_vertex(host):
        advice = f"use the synchronous clients of google-cloud-aiplatform, {advice}"
    elif host.endswith(_STORAGE):
        advice = f"give a folder per bucket with --gcs-root DIR, {advice}"
    return f"{call} was not sent: localvertex does not emulate it for {host}; {advice}, or run it --with-credentials"


def _is_google(host: str) -> bool:
    return f".{host.rstrip('.').lower()}".endswith(_GOOGLES)


def _is_vertex(host: str) -> bool:
    is_regional = host.startswith("aiplatform.") and host.endswith(".rep.googleapis.com")
    return host == _VERTEX or host.endswith(f"-{_VERTEX}") or is_regional


def _is_public(method: str, host: str, path: str, query: str, has_token: bool) -> bool:
    """Return whether a request only reads an object that everybody can read, for example a dataset of Keras."""
    is_object = host.endswith(_STORAGE) and not path.startswith(_API_PATHS) and not query
    return is_object and not has_token and method in ("GET", "HEAD")


def _endpoint() -> tuple[str, str]:
    """Return address and token of the run's endpoint; empty if there is none."""
    import json

    try:
        with open(os.environ["LOCALVERTEX_ENDPOINT"], encoding="ascii") as file:
            found = json.load(file)
        return found["address"], found["token"]
    except (KeyError, OSError, ValueError):
        return "", ""


def _project() -> str:
    names = ("GOOGLE_CLOUD_PROJECT", "CLOUD_ML_PROJECT_ID")
    return next(filter(None, map(os.environ.get, names)), "local-project")


def _download(send: Callable[[], Any]) -> Any:
    """Send a request that may leave the machine."""
    thread = _thread.get_ident()
    _downloads.add(thread)
    try:
        return send()
    finally:
        _downloads.discard(thread)


def _change_auth(module: ModuleType) -> None:
    from google.auth import credentials

    class LocalCredentials(credentials.Credentials):
        """Credentials that mean something on this machine only."""

        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.token = PLACEHOLDER

        def refresh(self, request: Any) -> None:
            """Do nothing."""

    def default(*_: Any, **__: Any) -> tuple[Any, str]:
        return LocalCredentials(), _project()

    vars(default)["__wrapped__"], vars(module)["default"] = vars(module)["default"], default


def _change_requests(module: ModuleType) -> None:
    """Send, answer or pass on each request of the library on which Google's are built."""
    from urllib.parse import urlsplit

    send = module.HTTPAdapter.send
    placeholder = f"Bearer {PLACEHOLDER}"

    def local_send(self: Any, request: Any, *args: Any, **options: Any) -> Any:
        parts = urlsplit(request.url)
        host, path = parts.hostname or "", parts.path
        is_google, given = _is_google(host), request.headers.get("Authorization")
        if is_google and _is_public(request.method, host, path, parts.query, bool(given)):
            return _download(lambda: send(self, request, *args, **options))
        address, token = _endpoint()
        has_buckets = bool(os.environ.get("LOCALVERTEX_GCS_ROOT"))
        is_local = _is_vertex(host) or (host == _STORAGE and path.startswith(_API_PATHS) and has_buckets)
        is_own = f"{parts.scheme}://{parts.netloc}" == address and given in (None, placeholder)
        if is_google and not (address and is_local):
            return _refused(request, text(host, f"{request.method} {path}"))
        if is_google or is_own:
            request = request.copy()
            request.url = address + path + (f"?{parts.query}" if parts.query else "")
            request.headers["Authorization"] = f"Bearer {token}"
            request.headers.pop("Host", None)
            # A proxy would get the token.
            options["proxies"] = {}
        return send(self, request, *args, **options)

    module.HTTPAdapter.send = local_send


def _refused(request: Any, message: str) -> Any:
    """Return an answer that no library of Google repeats, in the form of its errors."""
    import json
    from datetime import timedelta

    from requests.models import Response

    found: Any = Response()
    found.status_code, found.reason, found.elapsed = 501, "Not Implemented", timedelta(0)
    found.url, found.request, found.encoding = request.url, request, "utf-8"
    found.headers["Content-Type"] = "application/json"
    error = {
        "code": 501,
        "status": "UNIMPLEMENTED",
        "message": message,
        "errors": [{"message": message, "reason": "notImplemented"}],
    }
    vars(found).update(_content=json.dumps({"error": error}).encode(), _content_consumed=True)
    return found


def _change_grpc(module: ModuleType) -> None:
    """Refuse the calls of channels to Google; also for `grpc.aio`."""
    import grpc

    class Refused(grpc.RpcError):  # type: ignore[misc]
        def code(self) -> Any:
            return grpc.StatusCode.UNIMPLEMENTED

        def details(self) -> str:
            return str(self)

        def trailing_metadata(self) -> Iterable[Any]:
            return ()

        initial_metadata = trailing_metadata

        def result(self, timeout: float | None = None) -> Any:
            raise self

    class Call:
        def __init__(self, message: str) -> None:
            self._message = message

        def __call__(self, *_: Any, **__: Any) -> Any:
            raise Refused(self._message)

        with_call = future = __call__

    class Channel:
        def __init__(self, host: str) -> None:
            self._host = host
            for kind in ("unary_unary", "unary_stream", "stream_unary", "stream_stream"):
                setattr(self, f"_{kind}_interceptors", [])
                setattr(self, kind, self._call)

        def _call(self, method: str, *_: Any, **__: Any) -> Call:
            return Call(text(self._host, method.strip("/")))

        def _nothing(self, *_: Any, **__: Any) -> None:
            pass

        close = subscribe = unsubscribe = __exit__ = _nothing

        def __enter__(self) -> Any:
            return self

    def instead(opened: Callable[..., Any]) -> Callable[..., Any]:
        def channel(target: str, *args: Any, **options: Any) -> Any:
            host = str(target).rpartition("/")[2].partition(":")[0]
            return Channel(host) if _is_google(host) else opened(target, *args, **options)

        return channel

    for name in ("secure_channel", "insecure_channel"):
        setattr(module, name, instead(getattr(module, name)))


def _change_client(module: ModuleType) -> None:
    """Let a generated client of Vertex AI use REST in place of gRPC, except for an address that is not Google's."""

    def instead(grpc_transport: Any, rest_transport: Any) -> Callable[..., Any]:
        def transport(*args: Any, **options: Any) -> Any:
            host = str(options.get("host") or _VERTEX).partition(":")[0]
            return (rest_transport if _is_vertex(host) else grpc_transport)(*args, **options)

        return transport

    for each in list(vars(module).values()):
        known = vars(each).get("_transport_registry") if isinstance(each, type) else None
        if known and "grpc" in known and "rest" in known:
            known["grpc"] = instead(known["grpc"], known["rest"])


def _change_projects(module: ModuleType) -> None:
    """Answer what the SDK would ask the Resource Manager when it looks for a bucket."""
    vars(module).update(get_project_number=lambda *_, **__: PROJECT_NUMBER, get_project_id=lambda *_, **__: _project())


def _change_urllib(module: ModuleType) -> None:
    opened = module.AbstractHTTPHandler.do_open

    def do_open(self: Any, http_class: Any, request: Any, **options: Any) -> Any:
        parts = module.urlsplit(request.full_url)
        host = parts.hostname or ""
        has_token, method = request.has_header("Authorization"), request.get_method()
        if not _is_google(host):
            return opened(self, http_class, request, **options)
        if _is_public(method, host, parts.path, parts.query, has_token):
            return _download(lambda: opened(self, http_class, request, **options))
        raise NotEmulated(text(host, f"{method} {parts.path}"))

    module.AbstractHTTPHandler.do_open = do_open


def _change_httpx(module: ModuleType) -> None:
    """Refuse requests of google-genai, also through a proxy."""
    for kind, name in (("HTTPTransport", "handle_request"), ("AsyncHTTPTransport", "handle_async_request")):
        sent = getattr(getattr(module, kind), name)

        def handle(self: Any, request: Any, _sent: Any = sent) -> Any:
            if _is_google(request.url.host):
                raise NotEmulated(text(request.url.host, f"{request.method} {request.url.path}"))
            return _sent(self, request)

        setattr(getattr(module, kind), name, handle)


def _check(host: Any) -> None:
    """Refuse to look a name up, whatever the library."""
    name = host.decode("ascii", "replace") if isinstance(host, bytes | bytearray) else str(host)
    if _is_google(name) and _thread.get_ident() not in _downloads:
        raise NotEmulated(text(name, "a connection"))


def _change_socket(module: ModuleType) -> None:
    def instead(look_up: Callable[..., Any]) -> Callable[..., Any]:
        def checked(host: Any, *args: Any, **options: Any) -> Any:
            _check(host)
            return look_up(host, *args, **options)

        return checked

    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
        setattr(module, name, instead(getattr(module, name)))


def _change_http(module: ModuleType) -> None:
    """Refuse to ask a proxy."""
    tunnel = module.HTTPConnection.set_tunnel

    def set_tunnel(self: Any, host: str, *args: Any, **options: Any) -> None:
        _check(host)
        tunnel(self, host, *args, **options)

    module.HTTPConnection.set_tunnel = set_tunnel


_CHANGES = {
    "google.auth._default": _change_auth,
    "google.cloud.aiplatform.utils.resource_manager_utils": _change_projects,
    "grpc": _change_grpc,
    "grpc.aio": _change_grpc,
    "http.client": _change_http,
    "httpx._transports.default": _change_httpx,
    "requests.adapters": _change_requests,
    "socket": _change_socket,
    "urllib.request": _change_urllib,
}
"""What happens to a module after its import, by name; and `_change_client` to the generated clients."""


class _Finder:
    """Finds the modules that are changed after their import."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        is_client = name.startswith("google.cloud.aiplatform_v1") and name.endswith(".client")
        change = _change_client if is_client else _CHANGES.get(name)
        if change is None:
            return None
        others = [each for each in sys.meta_path if each is not self]
        spec: Any = next(filter(None, (each.find_spec(name, path, target) for each in others)), None)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            change(module)

        spec.loader.exec_module = exec_module
        return spec


def _run_next() -> None:
    """Run the start-up file that Python would have found without this one."""
    import _frozen_importlib
    import _frozen_importlib_external

    own = os.path.dirname(os.path.realpath(__file__))
    folders = [each for each in sys.path if os.path.realpath(each) != own]
    spec = _frozen_importlib_external.PathFinder.find_spec("sitecustomize", folders)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(_frozen_importlib.module_from_spec(spec))


if __name__ == "sitecustomize":
    sys.meta_path.insert(0, _Finder())
    _run_next()
