"""YAML as script files may use it: plain values, every key once (PyYAML itself keeps the last of two equal keys)."""

from __future__ import annotations

from typing import Any

import yaml


class BadYaml(ValueError):
    """The text is not YAML that a script may use. The message says where."""


def load_strict(data: bytes) -> object:
    """Return the plain value of `data`. Raises `BadYaml` for broken, repeated, non-text or too deep keys and tags."""
    try:
        return yaml.load(data, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as error:
        place = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise BadYaml(f"{place}{error.problem or error}") from error
    except yaml.YAMLError as error:
        raise BadYaml(f"is not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise BadYaml("is nested too deeply") from error
    except ValueError as error:
        raise BadYaml(f"holds a value that cannot be read: {error}") from error


class _StrictLoader(yaml.SafeLoader):
    """The safe loader, refusing repeated and non-text keys."""


def _construct_mapping(loader: _StrictLoader, node: yaml.MappingNode) -> dict[str, Any]:
    loader.flatten_mapping(node)
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is not text", key_node.start_mark)
        if key in mapping:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {key!r} stands there twice", key_node.start_mark
            )
        mapping[key] = loader.construct_object(value_node, deep=True)
    return mapping


_StrictLoader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)
