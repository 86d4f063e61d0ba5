"""The hub under callgrind: profiles of single phases, and arithmetic on them."""

import glob
import os
import re
import shlex
import shutil
import subprocess
import time
from collections import Counter

from hub_process import Hub, Server

DUMP_SECONDS = 60
HERE = os.path.dirname(os.path.abspath(__file__))
SHIM_SOURCE = os.path.join(HERE, "native", "sigsuspend.c")


class Profile:
    """What one phase executed: instructions in each function itself, with what it calls, and calls per (caller, called)."""

    def __init__(self, instructions, inclusive, calls):
        self.instructions = instructions
        self.inclusive = inclusive
        self.calls = calls

    @property
    def total(self):
        return sum(self.instructions.values())

    def calls_into(self, names):
        """Calls of the named functions by others: what one of them does by means of another counts once."""
        return sum(count for (caller, called), count in self.calls.items() if called in names and caller not in names)

    def __sub__(self, other):
        """The longer phase less the shorter: what start, dump and idle time cost falls out."""
        parts = []
        for mine, theirs in zip(
            (self.instructions, self.inclusive, self.calls), (other.instructions, other.inclusive, other.calls)
        ):
            part = Counter(mine)
            part.subtract(theirs)
            parts.append(part)
        return Profile(*parts)


NAME = re.compile(r"\((\d+)\)(?: (.*))?")


def read_profile(path):
    """Reads the part of callgrind's format 1 that it writes with one event and lines as positions."""
    objects, names = {}, {}
    instructions, inclusive, calls = Counter(), Counter(), Counter()
    function = called = None
    library = called_library = ""
    is_call_cost = False

    def library_name(text):
        number, spelled = NAME.match(text).groups()
        if spelled is not None:
            objects[number] = os.path.basename(spelled)
        return objects[number]

    def name(text, within):
        number, spelled = NAME.match(text).groups()
        if spelled is not None:
            # A recursive function has a number behind it; one without a symbol is an address in its library.
            spelled = spelled.split("'")[0]
            names[number] = f"{within} {spelled}" if spelled.startswith("0x") else spelled
        return names[number]

    with open(path, errors="replace") as file:
        for line in map(str.rstrip, file):
            if line[:1] in tuple("+-*0123456789"):
                # The line after `calls=` is the cost of those calls, which their own functions account for.
                cost = int(line.split()[1])
                if is_call_cost:
                    if called != function:
                        inclusive[called] += cost
                else:
                    instructions[function] += cost
                is_call_cost = False
            elif line.startswith("ob="):
                library = called_library = library_name(line[3:])
            elif line.startswith("cob="):
                called_library = library_name(line[4:])
            elif line.startswith("fn="):
                function = name(line[3:], library)
            elif line.startswith("cfn="):
                called = name(line[4:], called_library)
                called_library = library
            elif line.startswith("calls="):
                calls[function, called] += int(line[6:].split()[0])
                is_call_cost = True
    return Profile(instructions, inclusive, calls)


def compiler():
    """Any C compiler; Swift brings one."""
    for name in ("cc", "clang"):
        if shutil.which(name):
            return name
    raise SystemExit("bench: a C compiler is missing: install clang or gcc")


def compiled(source, binary, *packages, options=()):
    """Makes a program of a source beside this one and the libraries of these packages; returns the program's path."""
    os.makedirs(os.path.dirname(binary), exist_ok=True)
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", *packages], check=True, capture_output=True, text=True).stdout
    subprocess.run([compiler(), "-O2", *options, "-o", binary, os.path.join(HERE, "native", source), *shlex.split(flags)], check=True)
    return binary


class Counted:
    """Makes the class of a server one whose every user instruction is counted, all threads together."""

    def __init__(self, binary, folder):
        os.makedirs(folder, exist_ok=True)
        self.out = os.path.join(folder, "callgrind.out")
        for old in glob.glob(self.out + "*"):
            os.remove(old)
        stripped = os.path.join(folder, os.path.basename(binary))
        # valgrind gives up on debug information that is newer than itself; the names of functions are not part of that.
        subprocess.run(["strip", "--strip-debug", "-o", stripped, binary], check=True)
        shim = os.path.join(folder, "sigsuspend.so")
        subprocess.run([compiler(), "-O1", "-shared", "-fPIC", "-o", shim, SHIM_SOURCE], check=True)
        prefix = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={self.out}"]
        super().__init__(stripped, prefix=prefix, environment={"LD_PRELOAD": shim})

    def take_profile(self):
        """The profile since the last call, or since the start."""
        before = set(glob.glob(self.out + ".*"))
        done = subprocess.run(
            ["vgdb", f"--pid={self.pid}", "dump", "phase"], capture_output=True, text=True, timeout=DUMP_SECONDS)
        deadline = time.monotonic() + DUMP_SECONDS
        while time.monotonic() < deadline:
            new = set(glob.glob(self.out + ".*")) - before
            if new and self._is_whole(path := new.pop()):
                return read_profile(path)
            time.sleep(0.05)
        raise SystemExit(f"bench: callgrind wrote no profile: {done.stderr}")

    @staticmethod
    def _is_whole(path):
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - 200))
            return b"totals: " in file.read()


class CallgrindHub(Counted, Hub):
    """The hub, counted."""


class CallgrindServer(Counted, Server):
    """Any other server, counted."""
