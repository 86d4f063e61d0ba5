#!/usr/bin/env python3
"""Makes a small copy of the data that Foundation carries for ICU: icu.py FOUNDATION_ICU_ARCHIVE OUT.s OUT.dat

A program that links Foundation statically gets 34 MB of tables: converters, names of countries and currencies in 800 languages. The hub
formats no text for people and reads nothing but UTF-8; it asks for time zones alone. The copy keeps what every language shares, and
English. OUT.s defines __wrap_SYMBOL: a linker that is given --wrap=SYMBOL takes the copy, and leaves the original out. Prints the symbol.

The format is ICU's "CmnD": a header, the number of items, their names and offsets in order, then the items.
"""

import os
import re
import struct
import subprocess
import sys
import tempfile

SYMBOL = re.compile(rb"\b(icudt\d+_dat)\b")
LANGUAGE = re.compile(r"[a-z]{2,3}(_\w+)?")
MEMBER = "icu_packaged_data.cpp.o"
KEPT = {"root", "en", "en_US", "en_US_POSIX", "pool", "res_index", "ucadata"}


def is_kept(name):
    """Whether the hub's copy has the item `icudt76l/[FOLDER/]NAME.SUFFIX`."""
    _, *folders, file = name.split("/")
    stem, suffix = file.rsplit(".", 1)
    if not folders:
        return suffix != "cnv" and (stem in KEPT or not LANGUAGE.fullmatch(stem))
    return stem in KEPT or suffix == "brk"


def data_of(archive):
    """The symbol's name and bytes."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["ar", "x", os.path.abspath(archive), MEMBER], cwd=folder, check=True)
        member = os.path.join(folder, MEMBER)
        symbols = subprocess.run(["nm", member], check=True, capture_output=True).stdout
        dump = os.path.join(folder, "data")
        subprocess.run(["objcopy", "-O", "binary", "--only-section=.rodata", member, dump], check=True)
        with open(dump, "rb") as opened:
            return SYMBOL.search(symbols)[1].decode(), opened.read()


def items_of(data):
    """The header, and each item's name and bytes, in the file's order."""
    header, magic = struct.unpack_from("<H", data)[0], data[2:4]
    assert magic == b"\xda\x27" and data[12:16] == b"CmnD" and data[8] == 0, "not the little-endian data that this script knows"
    count = struct.unpack_from("<I", data, header)[0]
    pairs = [struct.unpack_from("<II", data, header + 4 + 8 * index) for index in range(count)]
    ends = [offset for _, offset in pairs[1:]] + [len(data) - header]
    names = [data[header + at:data.index(b"\0", header + at)].decode() for at, _ in pairs]
    return data[:header], [(name, data[header + offset:header + end]) for name, (_, offset), end in zip(names, pairs, ends)]


def packed(header, items):
    table, names, bodies = [], b"", b""
    names_at = 4 + 8 * len(items)
    bodies_at = names_at + sum(len(name) + 1 for name, _ in items)
    bodies_at += -(len(header) + bodies_at) % 16
    for name, body in items:
        table.append(struct.pack("<II", names_at + len(names), bodies_at + len(bodies)))
        names += name.encode() + b"\0"
        bodies += body + bytes(-len(body) % 16)
    front = struct.pack("<I", len(items)) + b"".join(table) + names
    return header + front + bytes(bodies_at - len(front)) + bodies


def main():
    archive, assembly, out = sys.argv[1:]
    symbol, data = data_of(archive)
    header, items = items_of(data)
    copied = f"__wrap_{symbol}"
    copy = packed(header, [item for item in items if is_kept(item[0])])
    with open(out, "wb") as opened:
        opened.write(copy)
    with open(assembly, "w", encoding="utf-8") as opened:
        opened.write(
            f'.section .rodata\n.balign 16\n.globl {copied}\n.type {copied}, @object\n{copied}:\n'
            f'.incbin "{os.path.basename(out)}"\n.size {copied}, {len(copy)}\n.section .note.GNU-stack,"",@progbits\n')
    print(f"ICU's data: {len(data)} bytes, and {len(copy)} in the copy", file=sys.stderr)
    print(symbol)


main()
