"""Output: lines for people and, on a terminal, a progress line."""

import os
import sys
import threading
import time


def say(text=""):
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # The reader of our output has gone (`make run | head`), but the stack keeps running.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Waiting:
    """On a terminal, shows what takes longer than a second and for how long. Prints nothing elsewhere."""

    def __init__(self, what):
        self.what = what
        self.done = threading.Event()
        self.thread = None

    def __enter__(self):
        if sys.stdout.isatty():
            self.thread = threading.Thread(target=self._show, daemon=True)
            self.thread.start()
        return self

    def _show(self):
        begin = time.monotonic()
        shown = False
        while not self.done.wait(1.0):
            shown = True
            print("\r\033[K  waiting for %s (%d s)" % (self.what, time.monotonic() - begin), end="", flush=True)
        if shown:
            print("\r\033[K", end="", flush=True)

    def __exit__(self, *_):
        self.done.set()
        if self.thread:
            self.thread.join()
