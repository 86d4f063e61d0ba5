#!/usr/bin/env python3
"""Checks the edges between Tandem's modules, and their picture in docs/architecture.md: modules.py [--write]

- Each dependency that Package.swift names for a module of Sources is imported by one of its files, and the other way round.
- A module imports only what stands above it in Package.swift.
- The picture between the marks in docs/architecture.md shows these edges; `--write` draws it anew. An edge that follows from others
  is left out of it.
"""

import os
import re
import sys

PAGE = "docs/architecture.md"
BEGIN, END = "<!-- modules: drawn by Tests/Style/modules.py --write -->", "<!-- end of modules -->"
TARGET = re.compile(r"^ *\.(\w+)\(\s*name: \"([\w-]+)\"", re.MULTILINE)
IMPORT = re.compile(r"^(?:(?:package|internal|public|@\w+)\s+)*import (\w+)", re.MULTILINE)


def declared():
    """Each module of Sources in the order of Package.swift, with the modules of ours that it names."""
    with open("Package.swift", encoding="utf-8") as opened:
        text = opened.read()
    starts = list(TARGET.finditer(text))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    found = [
        (start[2], text[start.start():end])
        for start, end in zip(starts, ends)
        if start[1] in ("target", "executableTarget") and "path:" not in text[start.start():end]
    ]
    names = [name for name, _ in found]
    edges = {}
    for name, rest in found:
        listed = re.search(r"dependencies: \[(.*?)\]", rest, re.DOTALL)
        edges[name] = [other for other in re.findall(r'"([\w-]+)"', listed[1]) if other in names] if listed else []
    return names, edges


def imported(module):
    """The names of all modules that its files import."""
    names = set()
    for folder, _, files in os.walk(os.path.join("Sources", module)):
        for file in files:
            if file.endswith(".swift"):
                with open(os.path.join(folder, file), encoding="utf-8") as opened:
                    names.update(IMPORT.findall(opened.read()))
    return names


def picture(names, edges):
    """The edges as a Mermaid graph, without those that follow from others."""
    reached = {}
    for name in names:
        reached[name] = set(edges[name]).union(*(reached[other] for other in edges[name]))
    lines = ["```mermaid", "graph BT"]
    for name in names:
        direct = [other for other in edges[name] if not any(other in reached[third] for third in edges[name] if third != other)]
        lines += [f"    {name} --> {other}" for other in direct]
    return "\n".join(lines + ["```"])


def main():
    names, edges = declared()
    mistakes = []
    for place, name in enumerate(names):
        used = imported(name).intersection(names)
        for other in edges[name]:
            if other not in used:
                mistakes.append(f"Package.swift: {name} names {other} and imports it nowhere: remove the dependency")
            if names.index(other) > place:
                mistakes.append(f"Package.swift: {name} stands above {other}, which it depends on: list it below")
        mistakes += [f"Sources/{name}: imports {other}, which Package.swift does not name" for other in sorted(used - set(edges[name]))]
    with open(PAGE, encoding="utf-8") as opened:
        page = opened.read()
    drawn = f"{BEGIN}\n{picture(names, edges)}\n{END}"
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    if not pattern.search(page):
        mistakes.append(f"{PAGE}: has no place for the picture of the modules: add the lines {BEGIN} and {END}")
    elif "--write" in sys.argv:
        with open(PAGE, "w", encoding="utf-8") as opened:
            opened.write(pattern.sub(lambda _: drawn, page))
    elif drawn not in page:
        mistakes.append(f"{PAGE}: the picture of the modules is out of date: run Tests/Style/modules.py --write")
    for mistake in mistakes:
        print(mistake)
    sys.exit(1 if mistakes else 0)


main()
