#!/usr/bin/env python3
"""The program of a demo unit: workload.py cpu [SECONDS] | memory BYTES | idle. Runs until it is stopped, unless SECONDS is given."""

import sys
import time


def cpu(seconds):
    end = time.monotonic() + seconds
    x = 0
    while time.monotonic() < end:
        for i in range(20000):
            x = (x * 31 + i) & 0xFFFFFFFF


def memory(size):
    block = bytearray(size)
    while True:  # touch the memory from time to time, so that it is not swapped out
        for i in range(0, size, 4096):
            block[i] = (block[i] + 1) & 0xFF
        time.sleep(20)


def main():
    what = sys.argv[1]
    if what == "cpu":
        cpu(float(sys.argv[2]) if len(sys.argv) > 2 else float("inf"))
    elif what == "memory":
        memory(int(sys.argv[2]))
    else:
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    main()
