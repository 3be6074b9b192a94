#!/usr/bin/env python3
"""Checks every #include against the one-way rule of docs/architecture.md and prints each violation."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What each folder may include besides itself. The order is the rule: nothing includes upward.
MAY_INCLUDE = {
    "rendezvous/base": [],
    "rendezvous/core": ["rendezvous/base"],
    "rendezvous/client": ["rendezvous/base", "rendezvous/core"],
    "rendezvous/store": ["rendezvous/base"],
    "agent/core": ["rendezvous/base", "rendezvous/core"],
    "agent/process": ["rendezvous/base", "agent/core"],
    "agent/gpu": ["rendezvous/base", "agent/core", "agent/process"],
    "agent": [
        "rendezvous/base", "rendezvous/core", "rendezvous/client", "rendezvous/store",
        "agent/core", "agent/process", "agent/gpu",
    ],
    "launcher/config": ["rendezvous/base", "agent/core", "agent/gpu", "launcher/script"],
    "launcher/script": ["rendezvous/base", "agent/core"],
    "launcher/report": ["rendezvous/base", "agent/core", "agent/process"],
    "launcher": [
        "rendezvous/base", "rendezvous/core", "rendezvous/client", "rendezvous/store",
        "agent/core", "agent/process", "agent/gpu", "agent",
        "launcher/config", "launcher/script", "launcher/report",
    ],
}

# The pure folders: values and decisions only.
PURE = {"rendezvous/core", "agent/core"}
STANDARD_VALUE_HEADERS = {
    "algorithm", "array", "bit", "cctype", "charconv", "chrono", "cmath", "compare", "cstddef", "cstdint", "cstdlib",
    "cstring", "deque", "functional", "initializer_list", "iterator", "limits", "map", "memory", "numeric", "optional",
    "queue", "ranges", "set", "span", "string", "string_view", "tuple", "type_traits", "unordered_map",
    "unordered_set", "utility", "variant", "vector", "fmt/format.h",
}
# Names of signals are a table of the C library; the value types need no more than that.
PURE_EXCEPTIONS = {"agent/core/exit_status.cc": {"csignal"}}

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)


def folder_of(path: str) -> str:
    """The folder of the rule that a file belongs to: the longest one that is listed."""
    parts = path.split("/")[:-1]
    while parts and "/".join(parts) not in MAY_INCLUDE:
        parts.pop()
    return "/".join(parts)


def violations(path: pathlib.Path):
    name = path.relative_to(ROOT).as_posix()
    folder = folder_of(name)
    if not folder:
        yield f"{name}: its folder is not in the rule of tests/lint/layers.py"
        return
    for quote, included in INCLUDE.findall(path.read_text(encoding="utf-8")):
        if quote == '"':
            other = folder_of(included)
            if not (ROOT / included).is_file():
                yield f"{name}: includes '{included}', which is not a path from the root"
            elif other != folder and other not in MAY_INCLUDE[folder]:
                yield f"{name}: {folder} may not include {other} ('{included}')"
        elif folder in PURE and included not in STANDARD_VALUE_HEADERS | PURE_EXCEPTIONS.get(name, set()):
            yield f"{name}: <{included}> is not allowed in the pure folder {folder}"


def main() -> int:
    found = []
    files = 0
    for top in ("rendezvous", "agent", "launcher"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in (".h", ".cc"):
                files += 1
                found.extend(violations(path))
    print("\n".join(found) if found else f"layers: {files} files follow the one-way rule")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
