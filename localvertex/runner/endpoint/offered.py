"""The collections that steps may call, as `localvertex serve` and the endpoint of a run have them."""

from collections.abc import Callable
from typing import Any

from localvertex.serve.api.call import Call
from localvertex.serve.api.operations import Operations
from localvertex.serve.api.store import Store
from localvertex.serve.models.evaluations import Evaluations
from localvertex.serve.models.models import Models

Method = Callable[[Call], dict[str, Any]]

Methods = dict[str, tuple[str, str, Method]]
"""Of a collection: HTTP method, path after the collection's, implementation."""


class Offered:
    """The models of a work directory, and the operations."""

    def __init__(self, store: Store, operations: Operations) -> None:
        self.operations = operations
        self.models = Models(store, operations)
        self.evaluations = Evaluations(store)

    @property
    def collections(self) -> dict[str, Methods]:
        """The methods of each collection."""
        models, operations = self.models, self.operations
        evaluations, of_model = self.evaluations, "/{model:version}/evaluations"
        return {
            "models": {
                "upload": ("POST", ":upload", models.upload),
                "get": ("GET", "/{id:version}", models.get),
                "list": ("GET", "", models.list_all),
                "listVersions": ("GET", "/{id:version}:listVersions", models.list_versions),
                "patch": ("PATCH", "/{id:version}", models.patch),
                "mergeVersionAliases": ("POST", "/{id:version}:mergeVersionAliases", models.merge_version_aliases),
                "delete": ("DELETE", "/{id:id}", models.delete),
                "deleteVersion": ("DELETE", "/{id:version}:deleteVersion", models.delete_version),
                "evaluations.import": ("POST", f"{of_model}:import", evaluations.import_one),
                "evaluations.get": ("GET", f"{of_model}/{{id:id}}", evaluations.get),
                "evaluations.list": ("GET", of_model, evaluations.list_all),
            },
            "operations": {
                "get": ("GET", "/{id:id}", operations.get),
                "list": ("GET", "", operations.list_all),
                "cancel": ("POST", "/{id:id}:cancel", operations.cancel),
                "delete": ("DELETE", "/{id:id}", operations.delete),
                "wait": ("POST", "/{id:id}:wait", operations.wait),
            },
        }

    def close(self) -> None:
        """Stop everything that runs."""
