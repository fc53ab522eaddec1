"""Marks for the exporter of CEEMS on this node: energy by region of a program and by result (docs/marks.md).

    import ceems_mark

    with ceems_mark.region("solve"):
        for step in range(1000):
            ...
            ceems_mark.result("step")

Calls never wait, and do nothing where there is no exporter. They return whether the mark was sent. Needs only Python's library. The socket is
$CEEMS_MARK_SOCKET or /run/ceems/mark.sock."""

import contextlib
import os
import socket
import threading
import time

RETRY = 5.0  # seconds between two attempts to connect


class _Sender:
    def __init__(self):
        self.socket, self.pid, self.retry_at = None, 0, 0.0
        self.dropped = 0
        self.lock = threading.Lock()

    def connect(self):
        """Connects without waiting. Regions that are open when the process ends end with it."""
        now = time.monotonic()
        if self.pid != os.getpid():  # after a fork the connection belongs to the parent process
            self.close()
            self.pid, self.retry_at = os.getpid(), 0.0
        if self.socket is not None or now < self.retry_at:
            return
        self.retry_at = now + RETRY
        fresh = None
        try:
            fresh = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            fresh.setblocking(False)
            fresh.connect(os.environ.get("CEEMS_MARK_SOCKET") or "/run/ceems/mark.sock")
            fresh.send(b"attach")
            self.socket = fresh
        except OSError:
            if fresh is not None:
                fresh.close()

    def close(self):
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    def send(self, *words):
        text = " ".join(words).encode("ascii", "replace")
        with self.lock:
            for _ in range(2):
                self.connect()
                if self.socket is None:
                    break
                try:
                    self.socket.send(text)
                    return True
                except BlockingIOError:
                    break
                except OSError:  # the exporter has ended or refused
                    self.close()
            self.dropped += 1
            return False


_sender = _Sender()
os.register_at_fork(after_in_child=lambda: setattr(_sender, "lock", threading.Lock()))


def begin(name):
    """A region begins. Regions may be nested up to 8 deep."""
    return _sender.send("begin", name)


def end(name):
    return _sender.send("end", name)


def result(name, n=1, unit=""):
    """`n` more results. `unit` is a unit of measurement, such as "ns". Each result is to be counted once, by one process."""
    return _sender.send("result", name, "%.15g" % n, unit)


def progress(n, name):
    """The same by a running number: the first one of a run is where counting begins."""
    return _sender.send("progress", "%.15g" % n, name)


def fom(name, value, unit=""):
    """A figure of merit, such as ("speed", 83.2, "ns/day")."""
    return _sender.send("fom", name, "%.15g" % value, unit)


def dropped():
    """How many marks could not be sent."""
    return _sender.dropped


@contextlib.contextmanager
def region(name):
    """For `with`, and as a decorator of functions."""
    begin(name)
    try:
        yield
    finally:
        end(name)


class TrainingMarks:
    """Callback for Lightning, without importing it:

        class Marks(ceems_mark.TrainingMarks, lightning.Callback):
            pass
        trainer = lightning.Trainer(callbacks=[Marks()])

    Regions `train` and `validation`; results `batch` and `epoch`, counted by the first rank."""

    @staticmethod
    def _counts(trainer):
        return getattr(trainer, "is_global_zero", True)

    def on_train_start(self, trainer, *_):
        begin("train")

    def on_train_batch_end(self, trainer, *_):
        if self._counts(trainer):
            result("batch")

    def on_train_epoch_end(self, trainer, *_):
        if self._counts(trainer):
            result("epoch")

    def on_train_end(self, trainer, *_):
        end("train")

    def on_validation_start(self, trainer, *_):
        begin("validation")

    def on_validation_end(self, trainer, *_):
        end("validation")

    def on_exception(self, trainer, *_):
        end("validation")
        end("train")
