"""The Debian package on a Debian 12 that has neither Swift nor make: python3 -B Tests/Package NEW.deb OLD.deb

Installation, first event, first push, reload, upgrade and downgrade under connected clients, removal and purge, as an operator would
type them. Needs root, debootstrap and Debian's mirror. Settings: CLIENTS=2000, BUILD=debug (of the simulated gateways).

Everything runs in namespaces of its own on 127.0.0.1, and ends with this program.
"""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def main():
    if os.geteuid() != 0:
        print("test-package: needs root for a chroot; skipped")
        return 0
    if os.environ.get("TANDEM_PACKAGE_ALONE") != "1":
        # Mounts and processes of this run are seen by nobody else, and none outlives it.
        return subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-B", *sys.argv],
            env={**os.environ, "TANDEM_PACKAGE_ALONE": "1"}).returncode
    import cases
    with tempfile.TemporaryDirectory(prefix="tandem-package-") as folder:
        return cases.run(
            folder, ROOT, *map(os.path.abspath, sys.argv[1:3]), count=int(os.environ.get("CLIENTS") or 2000),
            build=os.environ.get("BUILD") or "debug")


sys.exit(main())
