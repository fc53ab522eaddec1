"""Accounts of the demo: names with one random password, which is made anew at every start."""

import ctypes
import os
import secrets

from . import Problem

NAMES = ("demo-admin", "demo-user")
COST = 10  # of bcrypt: 2^10 rounds


def bcrypt(password):
    """The hash that the API server reads, by the system's own crypt(3)."""
    alphabet = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    salt = "".join(secrets.choice(alphabet) for _ in range(21)) + secrets.choice(".Oeu")  # 128 bits: the last character has two
    try:
        library = ctypes.CDLL("libcrypt.so.1")
    except OSError as error:
        raise Problem("the library libcrypt.so.1 is missing: %s" % error) from error
    library.crypt.restype = ctypes.c_char_p
    found = library.crypt(password.encode(), ("$2b$%02d$%s" % (COST, salt)).encode())
    if not found or len(found) != 60:
        raise Problem("the system's crypt(3) has no bcrypt")
    return found.decode()


class Accounts:
    def __init__(self, folder, owner):
        """`owner` is (user id, group id) of the API server, or None for our own."""
        self.folder, self.owner = folder, owner
        self.password = secrets.token_urlsafe(9)
        self.token = secrets.token_urlsafe(32)

    def write(self):
        """The files for the API server: users with their hashes, and the token with which programs ask in the name of an account."""
        users = "basic_auth_users:\n" + "".join("  %s: %s\n" % (name, bcrypt(self.password)) for name in NAMES)
        self._private("password", self.password + "\n")
        return self._private("users.yml", users), self._private("token", self.token + "\n")

    def _private(self, name, text):
        path = os.path.join(self.folder, name)
        descriptor = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as f:
            f.write(text)
        if self.owner:
            os.chown(path + ".new", *self.owner)
        os.replace(path + ".new", path)
        return path

    def headers(self):
        """Of a program that asks as demo-admin."""
        return {"X-Ceems-Service-Token": self.token, "X-Grafana-User": NAMES[0]}
