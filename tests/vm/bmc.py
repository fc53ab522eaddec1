"""A BMC for QEMU's ipmi-bmc-extern: responds to the requests that the kernel's driver sends at the start, and to DCMI power readings.

The line protocol is "VM" of OpenIPMI: a message ends with A0 and a hardware command with A1; AA escapes the next byte, which then has
0x10 set. A message consists of sequence, network function and LUN, command, data and checksum (the sum of all bytes is 0)."""

import os
import socket
import struct
import threading
import time

MESSAGE_END, COMMAND_END, ESCAPE = 0xA0, 0xA1, 0xAA
SENSOR, APP, STORAGE, GROUP, DCMI = 0x04, 0x06, 0x0A, 0x2C, 0xDC
INVALID_COMMAND, NOT_PRESENT, RESERVATION_CANCELLED, TOO_LONG = 0xC1, 0xCB, 0xC5, 0xCA
LONGEST_PART = 24  # bytes of a record in one response
WATTS, RPM = 6, 18


def escaped(data):
    out = bytearray()
    for byte in data:
        out += bytes((ESCAPE, byte | 0x10)) if byte in (MESSAGE_END, COMMAND_END, ESCAPE) else bytes((byte,))
    return bytes(out)


def full_record(number, name, unit, factor):
    """A full sensor record (IPMI 2.0, table 43-1) of a linear, unsigned sensor."""
    record = bytearray(48)
    record[2:4] = 0x51, 0x01
    record[5], record[7], record[21], record[24], record[47] = 0x20, number, unit, factor, 0xC0 | len(name)
    record += name.encode()
    record[4] = len(record) - 5
    return record


def event_record(number, name):
    """An event-only record (table 43-3)."""
    record = bytearray(17)
    record[2:4] = 0x51, 0x03
    record[5], record[7], record[16] = 0x20, number, 0xC0 | len(name)
    record += name.encode()
    record[4] = len(record) - 5
    return record


class Bmc:
    """Listens on a Unix socket until it is closed. `watts` (current, minimum, maximum, average) may be set at any time. While `silent` is
    true, power readings get no response. `raw` has the raw reading of each sensor by its number."""

    def __init__(self, path):
        self.path = path
        self.watts = (0, 0, 0, 0)
        self.silent = False
        self.readings = 0
        self.records = [full_record(0x41, "PSU2 Input Power", WATTS, 2), event_record(0x01, "Watchdog"),
                        full_record(0x30, "Fan 1", RPM, 50), full_record(0x40, "PSU1 Input Power", WATTS, 2)]
        self.raw = {0x40: 80, 0x41: 81, 0x30: 90}
        self.reservation = 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(1)
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self):
        self.listener.close()
        os.unlink(self.path)

    def _serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
                # Protocol version 1; does not request attention.
                connection.sendall(bytes((0xFF, 1, COMMAND_END, 0, COMMAND_END)))
                self._talk(connection)
            except OSError:
                if self.listener.fileno() < 0:
                    return

    def _talk(self, connection):
        message, escape = bytearray(), False
        while True:
            received = connection.recv(4096)
            if not received:
                return
            for byte in received:
                if byte == MESSAGE_END:
                    if len(message) >= 4 and sum(message) & 0xFF == 0:
                        connection.sendall(self._answer(bytes(message)))
                    message.clear()
                elif byte == COMMAND_END:
                    message.clear()
                elif byte == ESCAPE:
                    escape = True
                else:
                    message.append(byte & ~0x10 if escape else byte)
                    escape = False

    def _answer(self, message):
        sequence, function, command, data = message[0], message[1] >> 2, message[2], message[3:-1]
        code, answer = self._result(function, command, data)
        if code is None:
            return b""
        head = bytes((sequence, (function | 1) << 2 | message[1] & 3, command, code)) + answer
        return escaped(head + bytes((-sum(head) & 0xFF,))) + bytes((MESSAGE_END,))

    def _result(self, function, command, data):
        """(completion code, data). No response if the code is None."""
        if function == APP:
            known = {
                0x01: bytes((0x20, 0x01, 0x02, 0x10, 0x02, 0x1F, 0x57, 0x01, 0, 0x34, 0x12)),  # device ID
                0x2E: b"", 0x2F: b"\0", 0x30: b"", 0x31: b"\0",  # enables and message flags
                0x37: bytes(range(16)),  # GUID
            }
            if command in known:
                return 0, known[command]
        if function == STORAGE:
            return self._repository(command, data)
        if function == SENSOR and command == 0x2D:  # reading, with scanning and events enabled
            return (0, bytes((self.raw[data[0]], 0xC0, 0))) if data[0] in self.raw else (NOT_PRESENT, b"")
        if function == GROUP and data[:1] == bytes((DCMI,)):
            if command == 1:  # capabilities
                return 0, bytes((DCMI, 1, 5, 2, 0x07, 0x01, 0x07))
            if command == 2:
                self.readings += 1
                if self.silent:
                    return None, b""
                active = 0x40
                return 0, struct.pack("<BHHHHIIB", DCMI, *self.watts, int(time.time()), 1000, active)
        return INVALID_COMMAND, b""

    def _repository(self, command, data):
        if command == 0x20:  # information
            return 0, struct.pack("<BHHIIB", 0x51, len(self.records), 0xFFFF, 1, 0, 0x02)
        if command == 0x22:  # reservation
            self.reservation += 1
            return 0, struct.pack("<H", self.reservation)
        if command != 0x23 or len(data) != 6:
            return INVALID_COMMAND, b""
        reservation, record, offset, size = struct.unpack("<HHBB", data)
        index = max(record, 1) - 1
        if reservation != self.reservation:
            return RESERVATION_CANCELLED, b""
        if index >= len(self.records):
            return NOT_PRESENT, b""
        if size > LONGEST_PART:
            return TOO_LONG, b""
        following = index + 2 if index + 1 < len(self.records) else 0xFFFF
        return 0, struct.pack("<H", following) + bytes(self.records[index][offset:offset + size])
