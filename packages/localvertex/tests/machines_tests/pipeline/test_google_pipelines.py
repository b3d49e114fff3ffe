"""Every pipeline inside google-cloud-pipeline-components: no false error; what was not checked is named."""

from collections import Counter
from pathlib import Path

import google_cloud_pipeline_components
import pytest
from machines_tests.conftest import TODAY

from localvertex.machines.document import examine_file

FOLDER = Path(google_cloud_pipeline_components.__file__).parent
FILES = sorted(
    path for path in [*FOLDER.rglob("*.yaml"), *FOLDER.rglob("*.json")] if "deploymentSpec" in path.read_text()
)

CACHED = {
    "v1/automl/forecasting/prophet_trainer_pipeline.yaml": 1,
    "v1/automl/tabular/automl_tabular_pipeline.yaml": 11,
    "v1/automl/tabular/deprecated/default_pipeline.json": 8,
    "preview/automl/forecasting/learn_to_learn_forecasting_pipeline.yaml": 5,
    "preview/automl/forecasting/sequence_to_sequence_forecasting_pipeline.yaml": 5,
    "preview/automl/forecasting/temporal_fusion_transformer_forecasting_pipeline.yaml": 5,
    "preview/automl/forecasting/time_series_dense_encoder_forecasting_pipeline.yaml": 5,
    "preview/automl/tabular/automl_tabular_feature_selection_pipeline.yaml": 12,
    "preview/automl/tabular/automl_tabular_v2_pipeline.yaml": 8,
    "preview/automl/tabular/tabnet_hyperparameter_tuning_job_pipeline.yaml": 2,
    "preview/automl/tabular/tabnet_trainer_pipeline.yaml": 2,
    "preview/automl/tabular/wide_and_deep_hyperparameter_tuning_job_pipeline.yaml": 2,
    "preview/automl/tabular/wide_and_deep_trainer_pipeline.yaml": 2,
}
"""Number of training steps that kfp may take from its cache, by file."""

PREDICTS = {"v1/automl/tabular/deprecated/default_pipeline.json": 4}
"""Number of batch predictions whose machine type is a parameter without a default, by file."""


def test_all_of_them_are_here() -> None:
    assert len(FILES) == 17


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_pipeline_of_google_has_these_findings(path: Path) -> None:
    name = path.relative_to(FOLDER).as_posix()
    seen = examine_file(path, region="us-central1", today=TODAY)
    # Their machines come from a step that reads the override of the worker pools.
    has_override = "tabnet" in name or "wide_and_deep" in name
    expected = {"training-cached": CACHED.get(name, 0), "no-pipeline-root": 1, "not-checked": 0}
    expected["not-checked"] = PREDICTS.get(name, int(has_override))
    assert Counter(finding.rule for finding in seen.findings) == Counter(expected)
    assert not [finding for finding in seen.findings if finding.severity == "error"]
