"""The layers of the trainer: no import of a higher one, and no circle of files or folders at any depth."""

from pathlib import Path

import pytest

from vertex_testing.import_circles import Arrow, arrows, circles

LAYERS = (
    "command_line",
    "google_errors",
    "settings",
    "files",
    "data",
    "models",
    "config",
    "checkpoints",
    "learner",
    "loop",
    "results",
    "serve",
)
"""The folders and files that others import, from the ground up."""
COMMANDS = ("evaluate", "export", "predict", "prepare", "task")


@pytest.fixture(scope="module")
def imports(repository: Path) -> list[Arrow]:
    """The imports inside the trainer, those in functions too."""
    return arrows(repository, "trainer")


def room(parts: tuple[str, ...]) -> str:
    """Return the folder or file of the trainer that contains a module."""
    return parts[1].removesuffix(".py")


def test_each_folder_and_file_is_a_layer_or_a_command(repository: Path) -> None:
    rooms = {path.stem for path in (repository / "trainer").iterdir() if not path.name.startswith("__")}
    assert rooms == {*LAYERS, *COMMANDS}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_no_higher_one_and_no_command(imports: list[Arrow], layer: str) -> None:
    lower = {*LAYERS[: LAYERS.index(layer) + 1], "__init__"}
    assert [str(each) for each in imports if room(each.source) == layer and room(each.target) not in lower] == []


def test_nothing_imports_a_command(imports: list[Arrow]) -> None:
    assert [str(each) for each in imports if room(each.target) in COMMANDS] == []


def test_importing_a_module_of_a_folder_imports_no_other_one(imports: list[Arrow]) -> None:
    """A folder's `__init__`, which Python runs first, imports nothing: `circles` does not follow it."""
    assert [str(each) for each in imports if each.source[-1] == "__init__.py"] == []


def test_there_is_no_circle_of_imports(repository: Path) -> None:
    assert circles(repository, "trainer") == []
