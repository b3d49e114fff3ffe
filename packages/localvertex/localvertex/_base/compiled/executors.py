"""Executors of the compiled file: containers and importers."""

from localvertex._base.compiled.fields import Fields
from localvertex._base.compiled.parameters import restore_integers
from localvertex._base.compiled.spec import Container, Importer
from localvertex._base.compiled.value import read_value
from localvertex._base.json_object import JsonObject

_CONTAINER = "PipelineDeploymentConfig.PipelineContainerSpec"


def read_schema(fields: Fields) -> tuple[str, str]:
    """Return title and version of an ArtifactTypeSchema."""
    title, version = fields.take("schemaTitle", str, ""), fields.take("schemaVersion", str, "")
    # A schema at an address or in the file is refused by its own field.
    if not (title or fields.has("schemaUri") or fields.has("instanceSchema")):
        fields.note("the field 'schemaTitle' is missing or empty")
    return title, version


def read_executor(fields: Fields) -> Container | Importer | str:
    """Return the executor of an ExecutorSpec; of a kind that never runs locally, the line that says so."""
    if fields.has("container"):
        return _read_container(fields.object("container", _CONTAINER))
    if fields.has("importer"):
        return _read_importer(fields.object("importer", "PipelineDeploymentConfig.ImporterSpec"))
    kinds = [kind for kind in ("resolver", "customJob") if fields.any(kind) is not None]
    return f"{fields.path}: executors of the kind {kinds[0] if kinds else 'none'!r} do not run locally"


def _read_container(fields: Fields) -> Container:
    env: dict[str, str] = {}
    for variable in fields.list_of_objects("env", f"{_CONTAINER}.EnvVar"):
        env[variable.required("name", str)] = variable.take("value", str, "")
    return Container(
        image=fields.take("image", str, ""),
        command=fields.strings("command"),
        args=fields.strings("args"),
        env=env,
        resources=_read_resources(fields),
        has_lifecycle=bool(fields.take("lifecycle", dict, {})),
        path=fields.path,
    )


def _read_resources(fields: Fields) -> JsonObject:
    """Return a ResourceSpec as it is; unknown fields are noted."""
    resources = fields.take("resources", dict, {})
    path = fields.at("resources")
    message, accelerator = f"{_CONTAINER}.ResourceSpec", resources.get("accelerator") or {}
    Fields(resources, message, fields.problems, path).finish()
    Fields(accelerator, f"{message}.AcceleratorConfig", fields.problems, f"{path}.accelerator").finish()
    return resources


def _read_importer(fields: Fields) -> Importer:
    source = fields.object("artifactUri", "ValueOrRuntimeParameter")
    uri: str | None = None
    if source.take("runtimeParameter", str, "") == "":
        # kfp 1.8 writes a Value message.
        is_old = source.has("constantValue")
        uri = str(read_value(source.object("constantValue", "Value"))) if is_old else source.required("constant", str)
    title, version = read_schema(fields.object("typeSchema", "ArtifactTypeSchema"))
    return Importer(
        uri=uri,
        schema_title=title,
        schema_version=version,
        metadata=restore_integers(fields.take("metadata", dict, {})),
        download_to_workspace=fields.take("downloadToWorkspace", bool, False),
        path=fields.path,
    )
