"""Find the pipeline's own models and endpoints by their display name and its label."""

import json
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from components import vertex_clients
from components.registry.labels import PROJECT_LABEL
from components.vertex_clients import call
from localvertex._base.userinput.errors import UserError


class Labelled:
    """Resources that a step reaches.

    Args:
        region: Region of the resources.
        pipeline_root: Pipeline root of the run, which is local in a local run.
    """

    def __init__(self, *, region: str, pipeline_root: str) -> None:
        self.region, self.root = region, pipeline_root

    @cached_property
    def parent(self) -> str:
        """The project and the region of the resources."""
        return vertex_clients.parent(self.region, self.root)

    def named(self, method: Callable[..., Any], display_name: str, *, what: str) -> list[Any]:
        """Return the resources that a list method finds by their display name; see `call` for `what`."""
        # As it is: not every reader of filters knows the escapes of JSON. `*` in the name finds other names as well.
        condition = f"display_name={json.dumps(display_name, ensure_ascii=False)}"
        found: list[Any] = call(method, {"parent": self.parent, "filter": condition}, what=what)
        return [each for each in found if each.display_name == display_name]

    def own(self, named: Iterable[Any], display_name: str, *, kind: str) -> str:
        """Return the resource name of the one with the pipeline's label, empty if there is none.

        Raises:
            UserError: There are several.
        """
        key, value = PROJECT_LABEL
        found = [each.name for each in named if each.labels.get(key) == value]
        if len(found) > 1:
            raise UserError(
                f"{len(found)} {kind} in {self.region} have the name {display_name!r} and the label {key}={value}: "
                f"{', '.join(found[:5])}; remove the label from all but one of them"
            )
        return found[0] if found else ""
