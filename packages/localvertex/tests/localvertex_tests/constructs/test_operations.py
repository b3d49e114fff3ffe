"""docs/google-operations.md is what localvertex decides about each of Google's operations."""

from pathlib import Path

import pytest
from localvertex_tests.constructs import operations_page
from localvertex_tests.credentials.operations import compile_operation, operations

import localvertex


@pytest.mark.slow
def test_the_page_is_what_localvertex_decides(tmp_path: Path) -> None:
    found = operations_page.classified()
    assert len(found) == len({each.name for each in found}) >= 200
    page = operations_page.written(found)
    assert operations_page.PAGE.read_text() == page
    assert page.count("\n- `") == sum(not each.name.startswith("_implementation.") for each in found)
    # A job whose program is only in Google's image is refused with the advice that the page gives.
    for name, operation in operations():
        if name == next((each.name for each in found if each.here == operations_page.NEEDS_IMAGE), ""):
            compile_operation(operation, tmp_path / "job.json")
            with pytest.raises(localvertex.Refused, match="--image"):
                localvertex.run(tmp_path / "job.json", options=localvertex.Options(work_dir=tmp_path / "runs"))
            assert not (tmp_path / "runs").exists()
