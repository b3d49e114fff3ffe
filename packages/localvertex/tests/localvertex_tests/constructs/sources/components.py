"""Parts that a Python component may bring with it: a folder, functions, its container's own variables."""

from pathlib import Path

from kfp import dsl
from localvertex_tests.constructs.construct import NOT_RUN, construct

from vertex_testing.runs import STEP

FOLDER = Path(__file__).parent / "embedded"


@dsl.component(**STEP, embedded_artifact_path=str(FOLDER))
def with_folder(folder: dsl.EmbeddedInput[dsl.Dataset]) -> str:
    import os

    from own_module import TEXT

    return f"{TEXT} {[name for name in sorted(os.listdir(folder.path)) if name.endswith('.py')]}"


@construct(outputs={"Output": "embedded ['own_module.py']"})
@dsl.pipeline(name="embedded-folder")
def embedded_folder() -> str:
    return with_folder().output


def shout(text: str) -> str:
    return text.upper()


@dsl.component(**STEP, additional_funcs=[shout])
def with_function(text: str) -> str:
    return shout(text)


@construct(outputs={"Output": "LOUD"})
@dsl.pipeline(name="additional-function")
def additional_function() -> str:
    return with_function(text="loud").output


@dsl.component(base_image="python:3.11", target_image="registry.example/built:1")
def in_image(text: str) -> str:
    return text


@construct(refused="whose code is in the image", kfp_local="only supports running Lightweight Python Components")
@dsl.pipeline(name="containerized-component")
def containerized_component() -> str:
    return in_image(text="a").output


@dsl.notebook_component(**STEP, notebook_path=str(FOLDER.parent / "shout.ipynb"))
def with_notebook(text: str) -> str:
    import os

    path = os.path.abspath("shouted.txt")
    dsl.run_notebook(text=text, path=path)
    return open(path).read()


@construct(outputs={"Output": "LOUD"}, needs_index=True, kfp_local=NOT_RUN)
@dsl.pipeline(name="notebook")
def notebook() -> str:
    return with_notebook(text="loud").output
