"""The user's choice of how container commands run."""

from dataclasses import dataclass

from localvertex._base.userinput.errors import UserError

ENGINES = ("docker", "podman")


@dataclass(frozen=True, kw_only=True)
class ContainerOptions:
    """How container commands may run.

    Raises:
        UserError: Two of the options exclude each other.
    """

    engine: str = ""
    """Program that runs containers in their own images; empty for none."""
    allow_network: bool = False
    """Whether container commands reach more than the loopback interface."""
    allow_host_commands: bool = False
    """Whether container commands run on this machine like any program of the user."""

    def __post_init__(self) -> None:
        """Refuse options that exclude each other."""
        if self.engine not in ("", *ENGINES):
            raise UserError(f"--engine {self.engine}: expected {' or '.join(ENGINES)}")
        if self.engine and self.allow_host_commands:
            raise UserError(
                f"--engine {self.engine} and --allow-host-commands exclude each other: "
                "container commands run either in their images or on this machine; leave one out"
            )
