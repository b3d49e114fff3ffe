"""The check of each request, whatever its transport: the token of the work folder, or the cookie of a browser."""

import hashlib
import hmac

from starlette.requests import cookie_parser

from localvertex.api.access.step_access import StepAccess
from localvertex.executors.step_jobs import StepJobs

REFUSAL = (
    "this server requires the token of its work folder: call localvertex.client.init(work_dir) in place of "
    "aiplatform.init, or send 'Authorization: Bearer TOKEN' with the text of WORK_DIR/api/token; "
    "in a browser, open the address that the server printed when it started"
)
"""The answer to a request without the token."""

_SCHEME = "bearer"

_COOKIE = "localvertex"


class Access:
    """Who may call a server.

    Args:
        token: The token of the work folder.
        steps: The tokens of runs.
        refusal: The answer to a request without a token.
    """

    def __init__(self, token: str, *, steps: StepAccess | None = None, refusal: str = REFUSAL) -> None:
        self._token, self._steps, self.refusal = token.encode(), steps or StepAccess(), refusal

    def allows(self, header: str | None) -> bool:
        """Return whether a call may be carried out.

        Args:
            header: Its `authorization` header.
        """
        return bool(self._token) and hmac.compare_digest(_token(header), self._token)

    def allows_step(self, header: str | None, method: str, path: str) -> bool:
        """Return whether a call may be carried out because it has the token of a run.

        Args:
            header: Its `authorization` header.
            method: Its HTTP method.
            path: Its path.
        """
        return self._steps.allows(_token(header), method, path)

    def run_of(self, header: str | None) -> str | None:
        """Return the run whose token an `authorization` header has, whatever that allows; None without one."""
        return self._steps.run_of(_token(header))

    def jobs_of(self, header: str | None) -> StepJobs | None:
        """Return the jobs that the token in an `authorization` header allows to create; None without any."""
        return self._steps.jobs_of(_token(header))

    def is_session(self, header: str | None, *, port: str) -> bool:
        """Return whether a request is from a browser that has sent the token.

        Args:
            header: The `cookie` header of the request.
            port: The port of the server.
        """
        # Other servers of this machine have cookies of any form.
        given = cookie_parser(header or "").get(_cookie_name(port), "")
        return hmac.compare_digest(_bytes(given), _bytes(self._session))

    def cookie(self, *, port: str) -> str:
        """Return the `set-cookie` header for a browser that has sent the token."""
        return f"{_cookie_name(port)}={self._session}; Path=/; HttpOnly; SameSite=Strict"

    @property
    def _session(self) -> str:
        """The value of the cookie.

        Browsers send it to each port of this machine, so that a server of another user could receive it. Hence it is
        not the token, and counts only from processes of this user.
        """
        return hmac.new(self._token, b"use the console", hashlib.sha256).hexdigest()


def _cookie_name(port: str) -> str:
    """Return the name of the cookie; all ports of a host share their cookies."""
    return f"{_COOKIE}-{port}"


def _token(header: str | None) -> bytes:
    """Return the token in an `authorization` header, or an empty string."""
    scheme, _, given = (header or "").partition(" ")
    return _bytes(given.strip()) if scheme.lower() == _SCHEME else b""


def _bytes(text: str) -> bytes:
    return text.encode(errors="replace")
