"""A private PostgreSQL cluster in a temporary folder; skips where there is none."""

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

HBA = "host all locked 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"


class Cluster:
    """A server of our own; ``address()`` is that of a graph that nobody has used."""

    def __init__(self, folder, binaries, fsync):
        self._fsync = fsync
        self.folder, self._binaries, self._numbers = folder, binaries, count()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.run("initdb", "-U", "kbert", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        (folder / "data" / "pg_hba.conf").write_text(HBA)

    def run(self, program, *arguments):
        command = [self._binaries / program, "-D", self.folder / "data", *arguments]
        if os.getuid() == 0:  # which PostgreSQL refuses
            command = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *command]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, timeout=120)

    def start(self):
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c fsync={self._fsync}"
        options += f" -c unix_socket_directories={self.folder}"
        log = ("-l", self.folder / "log")
        self.run("pg_ctl", "start", "-w", *log, "-o", options)

    def stop(self):
        self.run("pg_ctl", "stop", "-w", "-m", "immediate")

    def address(self, *, user="kbert", graph=""):
        graph = graph or f"g{next(self._numbers)}"
        return f"postgresql://{user}@127.0.0.1:{self.port}/postgres?graph={graph}"

    def ask(self, query):
        """Ask as a user of the server, in a connection of its own."""
        import psycopg

        where = f"host=127.0.0.1 port={self.port} user=kbert dbname=postgres"
        with psycopg.connect(where, autocommit=True) as connection:
            return connection.execute(query)


def binaries():
    """Where PostgreSQL's programs are; None: nowhere."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name))
    return next((f for f in reversed(folders) if (f / "initdb").exists()), None)


@contextmanager
def running_cluster(*, fsync="off"):
    """Start one; skip the tests where it can't be had."""
    pytest.importorskip("psycopg", reason="no psycopg: pip install 'kbert-lab[server]'")
    if binaries() is None:
        pytest.skip("no PostgreSQL server: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="kbert-postgres-"))
    try:
        if os.getuid() == 0:
            shutil.chown(folder, "nobody")
        cluster = Cluster(folder, binaries(), fsync)
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
