"""The layers of the steps: nothing imports itself through others, at any depth."""

from pathlib import Path

from vertex_testing.import_circles import circles


def test_no_circle_of_imports(repository: Path) -> None:
    assert circles(repository, "components") == []
