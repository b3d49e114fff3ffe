"""Executors of the compiled file: containers and importers."""

from compiled.fields import Fields
from compiled.spec import Container, Importer
from compiled.value import read_value
from userinput.parameters import restore_integers


def read_schema(fields: Fields) -> tuple[str, str]:
    """Return title and version of an ArtifactTypeSchema."""
    title = fields.required("schemaTitle", str)
    version = fields.take("schemaVersion", str, "")
    fields.done()
    return title, version


def read_executor(fields: Fields, unsupported: list[str]) -> Container | Importer | None:
    """Return the executor of an ExecutorSpec; kinds that never run locally are added to `unsupported`."""
    executor: Container | Importer | None = None
    if fields.has("container"):
        executor = _read_container(fields.object("container"))
    elif fields.has("importer"):
        executor = _read_importer(fields.object("importer"))
    else:
        kinds = [kind for kind in ("resolver", "customJob") if fields.any(kind) is not None]
        unsupported.append(f"{fields.path}: executors of the kind {kinds[0] if kinds else 'none'!r} do not run locally")
    fields.done()
    return executor


def _read_container(fields: Fields) -> Container:
    env: dict[str, str] = {}
    for variable in fields.list_of_objects("env"):
        env[variable.required("name", str)] = variable.take("value", str, "")
        variable.done()
    container = Container(
        image=fields.take("image", str, ""),
        command=fields.strings("command"),
        args=fields.strings("args"),
        env=env,
        resources=fields.take("resources", dict, {}),
        has_lifecycle=bool(fields.take("lifecycle", dict, {})),
        path=fields.path,
    )
    fields.done()
    return container


def _read_importer(fields: Fields) -> Importer:
    source = fields.object("artifactUri")
    uri: str | None = None
    if source.take("runtimeParameter", str, "") == "":
        # kfp 1.8 writes a Value message.
        is_old = source.has("constantValue")
        uri = str(read_value(source.object("constantValue"))) if is_old else source.required("constant", str)
    source.done()
    title, version = read_schema(fields.object("typeSchema"))
    importer = Importer(
        uri=uri,
        schema_title=title,
        schema_version=version,
        metadata=restore_integers(fields.take("metadata", dict, {})),
        download_to_workspace=fields.take("downloadToWorkspace", bool, False),
        path=fields.path,
    )
    fields.take("reimport", bool, False)
    fields.done()
    return importer
