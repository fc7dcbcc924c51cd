"""A stub of a Neo4j server: it speaks as much Bolt 5.0 as a query needs, and sends given records.

The real driver talks to it over loopback. The messages are those that a server sends for the same
query; there is no Neo4j here, so nothing of Cypher is run.
"""

import socketserver
import struct
import threading
from contextlib import contextmanager

HELLO, GOODBYE, RESET, RUN, PULL = 0x01, 0x02, 0x0F, 0x10, 0x3F
SUCCESS, RECORD, FAILURE = 0x70, 0x71, 0x7F


def packed(value):
    match value:
        case None:
            return b"\xc0"
        case bool():
            return b"\xc3" if value else b"\xc2"
        case int():
            return b"\xcb" + struct.pack(">q", value)
        case float():
            return b"\xc1" + struct.pack(">d", value)
        case str():
            data = value.encode()
            return b"\xd1" + struct.pack(">H", len(data)) + data
        case list():
            return b"\xd5" + struct.pack(">H", len(value)) + b"".join(map(packed, value))
        case dict():
            items = b"".join(packed(part) for item in value.items() for part in item)
            return b"\xd9" + struct.pack(">H", len(value)) + items


def unpacked(data):
    """The value at the beginning of the bytes, and the bytes after it."""
    mark, data = data[0], data[1:]
    high, low = mark & 0xF0, mark & 0x0F
    if mark < 0x80 or mark >= 0xF0:
        return mark - 256 * (mark >= 0xF0), data
    if mark in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[mark], data
    if sizes := {0xC8: ">b", 0xC9: ">h", 0xCA: ">i", 0xCB: ">q", 0xC1: ">d"}.get(mark):
        size = struct.calcsize(sizes)
        return struct.unpack(sizes, data[:size])[0], data[size:]
    if mark in (0xD0, 0xD4, 0xD8):
        high, low, data = {0xD0: 0x80, 0xD4: 0x90, 0xD8: 0xA0}[mark], data[0], data[1:]
    elif mark in (0xD1, 0xD5, 0xD9):
        high, low = {0xD1: 0x80, 0xD5: 0x90, 0xD9: 0xA0}[mark], int.from_bytes(data[:2])
        data = data[2:]
    if high == 0x80:
        return data[:low].decode(), data[low:]
    parts = []
    for _ in range(low * (2 if high == 0xA0 else 1)):
        part, data = unpacked(data)
        parts.append(part)
    return dict(zip(parts[::2], parts[1::2], strict=True)) if high == 0xA0 else parts, data


class Stub(socketserver.ThreadingTCPServer):
    """A server on 127.0.0.1; ``queries`` are those that were run, with their parameters."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, records, password, fields):
        super().__init__(("127.0.0.1", 0), Talk)
        self.records, self.password, self.fields = records, password, fields
        self.queries, self.cut_after = [], None
        self.address = f"bolt://neo4j@127.0.0.1:{self.server_address[1]}"


class Talk(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.recv(20, 0x100)  # MSG_WAITALL: what the driver offers
        self.request.sendall(b"\x00\x00\x00\x05")
        stream, left = self.request.makefile("rb"), iter(())
        while data := self.message(stream):
            kind, rest = data[1], data[2:]
            if kind == HELLO:
                login, _ = unpacked(rest)
                if login.get("credentials") != self.server.password:
                    code = "Neo.ClientError.Security.Unauthorized"
                    self.say(FAILURE, {"code": code, "message": "unauthorized"})
                    return
                self.say(SUCCESS, {"server": "Neo4j/5.0.0", "connection_id": "bolt-1"})
            elif kind == RUN:
                query, rest = unpacked(rest)
                values, _ = unpacked(rest)
                self.server.queries.append((query, values))
                if "RETURN" not in query:
                    code = "Neo.ClientError.Statement.SyntaxError"
                    self.say(FAILURE, {"code": code, "message": f"Invalid input '{query[:5]}'"})
                    continue
                left = iter(self.server.records[values["first"] :])
                self.say(SUCCESS, {"fields": self.server.fields, "t_first": 0})
            elif kind == PULL:
                size, more = unpacked(rest)[0]["n"], False
                for number, record in enumerate(left, start=1):
                    if self.server.cut_after == 0:
                        self.server.cut_after = None
                        return
                    if self.server.cut_after is not None:
                        self.server.cut_after -= 1
                    self.say(RECORD, record)
                    if more := number == size:
                        break
                self.say(SUCCESS, {"has_more": True} if more else {"type": "r", "db": "neo4j"})
            elif kind == RESET:
                self.say(SUCCESS, {})
            elif kind == GOODBYE:
                return

    def message(self, stream):
        data = b""
        while size := int.from_bytes(stream.read(2)):
            data += stream.read(size)
        return data

    def say(self, kind, value):
        data = bytes([0xB1, kind]) + packed(value)
        self.request.sendall(struct.pack(">H", len(data)) + data + b"\0\0")


@contextmanager
def neo4j_stub(records, *, password="secret", fields=("head", "relation", "tail")):
    """Run one; ``cut_after`` lets it end a stream once, after so many records."""
    with Stub(records, password, list(fields)) as stub:
        threading.Thread(target=stub.serve_forever, daemon=True).start()
        try:
            yield stub
        finally:
            stub.shutdown()
