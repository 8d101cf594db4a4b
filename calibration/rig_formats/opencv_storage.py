"""Reading and writing OpenCV's FileStorage (YAML and XML) without OpenCV.

OpenCV's own parser aborts or answers with a C++ trace on a damaged file; this one answers with one line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import yaml

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.foundation.files import read_text

__all__ = ["STORAGE_SUFFIXES", "looks_like_storage", "read_storage", "yaml_storage"]


STORAGE_SUFFIXES = (".yml", ".yaml", ".xml")


class _Loader(yaml.SafeLoader):
    """PyYAML with OpenCV's matrix tag."""


def _matrix_from_mapping(loader: yaml.SafeLoader, node: yaml.Node) -> Floats:
    if not isinstance(node, yaml.MappingNode):
        raise yaml.constructor.ConstructorError(None, None, "a matrix must be a mapping", node.start_mark)
    fields = loader.construct_mapping(node, deep=True)
    return _matrix(fields.get("rows"), fields.get("cols"), fields.get("data"))


_Loader.add_constructor("tag:yaml.org,2002:opencv-matrix", _matrix_from_mapping)


def _matrix(rows: Any, columns: Any, data: Any) -> Floats:
    try:
        array = np.array(data, dtype=np.float64)
        shape = int(rows), int(columns)
    except (TypeError, ValueError, OverflowError):
        raise InputError("a matrix must have rows, cols and numeric data") from None
    if array.size != shape[0] * shape[1] or min(shape) < 1:
        raise InputError(f"a matrix says {shape[0]} x {shape[1]} but holds {array.size} numbers")
    return array.reshape(shape)


def looks_like_storage(path: Path) -> bool:
    """Return whether a file begins as OpenCV's storage does."""
    if path.suffix.lower() not in STORAGE_SUFFIXES or not path.is_file():
        return False
    with open(path, "rb") as file:
        head = file.read(400)
    return b"%YAML" in head or b"opencv_storage" in head or b"opencv-matrix" in head


def read_storage(path: Path) -> dict[str, Any]:
    """Return the top-level entries of a storage file: numbers, text, lists, mappings and matrices."""
    text = read_text(path)
    try:
        content = _read_xml(text) if text.lstrip().startswith("<") else _read_yaml(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (yaml.YAMLError, ElementTree.ParseError, RecursionError, ValueError, TypeError, OverflowError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path}: not a readable OpenCV storage file ({first})") from None
    return content


def _read_yaml(text: str) -> dict[str, Any]:
    body = re.sub(r"^%YAML[^\n]*\n", "", text.lstrip())  # OpenCV writes %YAML:1.0, which YAML 1.1 parsers refuse
    content = yaml.load(body, Loader=_Loader)
    if not isinstance(content, dict):
        raise InputError("wanted named entries at the top level")
    return {str(key): value for key, value in content.items()}


def _read_xml(text: str) -> dict[str, Any]:
    if "<!ENTITY" in text:
        raise InputError("XML entities are not allowed here")
    root = ElementTree.fromstring(text)
    if root.tag != "opencv_storage":
        raise InputError(f"wanted <opencv_storage>, got <{root.tag}>")
    return {child.tag: _xml_value(child) for child in root}


def _xml_value(node: ElementTree.Element) -> Any:
    if node.get("type_id") == "opencv-matrix":
        numbers = (node.findtext("data") or "").split()
        return _matrix(node.findtext("rows"), node.findtext("cols"), numbers)
    if len(node):
        if all(child.tag == "_" for child in node):
            return [_xml_value(child) for child in node]
        return {child.tag: _xml_value(child) for child in node}
    text = (node.text or "").strip()
    words = text.split()
    try:
        values = [float(word) for word in words]
    except ValueError:
        return [word.strip('"') for word in words] if len(words) > 1 else text.strip('"')
    if len(values) == 1:
        return values[0]
    return values


def _yaml_matrix(value: Floats, indent: str) -> str:
    data = ", ".join(repr(float(number)) for number in value.ravel())
    lines = ["!!opencv-matrix", f"rows: {value.shape[0]}", f"cols: {value.shape[1]}", "dt: d", f"data: [ {data} ]"]
    return f"\n{indent}   ".join(lines)


def yaml_storage(content: Mapping[str, Any]) -> str:
    """Return OpenCV YAML of named entries: matrices (2D arrays), numbers, text, lists of text or of mappings."""
    lines = ["%YAML:1.0", "---"]
    for key, value in content.items():
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            lines.append(f"{key}:")
            for item in value:
                lines.append("   -")
                lines += [f"      {name}: {_yaml_entry(entry, '      ')}" for name, entry in item.items()]
        elif isinstance(value, list):
            lines.append(f"{key}:")
            lines += [f'   - "{item}"' for item in value]
        else:
            lines.append(f"{key}: {_yaml_entry(value, '')}")
    return "\n".join(lines) + "\n"


def _yaml_entry(value: Any, indent: str) -> str:
    if isinstance(value, np.ndarray):
        return _yaml_matrix(value, indent)
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)
