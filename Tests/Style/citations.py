#!/usr/bin/env python3
"""Checks that whatever comments, tests and pages cite can be opened.

A citation is a page and numbers: "docs/NAME.md, 2.4", "docs/NAME.md, 1.4 to 1.7 and 7.1". The page must exist and have each number, as
a heading ("## 2. …") or as an item ("- **2.4 …**"). Ids of the conformance checklist, C and two digits, must stand in its table.
Prints file:line for each mistake and exits with 1; otherwise prints how many citations were checked.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACES = ("Sources", "Tests", "loadtest", "docs", "channels", "README.md", "Makefile", "Package.swift")
SUFFIXES = {".swift", ".py", ".sh", ".c", ".cpp", ".h", ".js", ".md", ".yaml", ".yml", ".toml", ""}
CHECKLIST = "docs/protocol.md"

# Between two words of a comment there may be the end of a line and the next one's mark.
GAP = r"(?:[ \t]*\n[ \t]*(?://+|#|\*)?[ \t]*|[ \t]+)"
NUMBER = r"\d+(?:\.\d+)*"
MORE = rf"(?:,{GAP}|{GAP}(?:and|to|or){GAP}){NUMBER}(?![\w.]*\w)"
CITATION = re.compile(rf"docs/([\w-]+)\.md(?:,{GAP}({NUMBER}(?:{MORE})*))?")
WITHIN_PAGE = re.compile(rf"\(({NUMBER}\.\d+(?:{MORE})*)\)")
CHECK_ID = re.compile(r"\bC\d\d\b")
# How documents outside the repository used to be cited.
UNOPENABLE = [
    (re.compile(rf"(?:protocol|push-gateways){GAP}reference\b"), "names a reference that is not in the repository"),
    (re.compile(rf"\b[Rr]eference(?:'s vectors|,{GAP}\d)"), "cites a reference that is not in the repository"),
    (re.compile(rf"\b[Aa]cceptance{GAP}\d+\b"), "cites a list of acceptance tests that is not in the repository"),
]


def files():
    """The text files under version control, and new ones that are not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *PLACES],
        cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in sorted(set(filter(None, listed.split("\0")))):
        path = ROOT / name
        if path.suffix in SUFFIXES and path != pathlib.Path(__file__).resolve() and path.is_file():
            yield name, path


def numbers(text):
    """The numbers of a page's headings and items."""
    return set(re.findall(rf"^#+ ({NUMBER})\.? ", text, re.M)) | set(re.findall(rf"^(?:- )?\*\*({NUMBER}) ", text, re.M))


class Check:
    def __init__(self):
        self.pages = {path.stem: numbers(path.read_text()) for path in (ROOT / "docs").glob("*.md")}
        self.ids = set(re.findall(r"^\| (C\d\d) \|", (ROOT / CHECKLIST).read_text(), re.M))
        self.count = 0
        self.mistakes = []

    def mistake(self, name, text, position, what):
        self.mistakes.append(f"{name}:{text.count(chr(10), 0, position) + 1}: {what}")

    def cited(self, name, text, match, page, list_of_numbers):
        for number in re.findall(NUMBER, list_of_numbers):
            self.count += 1
            if number not in self.pages[page]:
                self.mistake(name, text, match.start(), f"docs/{page}.md has no {number}")

    def file(self, name, text):
        for match in CITATION.finditer(text):
            page, list_of_numbers = match.groups()
            if page not in self.pages:
                self.mistake(name, text, match.start(), f"there is no docs/{page}.md")
            elif list_of_numbers:
                self.cited(name, text, match, page, list_of_numbers)
        if name == CHECKLIST:
            for match in WITHIN_PAGE.finditer(text):
                self.cited(name, text, match, pathlib.Path(name).stem, match[1])
        if name.startswith(("Tests/", "docs/")):
            for match in CHECK_ID.finditer(text):
                self.count += 1
                if match[0] not in self.ids:
                    self.mistake(name, text, match.start(), f"the checklist in {CHECKLIST} has no {match[0]}")
        for pattern, what in UNOPENABLE:
            for match in pattern.finditer(text):
                self.mistake(name, text, match.start(), f"“{re.sub(GAP, ' ', match[0])}” {what}")


def main():
    check = Check()
    for name, path in files():
        try:
            check.file(name, path.read_text())
        except UnicodeDecodeError:
            # A seed of the fuzzers.
            continue
    print(*check.mistakes, sep="\n", end="\n" if check.mistakes else "")
    print(f"{check.count} citations checked, {len(check.mistakes)} cannot be opened")
    return 1 if check.mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
