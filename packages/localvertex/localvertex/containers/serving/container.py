"""The serving container of a model: what it runs, at which port and under which routes (ModelContainerSpec of the API).

Rules after the API's reference and Vertex AI's documentation of custom containers for predictions.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from localvertex._base.userinput.errors import UserError
from localvertex.containers import commands
from localvertex.containers.choice import Choice

_DEFAULT_PORT = 8080

_REFERENCE = re.compile(r"\$(\$?)\(([A-Za-z_][\w.-]*)\)")
"""A variable in a command, an argument or another variable; with two dollar signs only text."""

_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s")

_NO_COMMAND = (
    "the serving container has no command, and the entry point of its image is not known locally; set the command of "
    "its containerSpec, or give a local command with --image {image}=COMMAND"
)


@dataclass(frozen=True, kw_only=True)
class ServingContainer:
    """A ModelContainerSpec."""

    image: str
    command: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    port: int = _DEFAULT_PORT
    health_route: str = ""
    """Empty: the default, which depends on the endpoint."""
    predict_route: str = ""
    timeout_seconds: float | None = None
    """Limit of a deployment; None for the default."""

    @classmethod
    def of_model(cls, content: Mapping[str, Any]) -> "ServingContainer":
        """Read the container of a model in the registry.

        Raises:
            UserError: It has none, or one that is not valid.
        """
        spec = content.get("container_spec")
        if not isinstance(spec, dict) or not spec.get("image_uri"):
            raise UserError(f"the model {content.get('display_name', '')!r} has no serving container (containerSpec)")
        try:
            ports = [int(each["container_port"]) for each in spec.get("ports") or []]
            timeout = _SECONDS.fullmatch(str(spec.get("deployment_timeout", "")))
            return cls(
                image=str(spec["image_uri"]),
                command=_words(spec, "command"),
                arguments=_words(spec, "args"),
                env={str(each["name"]): str(each.get("value", "")) for each in spec.get("env") or []},
                port=ports[0] if ports else _DEFAULT_PORT,
                health_route=str(spec.get("health_route", "")),
                predict_route=str(spec.get("predict_route", "")),
                timeout_seconds=float(timeout[1]) if timeout else None,
            )
        except (LookupError, TypeError, ValueError) as error:
            text = f"containerSpec of the model {content.get('display_name', '')!r} is not valid: "
            raise UserError(f"{text}{type(error).__name__}: {error}") from None

    def problem(self, choice: Choice) -> str:
        """Return why it cannot run here; empty when it can, or when only the run can decide.

        Raises:
            UserError: The engine that the user has named cannot be used.
        """
        if self.image in choice.command_prefixes:
            return ""
        if not self.command and not choice.options.engine:
            return _NO_COMMAND.format(image=self.image)
        words = (*self.command, *self.arguments)
        if text := commands.problem_of_command(words, dict(self.env), choice):
            return f"{text} (serving container {self.image!r})"
        if choice.options.engine and self.is_confined(choice) and not choice.options.allow_network:
            return f"--engine {choice.options.engine} reaches serving containers only with --allow-network; add it"
        return ""

    def is_confined(self, choice: Choice) -> bool:
        """Return whether its command runs as a container command, and not as a program of this machine's Python."""
        return self.image not in choice.command_prefixes and commands.is_foreign_command(
            (*self.command, *self.arguments), dict(self.env), choice
        )

    def words(self, variables: Mapping[str, str]) -> tuple[list[str], list[str]]:
        """Return command and arguments with the references to variables replaced."""
        return [expanded(each, variables) for each in self.command], [
            expanded(each, variables) for each in self.arguments
        ]


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by the variable, as Kubernetes does; an unknown name and `$$(NAME)` stay text."""

    def value(match: re.Match[str]) -> str:
        if match[1]:
            return match[0][1:]
        return variables.get(match[2], match[0])

    return _REFERENCE.sub(value, text)


def _words(spec: Mapping[str, Any], name: str) -> tuple[str, ...]:
    words = spec.get(name) or []
    if not isinstance(words, list) or not all(isinstance(each, str) for each in words):
        raise TypeError(f"{name}: expected a list of strings")
    return tuple(words)
