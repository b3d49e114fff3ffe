"""Vertex AI's contract for prediction containers: the AIP_* variables that name port, routes and model."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import quote

_DEFAULT_PORT = 8080
_ROUTE = re.compile(r"/[\w./:@-]*", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Contract:
    """The address at which the server listens, and the model that it serves."""

    host: str
    """An address of this machine."""
    port: int
    """0 for a free one."""
    health_route: str
    predict_route: str
    model: str
    """Folder of the exported model, which may be on gs://; empty if none is given."""

    def __post_init__(self) -> None:
        """Refuse what cannot be served.

        Raises:
            UserError: A value is not valid.
        """
        if not 0 <= self.port <= 65535:
            raise UserError(f"port {self.port} is out of range; expected 0 (any free one) to 65535")
        for route in (self.health_route, self.predict_route):
            if not _ROUTE.fullmatch(route):
                raise UserError(f"route {quote(route)} is not valid; expected a path such as /predict")
        if self.health_route == self.predict_route:
            raise UserError(f"health and predictions have the same route, {self.health_route}; expected two")


def of_environment(given: Mapping[str, str] = os.environ) -> Contract:
    """Return the contract of this process; without Vertex AI's variables, one for this machine alone.

    Only with AIP_HTTP_PORT does the server listen on all addresses, as Vertex AI needs; AIP_HTTP_HOST names one.

    Raises:
        UserError: A variable is not valid.
    """
    port = given.get("AIP_HTTP_PORT", "")
    if port and not re.fullmatch(r"\d{1,5}", port, re.ASCII):
        raise UserError(f"AIP_HTTP_PORT is {quote(port)}; expected a port such as {_DEFAULT_PORT}")
    everywhere = "0.0.0.0"  # noqa: S104 - the service reaches a container through its outer address
    return Contract(
        host=given.get("AIP_HTTP_HOST") or (everywhere if port else "127.0.0.1"),
        port=int(port or _DEFAULT_PORT),
        health_route=given.get("AIP_HEALTH_ROUTE") or "/health",
        predict_route=given.get("AIP_PREDICT_ROUTE") or "/predict",
        model=given.get("AIP_STORAGE_URI", ""),
    )
