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


class Tally:
    """Adds results up and sends them ten times a second at most, for results that come faster than the exporter takes messages."""

    PAUSE = 0.1

    def __init__(self, name, unit=""):
        self.name, self.unit, self.n, self.send_at = name, unit, 0, 0.0

    def add(self, n=1):
        self.n += n
        if time.monotonic() >= self.send_at:
            self.flush()

    def flush(self):
        """Sends what was not sent yet."""
        if self.n and result(self.name, self.n, self.unit):
            self.n = 0
        self.send_at = time.monotonic() + self.PAUSE


def counted(items, name="batch"):
    """The items of a DataLoader, or of anything else, each of which counts as a result once the loop is done with it:

        for batch in ceems_mark.counted(loader):
            ..."""
    tally = Tally(name)
    try:
        for item in items:
            yield item
            tally.add()
    finally:
        tally.flush()


class TrainingMarks:
    """What lightning_callback() does, without importing Lightning: regions `train` and `validation`; results `batch` and `epoch`, counted
    by the first rank."""

    def __init__(self):
        super().__init__()
        self.batches = Tally("batch")

    @staticmethod
    def _counts(trainer):
        return getattr(trainer, "is_global_zero", True)

    def on_train_start(self, trainer, *_):
        begin("train")

    def on_train_batch_end(self, trainer, *_, **__):
        if self._counts(trainer):
            self.batches.add()

    def on_train_epoch_end(self, trainer, *_):
        if self._counts(trainer):
            self.batches.flush()
            result("epoch")

    def on_train_end(self, trainer, *_):
        self.batches.flush()
        end("train")

    def on_validation_start(self, trainer, *_):
        begin("validation")

    def on_validation_end(self, trainer, *_):
        end("validation")

    def on_exception(self, trainer, *_):
        end("validation")
        self.on_train_end(trainer)


def lightning_callback():
    """A callback for Lightning, which is imported only here:

        trainer = lightning.Trainer(callbacks=[ceems_mark.lightning_callback()])"""
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback  # its name before 2.0

    class Marks(TrainingMarks, Callback):
        pass

    return Marks()
