"""Keeps a step's calls of Google's services on this machine; Python runs this file when it starts.

Nothing happens until a step imports one of the modules in `_CHANGES`. Then, in that module:

1. `google.auth.default` returns credentials with a placeholder in place of a token, and a project id.
2. Calls of Vertex AI go to the endpoint of the run, by REST, because it has no gRPC. The token of the run is added
   when a request is sent, so that no code of the step has it. `--gcs-root` also sends calls of Cloud Storage there.
3. Calls of all other services raise `MethodNotImplemented` (501) of google-api-core, without a look-up of a name. Only
   a plain download of a public object is still possible (decision 27).

Standard library only, no import of this package, nothing newer than Python 3.7: a step may have its own interpreter.
"""

from __future__ import annotations  # noqa: TID251 - older interpreters also run this file

import _thread
import os
import sys

TYPE_CHECKING = False  # typing's own would be imported in every step
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

_GOOGLES = (".googleapis.com", ".vertexai.goog")
_VERTEX, _STORAGE = "aiplatform.googleapis.com", "storage.googleapis.com"

_BIGQUERY = "https://bigquery.googleapis.com/"

_HEADER = "Authorization"

_API_PATHS = ("/storage/", "/download/", "/upload/", "/batch/", "/resumable/")
"""Paths of Cloud Storage's API; other paths are BUCKET/OBJECT."""

PLACEHOLDER = "localvertex-step"
"""The token that code of a step sees."""

PROJECT_NUMBER = "100000000001"
"""`values.buckets.PROJECT_NUMBER`."""

_noted: set[str] = set()

_downloads: set[int] = set()
"""Threads that download a public object."""


class NotEmulated(RuntimeError):
    """A call of a service of Google that stays on this machine; no OSError, which libraries repeat or hide."""


def _note(**refused: str) -> None:
    """Note once what was refused, from which the run makes its proposal; several processes may write."""
    import json

    line = json.dumps(refused) + "\n"
    try:
        if line not in _noted:
            with open(os.path.join(os.environ["LOCALVERTEX_STEP"], "refused.jsonl"), "a", encoding="ascii") as file:
                file.write(line)
    except (KeyError, OSError):
        pass
    _noted.add(line)


def _refuse(host: str, call: str, way_on: str = "", rows: str = "") -> Any:
    """Raise what no library of Google repeats, with one line, and note it."""
    _note(host=host, rows=rows)
    advice = f"{way_on}give the step's outputs as [step.NAME] outputs in localvertex.toml"
    if host.endswith(_STORAGE):
        advice = f"give a folder per bucket with --gcs-root DIR, {advice}"
    kind: Any = NotEmulated
    try:
        from google.api_core.exceptions import MethodNotImplemented as kind
    except ImportError:
        pass
    if _is_vertex(host):
        host += f" ({_sdk()})"
    text = f"{call} was not sent: localvertex does not answer it for {host}"
    raise kind(f"{text}; {advice}, or run it --with-credentials")


def _is_google(host: str) -> bool:
    return f".{host.rstrip('.').lower()}".endswith(_GOOGLES)


def _is_vertex(host: str) -> bool:
    """Return whether this is `aiplatform.` of any region, or of several: `aiplatform.us.rep.googleapis.com`."""
    return "aiplatform." in host and _is_google(host)


def _endpoint() -> Any:
    """Return address and token of the run's endpoint; empty if there is none."""
    import json

    try:
        with open(os.environ["LOCALVERTEX_ENDPOINT"], encoding="ascii") as file:
            found = json.load(file)
        return found["address"], found["token"]
    except (KeyError, OSError, ValueError):
        return "", ""


def _sdk() -> str:
    """Return the name and the version of Google's SDK."""
    name = "google-cloud-aiplatform"
    try:
        from importlib import metadata

        return f"{name} {metadata.version(name)}"
    except ImportError:
        return name


def _carry(path: str, message: bytes) -> bytes:
    """Return the answer of the run's endpoint to a call over gRPC, which it gets by HTTP."""
    import json
    from base64 import b64decode, b64encode
    from http.client import HTTPConnection

    address, token = _endpoint()
    connection = HTTPConnection(address.rpartition("/")[2])
    body = json.dumps({"path": path, "message": b64encode(message).decode()})
    connection.request("POST", "/rpc", body, {"Content-Type": "application/json", _HEADER: f"Bearer {token}"})
    found = json.loads(connection.getresponse().read())
    connection.close()
    if "error" in found:
        from google.api_core.exceptions import from_http_status

        raise from_http_status(  # type: ignore[no-untyped-call]
            found["error"]["code"], found["error"]["message"]
        )
    return b64decode(found["message"])


def _host(host: Any, *_: Any, **__: Any) -> Any:
    return "", f"//{os.fsdecode(host or '')}", True


def _peer(_: Any, address: Any) -> Any:
    host = address[0] if isinstance(address, tuple) and address else ""
    return _host(host if isinstance(host, (str, bytes)) else "")


