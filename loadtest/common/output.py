"""Settings from the environment, and numbers beside their targets."""

import os

from common.programs import fail


def setting(name, default):
    text = os.environ.get(name, "")
    try:
        return int(text) if text else default
    except ValueError:
        fail(f"{name} is a whole number, not {text!r}")


def say(text=""):
    print(text, flush=True)


class Report:
    """Numbers beside their targets, in columns of these widths; remembers whether a target was missed."""

    def __init__(self, what, value, target):
        self.widths = what, value, target
        self.is_missed = False

    def line(self, what, value, target="", met=None):
        verdict = "" if met is None else "ok" if met else "MISSED"
        self.is_missed |= met is False
        widths = self.widths
        say(f"  {what:<{widths[0]}}{value:>{widths[1]}}  {target:<{widths[2]}}{verdict}")
