"""Uses CPU in Python functions with known shares, at a known depth. Usage: hot.py [thread|calls|callbacks|generator|names|deep [READY]]
Makes the file READY, if given, before it starts.

Below main: outer -> middle -> fifty, thirty and twenty (through burn), which take 50, 30 and 20 % of the time."""
import sys
import threading
import zlib

DATA = b"".join(b"%d" % (i * i) for i in range(20000))


def work(rounds):
    x = 0
    for i in range(rounds):
        x = (x + i) & 0xFFFF
    return x


def fifty(unit):
    x = 0
    for i in range(5 * unit):
        x = (x + i) & 0xFFFF
    return x


def thirty(unit):
    x = 0
    for i in range(3 * unit):
        x = (x + i) & 0xFFFF
    return x


def burn(rounds):
    x = 0
    for i in range(rounds):
        x = (x + i) & 0xFFFF
    return x


def twenty(unit):
    return burn(2 * unit)


class Solver:
    def middle(self, unit):
        fifty(unit)
        thirty(unit)
        twenty(unit)


def outer():
    solver = Solver()
    while True:
        solver.middle(20000)


def compress():
    """Python calls C, which is where the time goes."""
    while True:
        zlib.compress(DATA, 9)


def key(number):
    """C calls Python: sorted() is below callbacks, and this below sorted()."""
    return work(100) + number


def callbacks():
    while True:
        sorted(range(1000), key=key)


def numbers():
    while True:
        yield work(1000)


def generator():
    for _ in numbers():
        pass


def deep(levels):
    return deep(levels - 1) if levels > 1 else fifty(20000)


def größe_名():
    while True:
        work(10000)


def main():
    mode = sys.argv[1] if len(sys.argv) > 1 else "shares"
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w"):
            pass
    if mode == "deep":
        while True:
            deep(60)
    run = {"shares": outer, "thread": outer, "calls": compress, "callbacks": callbacks, "generator": generator, "names": größe_名}[mode]
    if mode == "thread":
        # The first thread waits, without the lock of the interpreter.
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    run()


main()
