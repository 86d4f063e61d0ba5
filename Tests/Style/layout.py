#!/usr/bin/env python3
"""Checks how the sources are laid out: layout.py. Prints each mistake with its place, and fails when there is one.

- A folder has at most twelve Swift files, or Python files of the tests.
- A file is named after a top-level type that it holds or extends (`Outbox.swift`, `OutboxLanes.swift`, `Server+TLS.swift`), or all
  of its types begin with its name (`ES256.swift`). Tests and commands may have other names.
- No lock of the sources holds a function itself. Each access would wrap it once more, and a call would walk through all wraps. A
  struct may hold it.
- No comment has more than 140 columns. Code is the formatter's, and a text may be as long as it is.
"""

import os
import re
import sys

FILES_MAX = 12
COLUMNS_MAX = 140
MODIFIERS = r"(?:(?:package|public|private|fileprivate|internal|final|indirect|nonisolated|@\w+(?:\([^)]*\))?)\s+)*"
TYPE = re.compile(rf"^{MODIFIERS}(?:struct|class|enum|actor|protocol|typealias)\s+(\w+)", re.MULTILINE)
LOCKED_FUNCTION = re.compile(r"\b(?:Guarded|Mutex)<[^\[\]{}=]*->")
EXTENSION = re.compile(rf"^{MODIFIERS}extension\s+([\w.]+)", re.MULTILINE)


def folders_with(ending, *tops):
    """Each folder below `tops` that has files with this ending, and their names."""
    for top in tops:
        for folder, folders, files in os.walk(top):
            folders.sort()
            found = sorted(name for name in files if name.endswith(ending))
            if found:
                yield folder, found


def is_named(name, text):
    """Whether somebody who looks for one of the file's types finds it."""
    types = TYPE.findall(text)
    extended = [name.split(".")[-1] for name in EXTENSION.findall(text)]
    known = types + extended
    if "+" in name:
        return name.split("+")[0] in extended
    return any(name.startswith(one) for one in known) or bool(types) and all(one.startswith(name) for one in types)


def main():
    mistakes = []
    swift = list(folders_with(".swift", "Sources", "Tests"))
    for folder, files in swift + list(folders_with(".py", "Tests")):
        if len(files) > FILES_MAX:
            mistakes.append(f"{folder}: {len(files)} files in one folder, at most {FILES_MAX}: sort them into rooms")
    for folder, files in swift:
        for file in files:
            path = os.path.join(folder, file)
            with open(path, encoding="utf-8") as opened:
                text = opened.read()
            name = file.removesuffix(".swift")
            if folder.startswith("Sources") and not name.endswith(("main", "Commands")) and not is_named(name, text):
                mistakes.append(f"{path}: no top-level type of this file is called {name}: name the file after what it holds")
            for number, line in enumerate(text.split("\n"), start=1):
                if folder.startswith("Sources") and LOCKED_FUNCTION.search(line):
                    mistakes.append(f"{path}:{number}: a lock holds a function: put it into a struct")
                if len(line) > COLUMNS_MAX and line.lstrip().startswith("//"):
                    mistakes.append(f"{path}:{number}: {len(line)} columns, at most {COLUMNS_MAX}")
    for mistake in mistakes:
        print(mistake)
    sys.exit(1 if mistakes else 0)


main()
