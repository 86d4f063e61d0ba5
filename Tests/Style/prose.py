#!/usr/bin/env python3
"""Counts prose that is hard to read: in README.md, docs/*.md, loadtest/README.md and the comments of Swift files.

    Tests/Style/prose.py [--list] [FILE.md | FILE.swift | FOLDER ...]
    Tests/Style/prose.py --gate

Without paths: the pages above, and every Swift file of Sources and Tests.
Three counts per file:
- long: sentences of more than 25 words. Inline code counts as one word, code blocks and headings are skipped.
- opening: sentences that begin with a word of BANNED; questions may.
- wide: lines of more than 140 columns, in Swift only.
`--list` prints each of them as FILE:LINE: KIND: text.

`--gate` is a ratchet: BOUNDS has the count of each kind and top folder, and a higher count fails and prints the folder's texts of
that kind. A lower count asks to lower the bound in BOUNDS, so that no count ever rises again.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BANNED = {"What", "Who", "That", "Of", "By", "Behind", "Beside"}
WORDS_MAX = 25
COLUMNS_MAX = 140
KINDS = ("long", "opening", "wide")
BOUNDS = {  # long, opening, wide
    "README.md": (0, 0, 0),
    "Sources": (0, 0, 38),
    "Tests": (0, 0, 87),
    "docs": (0, 0, 0),
    "loadtest": (0, 0, 0),
}
PAGES = ["README.md", "docs/*.md", "loadtest/README.md"]
# "e.g. This", "1.2 GB" and "…" end no sentence.
END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)[)*\"”]*\s+(?=[\"“(*]*(?:[A-Z0-9`\[_]|[\w/-]+\.md\b))")
BULLET = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")


def plain(text):
    """A paragraph without its markup: inline code is one word, a link is its text."""
    text = re.sub(r"``.+?``|`[^`]*`", lambda code: "`" + code[0].strip("`").replace(" ", "_") + "`", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return text.replace("**", "").strip()


def sentences(paragraph):
    return [sentence.strip() for sentence in END.split(plain(paragraph)) if sentence.strip()]


def markdown(text):
    """(line number, paragraph) of a page; a table's cell is a paragraph, or several where semicolons part it."""
    paragraph, start, fence, after_blank, in_list = [], 0, False, True, False

    def flush():
        nonlocal paragraph
        if paragraph:
            yield start, " ".join(paragraph)
        paragraph = []

    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("```"):
            yield from flush()
            fence = not fence
            continue
        if fence:
            continue
        if not stripped or stripped.startswith("#"):
            yield from flush()
            after_blank, in_list = True, in_list and not stripped
            continue
        if line.startswith("    ") and after_blank and not in_list:
            continue
        after_blank = False
        if stripped.startswith("|"):
            yield from flush()
            if not re.fullmatch(r"[|\s:-]+", stripped):
                for cell in stripped.strip("|").split(" | "):
                    for part in re.split(r";\s+", plain(cell)):
                        yield number, part
            continue
        if BULLET.match(line):
            yield from flush()
            in_list = True
        elif not line.startswith(" "):
            in_list = in_list and bool(paragraph)
        if not paragraph:
            start = number
        paragraph.append(BULLET.sub("", stripped) if BULLET.match(line) else stripped)
    yield from flush()


def swift(text):
    """(line number, paragraph) of a Swift file's comments."""
    paragraph, start, fence = [], 0, False
    for number, line in enumerate(text.splitlines() + [""], 1):
        found = re.match(r"\s*///?(?!/)\s?(.*)", line)
        content = found[1].strip() if found else ""
        if content.startswith("```"):
            fence, content = not fence, ""
        if paragraph and (not content or fence or BULLET.match(content)):
            yield start, " ".join(paragraph)
            paragraph = []
        if content and not fence and not content.startswith("MARK:"):
            if not paragraph:
                start = number
            paragraph.append(BULLET.sub("", content))


def faults(path):
    """(line number, kind, text) of everything that counts."""
    text = path.read_text(encoding="utf-8")
    for number, paragraph in (swift if path.suffix == ".swift" else markdown)(text):
        for sentence in sentences(paragraph):
            words = [word for word in sentence.split() if re.search(r"\w", word)]
            if len(words) > WORDS_MAX:
                yield number, "long", f"({len(words)} words) {sentence}"
            if words and re.sub(r"\W", "", words[0]) in BANNED and words[0][0] != "`" and not sentence.endswith("?"):
                yield number, "opening", sentence
    if path.suffix == ".swift":
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > COLUMNS_MAX:
                yield number, "wide", line.strip()


def files(paths):
    if not paths:
        found = [path for page in PAGES for path in sorted(ROOT.glob(page))]
        return found + [path for folder in ("Sources", "Tests") for path in sorted((ROOT / folder).rglob("*.swift"))]
    found = []
    for path in map(Path, paths):
        found += sorted([*path.rglob("*.md"), *path.rglob("*.swift")]) if path.is_dir() else [path]
    return found


def gate():
    """Whether some top folder has more texts of some kind than BOUNDS allows."""
    found = {folder: {kind: [] for kind in KINDS} for folder in BOUNDS}
    for path in files([]):
        name = path.relative_to(ROOT)
        for number, kind, text in faults(path):
            found[name.parts[0]][kind].append(f"{name}:{number}: {kind}: {text}")
    failed = False
    for folder, bounds in BOUNDS.items():
        for kind, bound in zip(KINDS, bounds):
            texts = found[folder][kind]
            if len(texts) > bound:
                failed = True
                print("\n".join(texts))
                print(f"{folder}: {len(texts)} {kind}, but the bound is {bound}: reword what is new of the {len(texts)} above")
            elif len(texts) < bound:
                print(f"{folder}: {len(texts)} {kind}, but the bound is {bound}: lower it to {len(texts)} in Tests/Style/prose.py")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", help="pages, Swift files or folders; all of them without")
    parser.add_argument("--list", action="store_true", help="print each sentence and line, not only the counts")
    parser.add_argument("--gate", action="store_true", help="fail if some count is above its bound; takes no paths")
    arguments = parser.parse_args()
    if arguments.gate:
        sys.exit(gate())
    totals = {}
    for path in files(arguments.paths):
        counts = dict.fromkeys(KINDS, 0)
        name = path.resolve().relative_to(ROOT) if path.resolve().is_relative_to(ROOT) else path
        for number, kind, text in faults(path):
            counts[kind] += 1
            if arguments.list:
                print(f"{name}:{number}: {kind}: {text}")
        total = totals.setdefault(path.suffix, {"files": 0, **dict.fromkeys(KINDS, 0)})
        total["files"] += 1
        for kind, count in counts.items():
            total[kind] += count
        if any(counts.values()) and not arguments.list:
            print(f"{counts['long']:5} long {counts['opening']:4} opening {counts['wide']:4} wide  {name}")
    for suffix, total in totals.items():
        print(f"{suffix}: {total['files']} files, {total['long']} long, {total['opening']} opening, {total['wide']} wide")


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.exit(0)
