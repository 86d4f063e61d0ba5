"""A Debian 12 of its own: debootstrapped once into an archive, unpacked for each run, gone with the run."""

import os
import shutil
import subprocess
import tarfile

SUITE, MIRROR = "bookworm", "http://deb.debian.org/debian"


class Chroot:
    def __init__(self, folder, cache):
        self.root = os.path.join(folder, "root")
        base = os.path.join(cache, f"{SUITE}.tar")
        if not os.path.exists(base):
            self.bootstrap(base, folder)
        os.makedirs(self.root)
        with tarfile.open(base) as archive:
            archive.extractall(self.root, filter="fully_trusted")
        shutil.copyfile("/etc/resolv.conf", self.path("etc/resolv.conf"))
        # In a mount namespace of this run. The device files are those that debootstrap made.
        self.mounted = []
        for kind, name in (("proc", "proc"), ("tmpfs", "run"), ("tmpfs", "tmp")):
            subprocess.run(["mount", "-t", kind, kind, self.path(name)], check=True)
            self.mounted.append(name)

    def close(self):
        """Takes the mounts down, so that removing the folder removes nothing else."""
        for name in self.mounted:
            subprocess.run(["umount", "--lazy", self.path(name)], check=True)

    @staticmethod
    def bootstrap(base, folder):
        root = os.path.join(folder, "base")
        subprocess.run(
            ["debootstrap", "--variant=minbase", SUITE, root, MIRROR], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["chroot", root, "apt-get", "clean"], check=True)
        subprocess.run(["tar", "-C", root, "-cf", base + ".new", "."], check=True)
        os.rename(base + ".new", base)
        shutil.rmtree(root)

    def path(self, name):
        return os.path.join(self.root, name.lstrip("/"))

    def run(self, *words, check=True, text=None):
        """Runs a program in the chroot; its output with both streams."""
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
            "DEBIAN_FRONTEND": "noninteractive", "TERM": "dumb"}
        done = subprocess.run(
            ["chroot", self.root, *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, input=text,
            timeout=600)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}")
        return done

    def read(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as file:
            file.write(text)
