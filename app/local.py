"""Whether a visitor sits at the machine that runs the app, as far as their request tells."""

from collections.abc import Mapping
from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "localhost", "::1")
FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


def is_loopback(address: str) -> bool:
    """Whether an address leads to the machine itself."""
    return address.strip("[]").lower() in LOOPBACK


def from_this_machine(headers: Mapping[str, str]) -> bool:
    """Whether a request comes from a browser here, that shows a page from here.

    No: a proxy has passed it on, or the page's address is another's. The last
    is also what a foreign site looks like that has its name lead to this machine.
    """
    given = {name.lower(): value for name, value in headers.items()}
    if any(name in given for name in FORWARDED):
        return False
    hosts = [f"//{given['host']}"] if "host" in given else []
    hosts += [given["origin"]] if "origin" in given else []
    return all(is_loopback(_host_of(host)) for host in hosts)


def _host_of(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
