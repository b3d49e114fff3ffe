"""The methods of Vertex AI's REST API, read from the bindings of Google's generated clients.

They come with google-cloud-aiplatform. Like messages.py, this imports them at the first request that needs them.
"""

import importlib
import pkgutil
import re
from dataclasses import dataclass
from functools import cache
from types import ModuleType

_MIXINS = {
    "GetLocation": "Locations",
    "ListLocations": "Locations",
    "GetIamPolicy": "IAMPolicy",
    "SetIamPolicy": "IAMPolicy",
    "TestIamPermissions": "IAMPolicy",
    "CancelOperation": "Operations",
    "DeleteOperation": "Operations",
    "GetOperation": "Operations",
    "ListOperations": "Operations",
    "WaitOperation": "Operations",
}
"""Methods that every service has, and the service that they belong to."""

_BINDINGS = "_get_http_options"
"""The function of a method's class that returns its bindings."""

_VARIABLE = re.compile(r"\{[a-z0-9_.]+=([^}]*)\}")


@dataclass(frozen=True, kw_only=True)
class KnownMethod:
    """One HTTP binding of a method."""

    name: str
    """Service and method, e.g. PipelineService.GetPipelineJob."""
    http_method: str
    template: str
    """The path, with `*` for an id."""

    @property
    def example(self) -> str:
        """A path of the method."""
        return self.template.replace("*", "x")

    def matches(self, http_method: str, path: str) -> bool:
        """Return whether a request is one of this method."""
        return self.http_method == http_method and bool(_pattern(self.template).fullmatch(path))


@cache
def known_methods() -> tuple[KnownMethod, ...]:
    """Return the methods of the API, ordered by name."""
    from google.cloud.aiplatform_v1 import services

    found: dict[tuple[str, str], KnownMethod] = {}
    for each in pkgutil.iter_modules(services.__path__):
        module = importlib.import_module(f"{services.__name__}.{each.name}.transports.rest_base")
        for method in _methods(module):
            found.setdefault((method.http_method, method.template), method)
    return tuple(sorted(found.values(), key=lambda method: (method.name, method.template)))


def find(http_method: str, path: str) -> KnownMethod | None:
    """Return the method that a request calls, None when the API has no such method."""
    return next((each for each in known_methods() if each.matches(http_method, path)), None)


def _methods(module: ModuleType) -> list[KnownMethod]:
    """Read the bindings of one service."""
    (transport,) = (value for name, value in vars(module).items() if re.fullmatch("_Base[A-Za-z]+RestTransport", name))
    service = transport.__name__.removeprefix("_Base").removesuffix("RestTransport")
    found = []
    for name, value in vars(transport).items():
        method = name.removeprefix("_Base")
        bindings: list[dict[str, str]] = getattr(value, _BINDINGS, list)()
        found += [
            KnownMethod(
                name=f"{_MIXINS.get(method, service)}.{method}",
                http_method=each["method"].upper(),
                template=_VARIABLE.sub(r"\1", each["uri"]),
            )
            for each in bindings
        ]
    return found


@cache
def _pattern(template: str) -> re.Pattern[str]:
    """Build the pattern of a template; a colon in the last part starts the name of a custom method."""
    words = [re.escape(each) for each in template.split("*")]
    # Only the last part of a path can have a colon and a name after it.
    return re.compile("[^/]+".join(words[:-1]) + "[^/:]+" + words[-1] if len(words) > 1 else words[0])
