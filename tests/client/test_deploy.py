"""What stands in deploy/ beside HAProxy: systemd's unit and how a server speaks with its manager, the container (docs/deploy.md)."""

import os
import re
import signal
import socket
import subprocess

import pytest

from server import BINARY, ROOT, Server, WAIT_S, until

DEPLOY = ROOT / "deploy"


@pytest.fixture
def manager(monkeypatch, tmp_path):
    """A service manager's end of NOTIFY_SOCKET."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(WAIT_S)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield listening


def hear(manager, begin):
    """Reads on until something begins so."""
    while not (said := manager.recv(4096).decode()).startswith(begin):
        pass
    return said


def test_the_manager_hears_that_it_serves_and_that_it_stops(manager):
    server = Server("--engine", "fake")
    assert hear(manager, "READY=1") == f"READY=1\nSTATUS=serving fake at {server.url}"
    assert server.ready().get("/health").status == 200
    server.process.send_signal(signal.SIGTERM)
    hear(manager, "STOPPING=1")
    assert server.process.wait(timeout=WAIT_S) == 0


def test_the_watchdog_is_fed_while_the_engine_answers(manager, monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", "60000")
    server = Server("--engine", "fake").ready()
    for _ in range(5):
        hear(manager, "WATCHDOG=1")
    assert server.stop() == 0


def test_a_reload_without_keys_stops_nothing(manager):
    server = Server("--engine", "fake").ready()
    hear(manager, "READY=1")
    for _ in range(3):
        server.process.send_signal(signal.SIGHUP)
    server.process.send_signal(signal.SIGTERM)
    hear(manager, "STOPPING=1")
    assert server.process.wait(timeout=WAIT_S) == 0 and "SIGHUP" not in "".join(server.log)


def test_without_a_manager_nothing_is_different(start):
    assert start("--engine", "fake").ready().get("/health").status == 200


def test_systemd_takes_the_unit_and_finds_it_tight(tmp_path):
    unit = (DEPLOY / "fermata.service").read_text()
    mine = tmp_path / "fermata.service"
    mine.write_text(unit.replace("/usr/local/bin/fermata", str(BINARY)))
    ran = subprocess.run(["systemd-analyze", "verify", "--man=no", mine], capture_output=True, text=True, timeout=WAIT_S)
    assert ran.returncode == 0 and "fermata.service" not in ran.stderr, ran.stderr
    tight = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20", mine],
                           capture_output=True, text=True, timeout=WAIT_S)
    assert tight.returncode == 0, tight.stdout[-300:]


def test_the_image_has_the_libraries_of_the_program():
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    named = set(re.search(r"install -y --no-install-recommends \\\n(.*?)&&", dockerfile, re.S).group(1).split())
    needed = subprocess.run(["objdump", "-p", BINARY], check=True, capture_output=True, text=True).stdout
    for library in re.findall(r"NEEDED\s+(\S+)", needed):
        path = subprocess.run(["sh", "-c", f"ldconfig -p | grep -m1 -o '/[^ ]*/{library}$'"], capture_output=True, text=True).stdout.strip()
        real = os.path.realpath(path)  # dpkg may know it by the path of before /lib was a link
        known = subprocess.run(["dpkg-query", "-S", real, real.removeprefix("/usr")], capture_output=True, text=True).stdout
        owner = known.split(":")[0]
        of_every_system = {"libc6", "libgcc-s1"}
        assert owner in named | of_every_system, f"{library} comes with {owner}"


def test_a_container_makes_its_first_key_once(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{BINARY.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("FERMATA_API_KEY_FILE", str(tmp_path / "keys"))
    for n_keys_told in (1, 0):
        process = subprocess.Popen([DEPLOY / "container-start", "serve", "--engine", "fake", "--port", "0", "--host", "0.0.0.0"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        lines = []
        while not any("fermata serves" in line for line in lines):
            lines.append(process.stdout.readline())
            assert lines[-1], lines
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=WAIT_S) == 0
        assert sum(line.startswith("fermata_") for line in lines) == n_keys_told
    assert (tmp_path / "keys").read_text().count("blake2b:") == 1
