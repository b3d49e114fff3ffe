"""The display names of steps, in specs that kfp really compiles."""

from google.protobuf import json_format

from components.train.machines import Machines
from pipelines.image_training import image_training
from pipelines.jobs.watch import step_names
from pipelines.settings import Settings

IMAGE = "us-docker.pkg.dev/project/images/image-training-python@sha256:" + "b" * 64


def test_steps_have_the_names_that_the_graph_gives_them() -> None:
    graph = image_training(Settings(image=IMAGE, machines=Machines(machine_type="n1-standard-8")))
    names = step_names(json_format.MessageToDict(graph.pipeline_spec))
    inside = "exit-handler-1/condition-2"
    assert names["summary"] == "summary"
    assert names["exit-handler-1"] == "run"
    assert names["exit-handler-1/prepare"] == "prepare"
    assert names[inside] == "something-new"
    assert names[f"{inside}/train-unless-finished/condition-1/custom-training-job"] == "train-unless-finished/train"
    assert names[f"{inside}/condition-3"] == "good-enough"
    assert names[f"{inside}/condition-3/condition-4/model-upload"] == "register"
    assert names[f"{inside}/condition-3/condition-6/record-2"] == "record"


def test_an_empty_spec_has_no_names() -> None:
    assert step_names({}) == {}
