"""Who may name files of the machine: whoever sits at it, and nobody who comes by a network."""

import pytest

from app import services
from app.local import from_this_machine

HERE = {"Host": "127.0.0.1:8501", "Origin": "http://127.0.0.1:8501"}


@pytest.mark.parametrize(
    "headers",
    [
        HERE,
        {"host": "localhost:8501", "origin": "http://localhost:8501"},
        {"Host": "[::1]:8501", "Origin": "http://[::1]:8501"},
        {"Host": "LOCALHOST"},
        {},
    ],
)
def test_a_browser_at_this_machine_is_known(headers):
    assert from_this_machine(headers)


@pytest.mark.parametrize(
    "headers",
    [
        {**HERE, "X-Forwarded-For": "203.0.113.9"},
        {**HERE, "x-real-ip": "203.0.113.9"},
        {**HERE, "Forwarded": "for=203.0.113.9"},
        {**HERE, "Via": "1.1 proxy"},
        {"Host": "lab.example.org", "Origin": "https://lab.example.org"},
        {"Host": "127.0.0.1:8501", "Origin": "https://lab.example.org"},
        {"Host": "evil.example:8501", "Origin": "http://evil.example:8501"},
        {"Host": "localhost.evil.example", "Origin": "http://localhost.evil.example"},
        {"Host": "127.0.0.1@evil.example"},
        {"Host": "127.0.0.1:8501", "Origin": "null"},
        {"Host": "[::1", "Origin": "http://[::1"},
        {"Host": ""},
    ],
)
def test_whoever_comes_by_a_network_or_another_name_is_not_from_here(headers):
    assert not from_this_machine(headers)


class Context:
    headers = HERE


@pytest.mark.parametrize(
    ("address", "said", "may"),
    [
        ("127.0.0.1", "", True),
        ("::1", "", True),
        ("0.0.0.0", "", False),
        (None, "", False),
        ("192.168.1.5", "", False),
        ("127.0.0.1", "0", False),
        ("127.0.0.1", "no", False),
        ("0.0.0.0", "1", True),
    ],
)
def test_paths_may_be_opened_where_the_app_is_for_this_machine(monkeypatch, address, said, may):
    monkeypatch.setattr(services.st, "get_option", lambda name: address)
    monkeypatch.setattr(services.st, "context", Context())
    monkeypatch.setenv("KBERT_OPEN_PATHS", said)
    assert services.may_open_paths() is may
