"""The parameters of our own tools: how they are declared, checked and read.

It knows the part of JSON Schema that the built-in tools use, and is stricter than that standard in one point: a
parameter that is not declared is refused. A null for an optional parameter counts as absent,
because some models send it so. Of arguments for other people's tools it says only whether they are an object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aura.jsontypes import JsonObject, JsonValue

_SHOWN_PROBLEMS = 5


def declare(properties: Mapping[str, JsonObject], required: Sequence[str] = ()) -> JsonObject:
    """Return the JSON Schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def find_problem(schema: JsonObject, arguments: object) -> str | None:
    """Return what is wrong with `arguments`, with the names of the valid parameters, or None when they fit."""
    if not isinstance(arguments, Mapping):
        return f"the arguments must be an object, not {_name_of(arguments)}; {_valid_parameters(schema)}"
    problems = _problems_of_object(schema, arguments, "")
    if not problems:
        return None
    return f"{'; '.join(problems[:_SHOWN_PROBLEMS])}; {_valid_parameters(schema)}"


def find_foreign_problem(schema: JsonObject, arguments: object) -> str | None:
    """Return what is wrong with arguments whose schema is not ours: that they are no object, or None."""
    if isinstance(arguments, Mapping):
        return None
    return f"the arguments must be an object, not {_name_of(arguments)}; {_valid_parameters(schema)}"


def get_text(arguments: Mapping[str, JsonValue], name: str) -> str:
    """Return a string that the schema requires."""
    value = arguments[name]
    if not isinstance(value, str):
        raise TypeError(f"{name} is not a string")
    return value


def find_text(arguments: Mapping[str, JsonValue], name: str) -> str | None:
    """Return an optional string."""
    return None if arguments.get(name) is None else get_text(arguments, name)


def find_integer(arguments: Mapping[str, JsonValue], name: str) -> int | None:
    """Return an optional integer; 5.0 is 5, as in JSON Schema."""
    value = arguments.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float):
        raise TypeError(f"{name} is not a number")
    return int(value)


def is_set(arguments: Mapping[str, JsonValue], name: str) -> bool:
    """Tell whether an optional flag is true."""
    return arguments.get(name) is True


def list_objects(arguments: Mapping[str, JsonValue], name: str) -> list[Mapping[str, JsonValue]]:
    """Return an optional array of objects, empty when absent."""
    value = arguments.get(name)
    if not isinstance(value, list | tuple):
        return []
    return [item for item in value if isinstance(item, Mapping)]


def _problems_of_object(schema: JsonObject, value: Mapping[str, JsonValue], where: str) -> list[str]:
    properties = _mapping(schema.get("properties"))
    required = _strings(schema.get("required"))
    prefix = f"{where}." if where else ""
    problems = [f'unknown parameter "{prefix}{name}"' for name in value if name not in properties]
    for name, part in properties.items():
        item = value.get(name)
        if item is None:
            if name in required:
                problems.append(f'"{prefix}{name}" is required')
            continue
        problems += _problems(_mapping(part), item, f"{prefix}{name}")
    return problems


def _problems(schema: JsonObject, value: JsonValue, where: str) -> list[str]:
    wanted = schema.get("type")
    if not isinstance(wanted, str) or not _has_type(value, wanted):
        return [f'"{where}" must be {_article(str(wanted))}, not {_name_of(value)}']
    choices = _strings(schema.get("enum"))
    if choices and value not in choices:
        return [f'"{where}" must be one of {", ".join(choices)}']
    if isinstance(value, Mapping):
        return _problems_of_object(schema, value, where)
    if isinstance(value, list | tuple):
        return _problems_of_array(schema, value, where)
    if isinstance(value, int | float):
        return _problems_of_number(schema, value, where)
    return []


def _problems_of_array(schema: JsonObject, value: Sequence[JsonValue], where: str) -> list[str]:
    least, most = schema.get("minItems"), schema.get("maxItems")
    if isinstance(least, int) and len(value) < least:
        return [f'"{where}" needs at least {least} item(s)']
    if isinstance(most, int) and len(value) > most:
        return [f'"{where}" takes at most {most} items']
    part = _mapping(schema.get("items"))
    return [problem for index, item in enumerate(value) for problem in _problems(part, item, f"{where}[{index}]")]


def _problems_of_number(schema: JsonObject, value: float, where: str) -> list[str]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if isinstance(least, int | float) and value < least:
        return [f'"{where}" must be at least {least}']
    if isinstance(most, int | float) and value > most:
        return [f'"{where}" must be at most {most}']
    return []


def _has_type(value: JsonValue, wanted: str) -> bool:
    match wanted:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return not isinstance(value, bool) and (
                isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            )
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "array":
            return isinstance(value, list | tuple)
        case "object":
            return isinstance(value, Mapping)
        case _:
            return False


def _valid_parameters(schema: JsonObject) -> str:
    required = _strings(schema.get("required"))
    names = [f"{name} (required)" if name in required else name for name in _mapping(schema.get("properties"))]
    return f"valid parameters: {', '.join(names)}" if names else "the tool takes no parameters"


def _name_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an object" if isinstance(value, Mapping) else "an array"


def _article(wanted: str) -> str:
    return f"an {wanted}" if wanted[0] in "aio" else f"a {wanted}"


def _mapping(value: JsonValue) -> JsonObject:
    return value if isinstance(value, Mapping) else {}


def _strings(value: JsonValue) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list | tuple) else []
