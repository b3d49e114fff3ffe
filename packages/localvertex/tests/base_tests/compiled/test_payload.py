"""The grammar of a launcher's arguments: structures that depend on inputs, and JSON with placeholders in it."""

import pytest

from localvertex._base.compiled.payload import decode, expand, mentioned_inputs, pieces
from localvertex._base.userinput.errors import UserError

POOLS = "{{$.inputs.parameters['pools']}}"
NAME = "{{$.inputs.parameters['name']}}"
IF = '{"IfPresent": {"InputName": "parent", "Then": ["--parent", "x"], "Else": ["--new"]}}'


def test_a_placeholder_outside_of_strings_becomes_a_string_of_its_own() -> None:
    template = f'{{"name": "a {NAME}", "quote": "\\"", "pools": {POOLS}, "list": [{POOLS}, 1]}}'
    assert decode(template) == {"name": f"a {NAME}", "quote": '"', "pools": POOLS, "list": [POOLS, 1]}


def test_line_feeds_in_strings_are_accepted_as_the_launchers_do() -> None:
    assert decode('{"a": "x\ny"}') == {"a": "x\ny"}


@pytest.mark.parametrize("template", ["", "{", f"{{{POOLS}}}", '{"a": }'])
def test_what_is_not_json_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="Expecting"):
        decode(template)


def test_pieces_know_whether_a_placeholder_is_in_a_string() -> None:
    found = list(pieces(f'{{"a": "{NAME}", "b": {POOLS}}}'))
    assert [(placeholder, is_in_string) for _, placeholder, is_in_string in found] == [
        (".inputs.parameters['name']", True),
        (".inputs.parameters['pools']", False),
        (None, False),
    ]
    assert found[-1][0] == "}"


def test_structures_depend_on_the_inputs_that_are_present() -> None:
    words = ["run", '{"Concat": ["{", "\\"a\\": 1", "}"]}', IF]
    assert expand(words, {"parent"}) == ["run", '{"a": 1}', "--parent", "x"]
    assert expand(words, set()) == ["run", '{"a": 1}', "--new"]
    assert mentioned_inputs(words) == {"parent"}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ('{"Concat": [', "the argument is not JSON"),
        ('{"Concat": 3}', "is neither a Concat nor an IfPresent"),
        ('{"IfPresent": {}}', "is neither a Concat nor an IfPresent"),
        ('{"Concat": [], "Concat": []}', "has the key 'Concat' twice"),
    ],
)
def test_a_wrong_structure_is_refused(word: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        expand([word], set())
