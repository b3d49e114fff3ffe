"""gRPC methods as HTTP requests, by the message classes and HTTP bindings of Google's generated clients.

They come with google-cloud-aiplatform, which is imported at the first call. The bindings come from the annotation
`google.api.http`, so a method that the server has over REST is served without an entry here.
"""

import importlib
import re
from collections.abc import Iterable, Iterator, MutableMapping, MutableSequence, Sequence
from dataclasses import dataclass
from functools import cache
from math import isfinite
from typing import Any, get_args, get_type_hints
from urllib.parse import unquote, urlencode

from localvertex.api.rest.errors import ApiError, Status, invalid

_PATH = re.compile(r"/google\.cloud\.aiplatform\.v1\.([A-Za-z]+)/([A-Za-z]+)")
"""Service and method."""

_BINDINGS = "_get_http_options"
"""The function of a method's class that returns its bindings."""


@dataclass(frozen=True, kw_only=True)
class HttpRequest:
    """A request as REST has it."""

    method: str
    path: str
    query: str
    body: bytes


@dataclass(frozen=True, kw_only=True)
class RpcMethod:
    """One method of a service."""

    request: Any
    """Class of the protobuf message."""
    response: Any
    """Class of the protobuf message."""
    bindings: Sequence[dict[str, str]]
    """HTTP method, URI template and name of the field that is the body."""

    def http_request(self, data: bytes) -> HttpRequest:
        """Convert a serialised request.

        Raises:
            ApiError: It is not such a message, or a name in it has another form.
        """
        from google.api_core.path_template import transcode
        from google.api_core.rest_helpers import flatten_query_params
        from google.protobuf import json_format, message

        try:
            found = transcode(self.bindings, self.request.FromString(data))  # type: ignore[no-untyped-call]
        except message.DecodeError:
            raise invalid(f"the request is not a {self.request.DESCRIPTOR.full_name}") from None
        except ValueError:
            raise invalid(f"the resource name in the request is missing or not of the form {self._names()}") from None
        try:
            rest = json_format.MessageToDict(found["query_params"])
            query = flatten_query_params(rest, strict=True)  # type: ignore[no-untyped-call]
            body = json_format.MessageToJson(found["body"], indent=None) if "body" in found else ""
        except (json_format.Error, ValueError, RecursionError) as error:
            reason = next(_infinite(found.get("body"), ()), "") or str(error).splitlines()[0]
            raise invalid(f"the request has no form in JSON: {reason[:300]}") from None
        path = unquote(found["uri"])
        return HttpRequest(method=found["method"].upper(), path=path, query=urlencode(query), body=body.encode())

    def serialise(self, body: bytes) -> bytes:
        """Convert the JSON of a response.

        Raises:
            ApiError: It contains what the message cannot contain.
        """
        from google.protobuf import json_format

        try:
            reply = json_format.Parse(body, self.response(), ignore_unknown_fields=True)
        except (json_format.ParseError, ValueError, RecursionError) as error:
            text = f"the response cannot be sent over gRPC ({str(error).splitlines()[0][:300]})"
            raise ApiError(Status.INTERNAL, text) from None
        return bytes(reply.SerializeToString())

    def _names(self) -> str:
        """Return the form of the name in the path."""
        return re.sub(r".*\{[a-z_.]+=([^}]*)\}.*", r"\1", self.bindings[0]["uri"])


def _infinite(value: Any, keys: tuple[str, ...]) -> Iterator[str]:
    """Yield the places of numbers that JSON has not, in the objects of a message such as a run's metadata.

    Args:
        value: The message, or a part of it.
        keys: The names of the fields and keys that lead to it.
    """
    from google.protobuf.message import Message
    from google.protobuf.struct_pb2 import ListValue, Struct, Value

    parts: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, Value) and value.WhichOneof("kind") == "number_value":
        if not isfinite(value.number_value):
            yield f"{'.'.join(keys)} is {value.number_value}; expected a finite number"
    elif isinstance(value, Message):
        has_keys = isinstance(value, ListValue | Struct | Value)
        parts = (("" if has_keys else field.name, each) for field, each in value.ListFields())
    elif isinstance(value, MutableMapping):
        parts = value.items()
    elif isinstance(value, MutableSequence):
        parts = enumerate(value)
    for key, each in parts:
        yield from _infinite(each, (*keys, str(key)) if key != "" else keys)


def find(path: str) -> RpcMethod | None:
    """Return the method of a path of the API, such as `/SERVICE/GetModel`, None if there is none."""
    match = _PATH.fullmatch(path)
    try:
        return _of_service(*match.groups()) if match else None
    except (ModuleNotFoundError, AttributeError):
        return None


@cache
def _of_service(service: str, method: str) -> RpcMethod:
    """Read a method of a service of Vertex AI."""
    base = getattr(_transport(service, "rest_base"), f"_Base{service}RestTransport")
    bindings = getattr(getattr(base, f"_Base{method}"), _BINDINGS)()
    transport = getattr(_transport(service, "grpc"), f"{service}GrpcTransport")
    # The type of the property: a callable from the request to the response.
    (request,), response = get_args(get_type_hints(getattr(transport, _snake_case(method)).fget)["return"])
    # Some classes of the clients wrap one of protobuf.
    response = response.pb() if hasattr(response, "pb") else response
    return RpcMethod(request=request.pb(), response=response, bindings=bindings)


def _transport(service: str, name: str) -> Any:
    return importlib.import_module(f"google.cloud.aiplatform_v1.services.{_snake_case(service)}.transports.{name}")


def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
