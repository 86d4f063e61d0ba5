"""A hub on a store of its own."""

import os
import time

from common.programs import environment, wait_for_port


class Hub:
    """One hub, which may be ended and started again on the same store."""

    def __init__(self, programs, binary, folder, name, channels):
        self.programs, self.binary, self.channels = programs, binary, channels
        self.data = os.path.join(folder, f"{name}-data")
        self.output = os.path.join(folder, f"{name}.log")
        self.configuration = os.path.join(folder, f"{name}.yaml")
        self.process, self.port = None, 0

    def launch(self, configuration, settings):
        """Returns when the hub listens. An earlier output is kept under another name."""
        with open(self.configuration, "w") as file:
            file.write(configuration)
        if os.path.exists(self.output):
            os.replace(self.output, f"{self.output}.{int(time.time() * 1000)}")
        self.process = self.programs.start(
            [self.binary, "serve", "--config", self.configuration, "--data", self.data, "--channels", self.channels], self.output,
            settings=environment(NO_PROXY="*", **settings))
        self.port = wait_for_port(self.process, 60, "the hub", self.output)
