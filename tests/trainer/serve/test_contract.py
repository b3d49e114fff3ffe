"""The server is open to other machines only where Vertex AI asks for it."""

import pytest

from localvertex._base.userinput.errors import UserError
from trainer.serve import contract


def test_without_the_services_variables_only_this_machine_is_served() -> None:
    found = contract.of_environment({})
    assert (found.host, found.port) == ("127.0.0.1", 8080)
    assert (found.health_route, found.predict_route) == ("/health", "/predict")
    assert found.model == ""


def test_the_services_variables_name_port_routes_and_model() -> None:
    given = {
        "AIP_HTTP_PORT": "7080",
        "AIP_HEALTH_ROUTE": "/v1/endpoints/1/deployedModels/2",
        "AIP_PREDICT_ROUTE": "/v1/endpoints/1/deployedModels/2:predict",
        "AIP_STORAGE_URI": "gs://bucket/model",
    }
    found = contract.of_environment(given)
    assert (found.host, found.port, found.model) == ("0.0.0.0", 7080, "gs://bucket/model")
    assert (found.health_route, found.predict_route) == (given["AIP_HEALTH_ROUTE"], given["AIP_PREDICT_ROUTE"])
    assert contract.of_environment({**given, "AIP_HTTP_HOST": "127.0.0.1"}).host == "127.0.0.1"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"AIP_HTTP_PORT": "http"}, "AIP_HTTP_PORT is 'http'; expected a port"),
        ({"AIP_HTTP_PORT": "70000"}, "port 70000 is out of range"),
        ({"AIP_HEALTH_ROUTE": "health"}, "route 'health' is not valid"),
        ({"AIP_PREDICT_ROUTE": "/{x}"}, "route '/{x}' is not valid"),
        ({"AIP_PREDICT_ROUTE": "/health"}, "have the same route"),
    ],
)
def test_variables_that_are_not_valid_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message.replace("{", r"\{")):
        contract.of_environment(given)
