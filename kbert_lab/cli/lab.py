"""`kbert lab`: the app, from a clone of the repository or from an installed package."""

import os
import subprocess
import sys
from importlib.util import find_spec

from kbert_core.errors import MissingPackageError
from kbert_core.files import shipped
from kbert_lab.cli.commands import command

NEEDED = ("streamlit", "babel", "plotly", "pyvis", "pandas", "captum")


@command("lab")
def lab(*, port: int | None = None, no_browser: bool = False) -> None:
    """Open the app in the browser, with the models and graphs that come with it.

    Args:
        port: of the address in the browser; default: STREAMLIT_SERVER_PORT, else 8501
        no_browser: print the address, and open no browser
    """
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise MissingPackageError(
            f"The app needs {', '.join(missing)}, not installed here. "
            'Install what it needs: pip install "kbert-lab[app]"'
        )
    main = shipped("app/main.py")
    if not main.is_file():
        raise MissingPackageError(
            "The app isn't part of this installation. Install it: pip install "
            '"kbert-lab[app]", or run this in a clone of the repository.'
        )
    run = [sys.executable, "-m", "streamlit", "run", str(main)]
    run += [f"--server.port={port}"] if port else []
    run += ["--server.headless=true"] if no_browser else []
    sys.stdout.flush()
    if os.name == "posix":
        os.execv(sys.executable, run)  # this process becomes the app, so that signals reach it
    raise SystemExit(subprocess.run(run, check=False).returncode)
