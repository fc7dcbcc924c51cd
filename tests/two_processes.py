"""`kbert` in two processes, as `torch.distributed.run` starts it, without its imports each time."""

import os
import socket
import sys
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

_STARTED = get_context("forkserver")
_STARTED.set_forkserver_preload(["kbert_lab.cli", "kbert_lab.training.finetune", "two_processes"])


def together(folder: Path, *command: str) -> SimpleNamespace:
    """Run a command in two processes that know of each other.

    Args:
        folder: for what they print.
        command: of `kbert`.

    Returns:
        The larger exit status, what both printed, and what both wrote to stderr.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = [
        _STARTED.Process(target=_run, args=(rank, port, folder, command)) for rank in (0, 1)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
        process.kill()
    written = {
        name: "".join((folder / f"{rank}.{name}").read_text(encoding="utf-8") for rank in (0, 1))
        for name in ("stdout", "stderr")
    }
    return SimpleNamespace(returncode=max(abs(p.exitcode) for p in processes), **written)


def _run(rank: int, port: int, folder: Path, command: tuple[str, ...]) -> None:
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    for name in ("stdout", "stderr"):
        setattr(sys, name, (folder / f"{rank}.{name}").open("w", encoding="utf-8", buffering=1))
    from kbert_lab import cli

    sys.exit(cli.main(list(command)))
