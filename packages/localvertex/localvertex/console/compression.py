"""Compressed answers of the console: JSON and the files of the page, never event streams or files of runs.

Their sizes show nothing to an observer: no answer contains the token or the cookie, which are in headers only, and both
ends are on this machine.
"""

import gzip
from collections.abc import Mapping

from starlette.responses import Response

from localvertex.api.rest.json_response import JsonResponse

_MIN_BYTES = 1000
"""Smaller answers fit into one packet anyway."""

_LEVEL = 3
"""Nearly as small as the default of 9, in a fifth of the time."""


class FileResponse(Response):
    """A file of the page."""


def compressed(response: Response, headers: Mapping[str, str]) -> Response:
    """Compress an answer, if its client takes that."""
    is_text = isinstance(response, JsonResponse | FileResponse) and len(response.body) > _MIN_BYTES
    if is_text and "gzip" in headers.get("accept-encoding", ""):
        response.body = gzip.compress(response.body, _LEVEL)
        size = str(len(response.body))
        response.headers.update({"Content-Length": size, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"})
    return response
