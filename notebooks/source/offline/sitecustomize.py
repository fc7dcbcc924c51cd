"""Lets a process reach nothing but its own machine: the notebooks are run so by run.py.

Python imports a module of this name by itself where its folder is on the path.
"""

import socket

_connect = socket.socket.connect
_look_up = socket.getaddrinfo
HERE = {"localhost", "127.0.0.1", "::1", "", None}


def _refuse(address: object) -> None:
    if isinstance(address, tuple) and address[0] not in HERE:
        raise OSError(f"The network is off in a test of the notebooks; {address[0]} was asked for.")


def connect(self: socket.socket, address: object) -> None:
    """Connect, if it is to this machine."""
    _refuse(address)
    _connect(self, address)


def look_up(host: object, *args: object, **kwargs: object) -> object:
    """Look up a name of this machine."""
    _refuse((host,))
    return _look_up(host, *args, **kwargs)


socket.socket.connect, socket.getaddrinfo = connect, look_up
