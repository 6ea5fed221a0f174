"""YAML and JSON files as plain values, with the line of every row. Knows nothing of what they mean."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any, Final

import yaml

from ....kernel.strict_json import JsonRefused, loads

_MERGE: Final = "tag:yaml.org,2002:merge"


class Unreadable(Exception):
    """A file holds no value: the line, and why."""

    def __init__(self, line: int, cause: str) -> None:
        self.line, self.cause = line, cause
        super().__init__(line, cause)


def load(path: Path) -> tuple[object, list[int]]:
    """Return what a file holds, and for YAML the line of each row. Raises: Unreadable."""
    raw = b""
    try:
        raw = path.read_bytes()
        return (loads(raw), []) if path.suffix == ".json" else _yaml(raw.decode("utf-8"))
    except OSError as refusal:
        raise Unreadable(1, str(refusal.strerror)) from None
    except UnicodeDecodeError:
        raise Unreadable(1, "it is not UTF-8") from None
    except JsonRefused as refusal:
        raise Unreadable(raw.count(b"\n", 0, refusal.at or 0) + 1, str(refusal)) from None


def _yaml(text: str) -> tuple[object, list[int]]:
    loader: Any = None
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            raise Unreadable(1, "it is empty")
        return loader.construct_document(root), [each.start_mark.line + 1 for each in _rows(root)]
    except yaml.MarkedYAMLError as refusal:
        mark = refusal.problem_mark
        raise Unreadable(mark.line + 1 if mark else 1, str(refusal.problem)) from None
    except (yaml.YAMLError, RecursionError) as refusal:
        raise Unreadable(1, f"it is no YAML: {type(refusal).__name__}") from None
    finally:
        if loader is not None:
            loader.dispose()


def _rows(root: yaml.Node) -> Iterable[yaml.Node]:
    if isinstance(root, yaml.MappingNode):
        tests = (value for key, value in root.value if getattr(key, "value", None) == "tests")
        root = next(tests, root)
    return root.value if isinstance(root, yaml.SequenceNode) else ()


class _Loader(yaml.SafeLoader):
    """Safe YAML that refuses a key given twice, where the library would keep the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key, _ in node.value:
            name = (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else id(key)
            if name in seen and key.tag != _MERGE:
                raise yaml.constructor.ConstructorError(
                    None, None, f"`{key.value}` is given twice", key.start_mark
                )
            seen.add(name)
        return super().construct_mapping(node, deep)
