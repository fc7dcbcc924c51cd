"""A private Ray on this machine.

Ray's own start waits 15 seconds for its helpers, and no longer, unless it knows their ports.
"""

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

TRIES = 3
PORTS = (
    *("port", "dashboard-agent-listen-port", "dashboard-agent-grpc-port"),
    *("runtime-env-agent-port", "metrics-export-port"),
)
os.environ |= {  # of its processes and of ours, so import this before Ray
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_enable_worker_prestart": "0",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_worker_niceness": "0",
}


def free_ports(count):
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def running_ray(*, workers=2):
    """Start one, again where the machine is too busy for its start; gives its address."""
    with ExitStack() as stack:
        for left in reversed(range(TRIES)):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ray-"))
            ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
            process, said = start(Path(folder), ports, workers)
            stack.callback(end, process)
            if begun(process, said):
                break
            assert left, said.read_text()
        yield f"127.0.0.1:{ports['port']}"


def start(folder, ports, workers):
    options = [part for name, port in ports.items() for part in (f"--{name}", str(port))]
    options += ["--num-cpus", str(workers), "--object-store-memory", "100000000"]
    options += ["--include-dashboard", "false", "--include-log-monitor", "false"]
    ray, said = Path(sys.executable).with_name("ray"), folder / "said"
    with said.open("w") as output:
        process = subprocess.Popen(
            [ray, "start", "--head", "--block", "--temp-dir", folder, *options],
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return process, said


def begun(process, said):
    while "Ray runtime started" not in said.read_text():
        if process.poll() is not None:
            return False
        time.sleep(0.1)
    return True


def end(process):
    process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(30)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
