#!/usr/bin/env python3
"""Writes manual pages from a program's own description of its commands: PROGRAM --experimental-dump-help | manual.py FOLDER VERSION DATE

One page for the program, and one for each command that does something: tandem.1, tandem-serve.1, tandem-apps-add.1.
"""

import json
import os
import sys


def escaped(text):
    """Text of a page: no word of it is a request, and a minus stays one that can be copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return "\n".join("\\&" + line if line.startswith(".") else line for line in text.split("\n"))


def names(argument):
    """How an argument is written: `--port port`, `-h, --help`, `channel`."""
    value = argument.get("valueName", "")
    if argument["kind"] == "positional":
        return f"\\fI{escaped(value)}\\fR"
    spelt = ", ".join(
        f"\\fB{escaped(('-' if name['kind'] == 'short' else '--') + name['name'])}\\fR" for name in argument.get("names", []))
    return f"{spelt} \\fI{escaped(value)}\\fR" if argument["kind"] == "option" else spelt


def synopsis(path, command, arguments):
    words = [f"\\fB{escaped(' '.join(path))}\\fR"]
    for argument in arguments:
        preferred = argument.get("preferredName")
        if argument["kind"] == "positional":
            word = names(argument)
        elif preferred:
            word = f"\\fB{escaped(('-' if preferred['kind'] == 'short' else '--') + preferred['name'])}\\fR"
            if argument["kind"] == "option":
                word += f" \\fI{escaped(argument.get('valueName', ''))}\\fR"
        else:
            continue
        word += "..." if argument.get("isRepeating") else ""
        words.append(f"[{word}]" if argument.get("isOptional") else word)
    if children(command):
        words.append("\\fIcommand\\fR")
    return "\n".join(words)


def children(command):
    return [one for one in command.get("subcommands", []) if one["commandName"] != "help" and one.get("shouldDisplay", True)]


def discussion(text):
    """Paragraphs. Lines that begin with the program's name, or stand to the right, are commands to copy."""
    lines, block = [], []

    def flush():
        if block:
            lines.extend([".PP", ".nf", ".RS 4"] + [escaped(line.strip()) for line in block] + [".RE", ".fi"])
            block.clear()

    paragraph_open = False
    for line in text.split("\n"):
        if line.startswith((" ", "tandem ")) or " | tandem " in line:
            block.append(line)
            paragraph_open = False
            continue
        flush()
        if not line.strip():
            paragraph_open = False
        else:
            if not paragraph_open:
                lines.append(".PP")
            lines.append(escaped(line))
            paragraph_open = True
    flush()
    return lines


def page(path, command, version, date):
    name = "-".join(path)
    arguments = [one for one in command.get("arguments", []) if one.get("shouldDisplay", True)]
    lines = [
        f'.TH "{escaped(name.upper())}" 1 "{date}" "tandem {escaped(version)}" "Tandem"', ".nh", ".ad l", ".SH NAME",
        f"{escaped(name)} \\- {escaped(command['abstract'].rstrip('.'))}", ".SH SYNOPSIS", synopsis(path, command, arguments),
    ]
    if command.get("discussion"):
        lines += [".SH DESCRIPTION"] + discussion(command["discussion"])
    for title, kinds in (("ARGUMENTS", ("positional",)), ("OPTIONS", ("option", "flag"))):
        chosen = [one for one in arguments if one["kind"] in kinds]
        if chosen:
            lines.append(f".SH {title}")
        for argument in chosen:
            text = argument.get("abstract", "")
            if argument.get("defaultValue"):
                text += f" Default: {argument['defaultValue']}."
            lines += [".TP", names(argument), escaped(text)]
    if children(command):
        lines.append(".SH COMMANDS")
        for child in children(command):
            lines += [".TP", f"\\fB{escaped(name + '-' + child['commandName'])}\\fR(1)", escaped(child["abstract"])]
    if len(path) == 1:
        lines += [".SH FILES"]
        for file, text in (
            ("/etc/tandem/tandem.yaml", "configuration, with secrets made at the installation"),
            ("/etc/tandem/channels/", "channel definitions; after a change: systemctl reload tandem"),
            ("/etc/default/tandem", "environment of the service, optional"), ("/var/lib/tandem/", "the store"),
            ("/usr/share/doc/tandem/", "operations.md, channel-definitions.md, http-api.md and the other pages"),
        ):
            lines += [".TP", f"\\fI{escaped(file)}\\fR", escaped(text)]
        lines += [".SH EXIT STATUS", "0 done, 1 failed, 64 wrong usage, 78 wrong configuration."]
    if len(path) > 1:
        lines += [".SH SEE ALSO", f"\\fB{escaped('-'.join(path[:-1]))}\\fR(1)"]
    return name, "\n".join(lines) + "\n"


def pages(path, command):
    yield path, command
    for child in children(command):
        yield from pages([*path, child["commandName"]], child)


def main():
    folder, version, date = sys.argv[1:]
    root = json.load(sys.stdin)["command"]
    for path, command in pages([root["commandName"]], root):
        name, text = page(path, command, version, date)
        with open(os.path.join(folder, f"{name}.1"), "w", encoding="utf-8") as opened:
            opened.write(text)


main()
