"""evaluations of models: metrics that users import, stored with the version that they belong to."""

from localvertex._base.json_object import JsonObject
from localvertex.api.models.registered import COLLECTION, Registered, number_to_change
from localvertex.api.rest import messages
from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import ApiError, invalid, not_found, reason_of
from localvertex.api.rest.listing import page
from localvertex.api.rest.store import UNUSABLE, Store
from localvertex.store.model_versions import ModelVersions
from localvertex.store.models import evaluations
from localvertex.store.models.reading import DEFAULT

_MESSAGE = "ModelEvaluation"


class Evaluations:
    """The evaluations of the API; `models/ID` means the default version."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._registered = Registered(store.folder.parent)

    def import_one(self, call: Call) -> JsonObject:
        """Store an evaluation with its version."""
        body = messages.normalise("ImportModelEvaluationRequest", call.body, snake_case=True)
        content = body.get("model_evaluation")
        if not content:
            raise invalid("modelEvaluation is missing")
        messages.check_names(content)
        versions, name = self._parent(call)
        with versions.changing():
            number = number_to_change(versions, name)
            evaluation = versions.evaluate(number, content)
        return self._view(call, versions, number, evaluation)

    def get(self, call: Call) -> JsonObject:
        """Return one evaluation of any version of the model."""
        versions, name = self._parent(call)
        chosen = [number_to_change(versions, name)] if "@" in call.parents["model"] else versions.numbers
        for number in chosen:
            if call.resource_id in evaluations.ids(versions.folder / number):
                return self._view(call, versions, number, call.resource_id)
        raise not_found(call.location.child(COLLECTION, f"{call.parents['model']}/evaluations/{call.resource_id}"))

    def list_all(self, call: Call) -> JsonObject:
        """List the evaluations of a version, the newest first."""
        versions, name = self._parent(call)
        number = number_to_change(versions, name)
        found = [self._view(call, versions, number, each) for each in evaluations.ids(versions.folder / number)]
        return page(call, "modelEvaluations", found, fields=messages.field_names(_MESSAGE))

    def _parent(self, call: Call) -> tuple[ModelVersions, str]:
        """Return the versions of the parent, and the version by number or alias."""
        model_id, _, name = call.parents["model"].partition("@")
        return self._registered.find(call, model_id), name or DEFAULT

    def _view(self, call: Call, versions: ModelVersions, number: str, evaluation: str) -> JsonObject:
        """Build the resource of an evaluation, a stand-in when it is damaged."""
        parent = call.location.child(COLLECTION, f"{versions.folder.name}@{number}")
        name = {"name": f"{parent}/evaluations/{evaluation}"}
        try:
            content = evaluations.content(versions.folder / number, evaluation)
            return messages.normalise(_MESSAGE, content) | name
        except (OSError, ApiError, *UNUSABLE) as error:
            reason = reason_of(error)
            self._store.report(f"{name['name']} is damaged ({reason}); nothing else is affected")
            return name | {"displayName": f"this evaluation is damaged ({reason})"}
