"""The kinds of resources of a tensorboard, their names, and their folders in the store."""

from dataclasses import dataclass

from localvertex.api.rest.call import Call, Location
from localvertex.api.rest.errors import invalid
from localvertex.api.rest.store import ID


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of resource, each of which belongs to one of the kind before it."""

    collection: str
    """The part of the path before its id."""
    message: str
    """The name of its message."""
    kept: tuple[str, ...]
    """The fields of a request that its record contains."""
    takes_id: bool = True
    """Whether a client can choose the id."""
    is_id_required: bool = True
    is_name_unique: bool = False
    """Whether two of them in the same parent cannot have the same display name."""

    @property
    def field(self) -> str:
        """The name of the field in requests that contains one."""
        return self.message[0].lower() + self.message[1:]

    @property
    def plural(self) -> str:
        """The name of the field in lists."""
        return self.field if self.field.endswith("s") else f"{self.field}s"


_NAMES = ("displayName", "description")

TENSORBOARD = Kind(
    collection="tensorboards",
    message="Tensorboard",
    kept=(*_NAMES, "labels", "isDefault", "encryptionSpec"),
    takes_id=False,
)
EXPERIMENT = Kind(collection="experiments", message="TensorboardExperiment", kept=(*_NAMES, "labels", "source"))
RUN = Kind(collection="runs", message="TensorboardRun", kept=(*_NAMES, "labels"), is_name_unique=True)
TIME_SERIES = Kind(
    collection="timeSeries",
    message="TensorboardTimeSeries",
    kept=(*_NAMES, "pluginData", "valueType", "pluginName"),
    is_id_required=False,
    is_name_unique=True,
)

KINDS = (TENSORBOARD, EXPERIMENT, RUN, TIME_SERIES)


@dataclass(frozen=True)
class Place:
    """The ids on the way to a resource; none for the location itself."""

    location: Location
    ids: tuple[str, ...] = ()

    @classmethod
    def of_call(cls, call: Call) -> "Place":
        """Return the last resource in the path of a request."""
        own = (call.resource_id,) if call.resource_id else ()
        return cls(call.location, (*call.parents.values(), *own))

    @classmethod
    def of_name(cls, name: str, inside: "Place", num_ids: int) -> "Place":
        """Return the resource with a name.

        Args:
            name: The resource name.
            inside: The resource that has to contain it, or be it.
            num_ids: Number of ids in a name of this kind.

        Raises:
            ApiError: The name is of another kind, or of a resource elsewhere.
        """
        parts = name.removeprefix(f"{inside.location.name}/").split("/")
        found = cls(inside.location, tuple(parts[1::2]))
        is_name = len(found.ids) == num_ids and found.name == name and all(ID.fullmatch(each) for each in found.ids)
        if not is_name or found.ids[: len(inside.ids)] != inside.ids:
            expected = Place(inside.location, (*inside.ids, *["ID"] * (num_ids - len(inside.ids))))
            raise invalid(f"expected a name like {expected.name}, found {name[:300]!r}")
        return found

    @property
    def name(self) -> str:
        """The resource name."""
        pairs = zip(KINDS, self.ids, strict=False)
        return "/".join([self.location.name, *(f"{kind.collection}/{each}" for kind, each in pairs)])

    @property
    def id(self) -> str:
        """The last id."""
        return self.ids[-1]

    @property
    def parent(self) -> "Place":
        """The resource or location that contains it."""
        return Place(self.location, self.ids[:-1])

    @property
    def collection(self) -> str:
        """The collection in the store to which it belongs."""
        return self.parent.children

    @property
    def children(self) -> str:
        """The collection in the store of what it contains."""
        inside = self.name.removeprefix(self.location.name).removeprefix("/")
        return f"{inside}/{KINDS[len(self.ids)].collection}".removeprefix("/")

    def child(self, resource_id: str) -> "Place":
        """Return the resource in it with this id."""
        return Place(self.location, (*self.ids, resource_id))
