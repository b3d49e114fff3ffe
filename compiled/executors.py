"""Executors of the compiled file: containers and importers."""

from typing import Any

from compiled import spec
from compiled.fields import Fields
from userinput.parameters import restore_integers


def read_schema(fields: Fields) -> tuple[str, str]:
    """Title and version of an ArtifactTypeSchema."""
    title = fields.required("schemaTitle", str)
    version = fields.take("schemaVersion", str, "")
    fields.done()
    return title, version


def read_executor(value: Any, place: str, unsupported: list[str]) -> spec.Container | spec.Importer | None:
    """An ExecutorSpec; kinds that never run locally are added to `unsupported`."""
    fields = Fields(value, place)
    executor: spec.Container | spec.Importer | None = None
    if fields.has("container"):
        executor = read_container(fields.object("container"))
    elif fields.has("importer"):
        executor = read_importer(fields.object("importer"))
    else:
        kinds = [kind for kind in ("resolver", "customJob") if fields.any(kind) is not None]
        unsupported.append(f"{place}: executors of the kind {kinds[0] if kinds else 'none'!r} do not run locally")
    fields.done()
    return executor


def read_container(fields: Fields) -> spec.Container:
    """A PipelineContainerSpec."""
    env: dict[str, str] = {}
    for index, value in enumerate(fields.take("env", list, [])):
        variable = Fields(value, f"{fields.place}.env[{index}]")
        env[variable.required("name", str)] = variable.take("value", str, "")
        variable.done()
    container = spec.Container(
        image=fields.take("image", str, ""),
        command=fields.strings("command"),
        args=fields.strings("args"),
        env=env,
        resources=fields.take("resources", dict, {}),
        has_lifecycle=bool(fields.take("lifecycle", dict, {})),
        place=fields.place,
    )
    fields.done()
    return container


def read_importer(fields: Fields) -> spec.Importer:
    """An ImporterSpec."""
    source = fields.object("artifactUri")
    is_parameter = source.take("runtimeParameter", str, "") != ""
    uri = None if is_parameter else source.required("constant", str)
    source.done()
    title, version = read_schema(fields.object("typeSchema"))
    importer = spec.Importer(
        uri=uri,
        schema_title=title,
        schema_version=version,
        metadata=restore_integers(fields.take("metadata", dict, {})),
        download_to_workspace=fields.take("downloadToWorkspace", bool, False),
        place=fields.place,
    )
    fields.take("reimport", bool, False)
    fields.done()
    return importer
