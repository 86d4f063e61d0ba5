"""What a run works with: the release build, and a folder and programs that are gone afterwards."""

import contextlib
import os
import shutil
import signal
import sys
import tempfile

from common.output import say
from common.programs import TOOL, Programs, fail

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def built(name, target, build="release"):
    """The path of a program that `make` builds for `target`."""
    path = os.path.join(ROOT, ".build", build, name)
    if not os.access(path, os.X_OK):
        fail(f"{path} is missing: run `make {target}`, which builds it")
    return path


@contextlib.contextmanager
def workspace(kept=None):
    """A folder and its programs. Both are gone afterwards, also on Ctrl-C; where there is something to keep, `KEEP=1` keeps the folder."""
    # Also where whoever starts this has Ctrl-C ignored, as shells do for what they run in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder, programs = tempfile.mkdtemp(prefix=f"tandem-{TOOL}-"), Programs()
    try:
        yield folder, programs
    except KeyboardInterrupt:
        say(f"\n{TOOL}: interrupted")
        sys.exit(130)
    finally:
        programs.end()
        if kept and os.environ.get("KEEP"):
            say(f"{kept} kept in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