def _request(_: Any, method: str, url: Any, *__: Any, **___: Any) -> Any:
    return method, str(url), True


_CHECKED: dict[str, dict[str, Any]] = {
    "aiohttp.client": {"ClientSession._request": _request},
    "http.client": {"HTTPConnection.set_tunnel": lambda _, *args, **__: _host(*args)},
    "httplib2": {"Http.request": lambda _, uri, method="GET", *__, **___: (method, uri, True)},
    "httpx._models": {"Request.__init__": _request},
    "socket": {
        **dict.fromkeys(("getaddrinfo", "gethostbyname", "gethostbyname_ex"), _host),
        **dict.fromkeys(("socket.connect", "socket.connect_ex"), _peer),
    },
    "urllib.request": {
        "AbstractHTTPHandler.do_open": lambda _, __, request, **___: (
            request.get_method(),
            request.full_url,
            request.has_header(_HEADER),
        )
    },
}
"""Functions that refuse addresses of Google, by module: method, address, and whether there is a token or may be one.

The name of a host is looked up by `socket`, or by a proxy; the others are here for the name of the method.
"""


def _change_checked(module: ModuleType) -> None:
    for name, look in _CHECKED[module.__name__].items():
        owner, _, attribute = name.rpartition(".")
        _check(getattr(module, owner, module), attribute, look)


def _check(owner: Any, name: str, look: Any) -> None:
    original = getattr(owner, name)

    def checked(*args: Any, **options: Any) -> Any:
        from urllib.parse import urlsplit

        method, address, has_token = look(*args, **options)
        url = urlsplit(address)
        host, thread = url.hostname or "", _thread.get_ident()
        if not _is_google(host) or thread in _downloads:
            return original(*args, **options)
        # Everybody can read some objects, for example a dataset of Keras.
        is_object = host.endswith(_STORAGE) and not url.path.startswith(_API_PATHS) and not url.query
        if not is_object or has_token or method not in ("GET", "HEAD"):
            _refuse(host, f"{method} {url.path}" if method else "a connection")
        _downloads.add(thread)
        try:
            return original(*args, **options)
        finally:
            _downloads.discard(thread)

    setattr(owner, name, checked)


def _routed(address: str, given: Any) -> Any:
    """Return the address at the run's endpoint and the header with its token; nothing for requests to others."""
    from urllib.parse import urlsplit

    url = urlsplit(address)
    own, token = _endpoint()
    is_object = url.hostname == _STORAGE and url.path.startswith(_API_PATHS)
    is_local = (is_object and "LOCALVERTEX_GCS_ROOT" in os.environ) or _is_vertex(url.hostname or "")
    is_own = address.startswith(f"{own}/") and given in (None, f"Bearer {PLACEHOLDER}")
    return (own + address.partition(url.netloc)[2], f"Bearer {token}") if own and (is_local or is_own) else ()


def _change_aiohttp(module: ModuleType) -> None:
    """Route the requests of gcsfs, with which pandas and fsspec read gs://."""
    _change_checked(module)
    request = module.ClientSession._request  # noqa: SLF001 - what all its methods call

    def local_request(self: Any, method: str, url: Any, **options: Any) -> Any:
        headers = dict(options.get("headers") or {})
        routed = _routed(str(url), headers.get(_HEADER))
        if routed:
            url = type(url)(routed[0], **({} if isinstance(url, str) else {"encoded": True}))
            options.update(headers={**headers, _HEADER: routed[1]}, proxy=None)
        return request(self, method, url, **options)

    module.ClientSession._request = local_request  # noqa: SLF001


def _from_files(request: Any, found: Any) -> Any:
    """Return the response of BigQuery from the step's files; without one, the query is noted and refused."""
    import io
    import json

    from localvertex_bigquery import Unnamed, answer  # type: ignore[import-not-found]

    try:
        content = answer(request.method, request.url, request.body)
    except Unnamed as error:
        way_on = f"{error}: name files of rows as [step.NAME] bigquery, or "
        call = f"{request.method} {request.path_url.partition('?')[0]}"
        _refuse("bigquery.googleapis.com", call, way_on, error.name)
    found.status_code, found.url, found.request = 200, request.url, request
    found.headers["Content-Type"] = "application/json"
    found.raw = io.BytesIO(json.dumps(content).encode())
    return found


def _change_requests(module: ModuleType) -> None:
    """Send, refuse or pass on each request of the library on which Google's are built."""
    _check(module.HTTPAdapter, "send", lambda _, sent, *__, **___: (sent.method, sent.url, _HEADER in sent.headers))
    send = module.HTTPAdapter.send

    def local_send(self: Any, request: Any, *args: Any, **options: Any) -> Any:
        if request.url.startswith(_BIGQUERY):
            return _from_files(request, module.Response())
        routed = _routed(request.url, request.headers.get(_HEADER))
        if routed:
            request = request.copy()
            request.url, request.headers[_HEADER] = routed
            # A proxy would get the token.
            options["proxies"] = {}
        return send(self, request, *args, **options)

    module.HTTPAdapter.send = local_send


