"""Which port torch's store could not have: the digits behind the last colon of an address."""

from __future__ import annotations

import pytest

from tests.diagnose.test_causes import findings

BIND = "The server socket has failed to bind to {}:{} (errno: 98 - Address already in use)."
NONE = "The server socket has failed to listen on any local network address."
FIELDS = "port: {}, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use"
FORMS = {
    "v6": (f"[E socket.cpp:426] [c10d] {BIND}", "[::]"),
    "v4": (f"[E socket.cpp:426] [c10d] {BIND}", "0.0.0.0"),
    "unknown": (f"[E socket.cpp:426] [c10d] {BIND}", "?UNKNOWN?"),
}


def port_of(text: str) -> tuple[str, str]:
    (found,) = findings(text)
    assert "port 0" not in found.cause
    return found.name, found.cause


@pytest.mark.parametrize("port", [44796, 80, 1023, 1024])
@pytest.mark.parametrize("form", FORMS)
def test_the_port_is_told_whatever_its_address(form, port):
    line, address = FORMS[form]
    name, cause = port_of(line.format(address, port))
    assert name == ("port_of_system" if port < 1024 else "port_in_use")
    assert str(port) in cause.split()[1:2] or cause.endswith(f": {port}")


@pytest.mark.parametrize("port", [44796, 80])
def test_the_port_is_told_where_one_line_has_several_addresses(port):
    both = f"RuntimeError: {NONE} {BIND.format('[::]', port)} {BIND.format('0.0.0.0', port)}"
    unnamed = "The server socket has failed to bind to ?UNKNOWN? (errno: 98 - Address already in"
    for text in (
        both,
        f"RuntimeError: {NONE} {unnamed} use). {BIND.format('0.0.0.0', port)}",
        f"RuntimeError: {NONE} {FIELDS.format(port)}",
        "\n".join(line.format(address, port) for line, address in FORMS.values()),
    ):
        name, cause = port_of(text)
        assert name == ("port_of_system" if port < 1024 else "port_in_use")
        assert str(port) in cause


def test_a_line_without_a_port_names_none():
    text = "The server socket has failed to bind to ?UNKNOWN? (errno: 98 - Address already in use)."
    assert port_of(text) == ("port_in_use", "a port is in use already")


def test_a_port_that_is_not_permitted_is_told_of_several_addresses():
    denied = "The server socket has failed to bind to 0.0.0.0:80 (errno: 13 - Permission denied)."
    (found,) = findings(f"RuntimeError: {NONE} {denied}")
    assert (found.name, found.cause.endswith(": 80")) == ("port_denied", True)
