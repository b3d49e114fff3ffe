"""The parameters of a study, and the kind of their values."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import join_or, quote
from localvertex.machines.studies.message import Message, Unadvised, parse_number

Value = str | int | float

_MAX_DISCRETE_VALUES = 1000

_SAME = 1e-10
"""Values of a DISCRETE parameter closer than this count as equal."""


class ValueKind(StrEnum):
    """The kind of a parameter's values; each value names the field with its feasible space."""

    DOUBLE = "double_value_spec"
    INTEGER = "integer_value_spec"
    CATEGORICAL = "categorical_value_spec"
    DISCRETE = "discrete_value_spec"


class Scale(IntEnum):
    """How values are distributed over the feasible space."""

    SCALE_TYPE_UNSPECIFIED = 0
    UNIT_LINEAR_SCALE = 1
    UNIT_LOG_SCALE = 2
    UNIT_REVERSE_LOG_SCALE = 3

    @property
    def is_logarithmic(self) -> bool:
        """Whether the feasible space must be positive."""
        return self in (Scale.UNIT_LOG_SCALE, Scale.UNIT_REVERSE_LOG_SCALE)


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter to tune."""

    name: str
    kind: ValueKind
    path: str
    """Its path in the message."""
    minimum: float = 0
    maximum: float = 0
    """Inclusive limits of a DOUBLE or an INTEGER."""
    values: tuple[Value, ...] = ()
    """The values of a CATEGORICAL or a DISCRETE."""
    scale: Scale = Scale.SCALE_TYPE_UNSPECIFIED


def read_parameter(value: Any, path: str) -> Parameter:
    """Read a ParameterSpec.

    Raises:
        UserError: It breaks a rule of the API; the error names the field.
    """
    message = Message(value, path, ("parameter_id", "scale_type", *ValueKind))
    name = message.identifier("parameter_id")
    kinds = [kind for kind in ValueKind if message.has(kind)]
    if len(kinds) != 1:
        found = join_or(kinds, "and") or "none"
        raise UserError(f"expected one of {join_or(ValueKind)}, found {found}", path=f"{path} ({name})")
    kind, scale = kinds[0], message.enumeration("scale_type", Scale)
    space_path = f"{message.name_of(kind)} ({name})"
    is_range = kind in (ValueKind.DOUBLE, ValueKind.INTEGER)
    fields = ("min_value", "max_value") if is_range else ("values",)
    space = Message(message.value(kind, {}), space_path, (*fields, "default_value"))
    if space.has("default_value"):
        raise Unadvised("hyperparameter tuning jobs do not support it; remove it", path=space.name_of("default_value"))
    parameter = Parameter(name=name, kind=kind, path=path, scale=scale, **_feasible_space(space, kind))
    if kind is ValueKind.CATEGORICAL and scale is not Scale.SCALE_TYPE_UNSPECIFIED:
        path = f"{message.name_of('scale_type')} ({name})"
        raise Unadvised("leave it unset for a categorical parameter", path=path)
    if scale.is_logarithmic and (low := min([parameter.minimum] if is_range else map(float, parameter.values))) <= 0:
        raise UserError(f"{scale.name} needs values above 0, found {low:g}", path=space_path)
    return parameter


def _feasible_space(space: Message, kind: ValueKind) -> JsonObject:
    if kind in (ValueKind.DOUBLE, ValueKind.INTEGER):
        read = space.number if kind is ValueKind.DOUBLE else space.int64
        minimum, maximum = read("min_value"), read("max_value")
        if minimum > maximum:
            raise UserError(f"min_value {minimum:g} is above max_value {maximum:g}", path=space.path)
        return {"minimum": minimum, "maximum": maximum}
    values = _values(space.items("values"), kind, space.name_of("values"))
    if not values:
        raise UserError("the list of values is empty", path=space.path)
    if kind is ValueKind.DISCRETE and len(values) > _MAX_DISCRETE_VALUES:
        raise Unadvised(f"at most {_MAX_DISCRETE_VALUES} values are possible, found {len(values)}", path=space.path)
    for position, value in enumerate(values):
        if any(_is_same(value, each) for each in values[:position]):
            raise Unadvised(f"the value {quote(value)} is repeated", path=space.path)
    return {"values": values}


def _values(values: list[Any], kind: ValueKind, path: str) -> tuple[Value, ...]:
    if kind is ValueKind.DISCRETE:
        return tuple(parse_number(each, path) for each in values)
    for each in values:
        if not isinstance(each, str):
            raise UserError(f"expected a string, found {quote(each)}", path=path)
    return tuple(values)


def _is_same(value: Value, other: Value) -> bool:
    if isinstance(value, str) or isinstance(other, str):
        return value == other
    return abs(value - other) < _SAME
