"""The local model registry: ids, versions and parents."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from localvertex.state import registry


def test_different_names_never_share_a_model(tmp_path: Path) -> None:
    ids = {registry.add(tmp_path, {"display_name": name}).model_id for name in ("a b", "a-b", "A b", "ä b", "../a b")}
    assert len(ids) == 5
    assert all((tmp_path / "models" / each / "1").is_dir() for each in ids)


def test_concurrent_uploads_get_different_versions_and_leave_no_temporary_files(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        versions = list(pool.map(lambda _: registry.add(tmp_path, {"display_name": "m"}).number, range(24)))
    assert sorted(versions) == list(range(1, 25))
    assert sorted(int(each.name) for each in (tmp_path / "models" / "m").iterdir()) == list(range(1, 25))


@pytest.mark.parametrize("parent", ["projects/p/locations/l/models/absent@1", "models/../../x", "nonsense"])
def test_a_parent_that_is_not_registered_is_refused(tmp_path: Path, parent: str) -> None:
    with pytest.raises(ValueError, match="is not in"):
        registry.add(tmp_path, {"display_name": "m"}, parent)