def _change_grpc(module: ModuleType) -> None:
    """Refuse the calls of channels to Google, including `grpc.aio`'s; the run's endpoint answers those to Vertex AI.

    A client of Vertex AI that has REST does not come here, see `_change_client`.
    """
    kinds = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")

    def instead(opened: Any) -> Any:
        def channel(target: str, *args: Any, **options: Any) -> Any:
            host = target.rpartition("/")[2].partition(":")[0]
            if not _is_google(host):
                return opened(target, *args, **options)

            def method(name: str = "", *_: Any, **__: Any) -> Any:
                def call(*_: Any, **__: Any) -> Any:
                    _refuse(host, name.strip("/"))

                vars(call).update(with_call=call, future=call)
                return call

            def unary(name: str, request_serializer: Any, response_deserializer: Any, *_: Any, **__: Any) -> Any:
                def call(request: Any, *_: Any, **__: Any) -> Any:
                    return response_deserializer(_carry(name, request_serializer(request)))

                vars(call).update(with_call=lambda *args, **options: (call(*args, **options), None), future=call)
                return call

            # `grpc.aio` has lists of interceptors, to which Google's libraries add.
            lists: dict[str, Any] = {f"_{kind}_interceptors": [] for kind in kinds}
            refusing = object.__new__(refusing_kind)
            vars(refusing).update(dict.fromkeys((*kinds, "close"), method), **lists)
            if _is_vertex(host) and module.__name__ == "grpc" and _endpoint()[0]:
                vars(refusing)["unary_unary"] = unary
            return refusing

        return channel

    # Generated clients call what they are given as a channel, unless it is one.
    refusing_kind = type(module.Channel)("RefusingChannel", (module.Channel,), {})
    refusing_kind.__abstractmethods__ = frozenset()
    for name in ("secure_channel", "insecure_channel"):
        setattr(module, name, instead(getattr(module, name)))


def _change_client(module: ModuleType) -> None:
    """Let a generated client of Vertex AI use REST in place of gRPC, except for an address that is not Google's."""
    for each in list(vars(module).values()):
        known = vars(each).get("_transport_registry", {}) if isinstance(each, type) else {}
        if "rest" in known:

            def transport(*args: Any, _grpc: Any = known["grpc"], _rest: Any = known["rest"], **options: Any) -> Any:
                host = options.get("host", _VERTEX).partition(":")[0]
                return (_rest if _is_vertex(host) else _grpc)(*args, **options)

            known["grpc"] = transport


def _change_auth(module: ModuleType) -> None:
    from google.auth import credentials

    class LocalCredentials(credentials.Credentials):
        """Credentials that mean something on this machine only."""

        def refresh(self, request: Any) -> None:
            """Do nothing."""

    def default(*_: Any, **__: Any) -> Any:
        found: Any = LocalCredentials()  # type: ignore[no-untyped-call]
        found.token = PLACEHOLDER
        named = os.environ.get("GOOGLE_CLOUD_PROJECT")
        return found, named or os.environ.get("CLOUD_ML_PROJECT_ID", "local-project")

    vars(default)["__wrapped__"], vars(module)["default"] = vars(module)["default"], default


_CHANGES = {
    "google.auth._default": _change_auth,
    # The SDK would ask the Resource Manager when it looks for a bucket.
    "google.cloud.aiplatform.utils.resource_manager_utils": lambda module: setattr(
        module, "get_project_number", lambda *_, **__: PROJECT_NUMBER
    ),
    # By its other way to rows, gRPC, they come from no file.
    "google.cloud.bigquery.table": lambda module: setattr(
        module.RowIterator, "_should_use_bqstorage", lambda *_, **__: False
    ),
    "grpc": _change_grpc,
    "grpc.aio": _change_grpc,
    "requests.adapters": _change_requests,
    **dict.fromkeys(_CHECKED, _change_checked),
    "aiohttp.client": _change_aiohttp,
}
"""Changes to a module after its import, by its name; `_change_client` changes the generated clients."""


class _Finder:
    """Finds the modules that are changed after their import."""

    def find_spec(self, name: str, *where: Any) -> Any:
        is_client = name.startswith("google.cloud.aiplatform_v1") and name.endswith(".client")
        change = _change_client if is_client else _CHANGES.get(name)
        others = [each for each in sys.meta_path if change and each is not self]
        spec: Any = next(filter(None, (each.find_spec(name, *where) for each in others)), None)
        if change and spec and spec.loader:
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

    folders = [each for each in sys.path if each != os.path.dirname(__file__)]
    spec = _frozen_importlib_external.PathFinder.find_spec("sitecustomize", folders)
    if spec and spec.loader:
        spec.loader.exec_module(_frozen_importlib.module_from_spec(spec))


if __name__ == "sitecustomize":
    sys.meta_path.insert(0, _Finder())
    _run_next()
