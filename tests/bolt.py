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
    """A value as the driver packs it."""
    from neo4j._codec.packstream.v1 import PackableBuffer, Packer

    Packer(buffer := PackableBuffer()).pack(value)
    return bytes(buffer.data)


def unpacked(data):
    """The values in some bytes, one after the other."""
    from neo4j._codec.packstream.v1 import UnpackableBuffer, Unpacker

    buffer = UnpackableBuffer(data)
    while buffer.p < buffer.used:
        yield Unpacker(buffer).unpack()


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
                (login,) = unpacked(rest)
                if login.get("credentials") != self.server.password:
                    code = "Neo.ClientError.Security.Unauthorized"
                    self.say(FAILURE, {"code": code, "message": "unauthorized"})
                    return
                self.say(SUCCESS, {"server": "Neo4j/5.0.0", "connection_id": "bolt-1"})
            elif kind == RUN:
                query, values, *_ = unpacked(rest)
                self.server.queries.append((query, values))
                if "RETURN" not in query:
                    code = "Neo.ClientError.Statement.SyntaxError"
                    self.say(FAILURE, {"code": code, "message": f"Invalid input '{query[:5]}'"})
                    continue
                left = iter(self.server.records[values["first"] :])
                self.say(SUCCESS, {"fields": self.server.fields, "t_first": 0})
            elif kind == PULL:
                size, more = next(unpacked(rest))["n"], False
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
