"""API keys of a server that runs: made, read anew, taken away (docs/security.md)."""

import fcntl
import os
import pathlib
import signal
import subprocess

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from server import BINARY, taking_nothing, WAIT_S, until
from stream import finish_of, Stream
from test_security import key_file

ENDLESS = {"prompt": "x", "grammar": "cycle:97,98", "max_tokens": 400, "stream": True, "fermata": {"pause_at": 5}}


def new_key(*words):
    made = subprocess.run([str(BINARY), "new-key", *words], capture_output=True, text=True, timeout=WAIT_S)
    assert made.returncode == 0, made.stderr
    return made.stdout.split()[0]


def replace(path, text):
    """As careful editors write: another file takes the name."""
    other = path.with_name("keys.new")
    other.write_text(text)
    os.chmod(other, 0o600)
    os.replace(other, path)


@pytest.fixture
def keyed(start, tmp_path):
    path, keys = key_file(tmp_path, ("ann", "acme", "use"), ("bob", "acme", "use,admin"))
    server = start("--engine", "fake", "-c", "512", "--api-key-file", str(path)).ready()
    server.keys, server.path, server.key = keys, path, keys["bob"]
    return server


def reread(server):
    """SIGHUP, and what the log says of it."""
    n = len(server.log)
    server.process.send_signal(signal.SIGHUP)
    return until(lambda: next((line for line in server.log[n:] if "API keys" in line), None), lambda: server.log)


def test_the_first_key_and_one_for_a_server_that_runs(start, tmp_path):
    first = new_key("first", "--scopes", "use,review,admin", "--append", str(tmp_path / "keys"))
    server = start("--engine", "fake", "--api-key-file", str(tmp_path / "keys")).ready()
    assert server.get("/v1/models").status == 401 and server.get("/v1/models", key=first).status == 200
    second = new_key("second", "--append", str(tmp_path / "keys"))
    until(lambda: server.get("/v1/models", key=second).status == 200, "it sees the file change")
    assert server.get("/v1/models", key=first).status == 200
    assert server.get("/v1/stats", key=second).status == 403, "scopes are what is written"
    until(lambda: any("API keys read anew: 2 keys, 0 of those before gone" in line for line in server.log), lambda: server.log)


def test_a_key_that_is_taken_out_is_out_at_once(keyed):
    hers, his = ({**ENDLESS, "fermata": {"pause_at": 5, "client_id": name}} for name in ("hers", "his"))
    keyed.key = keyed.keys["ann"]
    stream = Stream(keyed, "/v1/completions", hers)
    stream.texts(5)
    keyed.key = keyed.keys["bob"]
    other = Stream(keyed, "/v1/completions", his)
    other.texts(5)
    bearer = {"Authorization": f"Bearer {keyed.keys['ann']}"}
    with connect(f"ws://{keyed.host}:{keyed.port}/v1/events", proxy=None, additional_headers=bearer) as follower:
        lines = keyed.path.read_text().splitlines(keepends=True)
        replace(keyed.path, "".join(line for line in lines if not line.startswith("ann ")))
        keyed.process.send_signal(signal.SIGHUP)
        until(lambda: any("1 key, 1 of those before gone" in line for line in keyed.log), lambda: keyed.log)
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                follower.recv(timeout=WAIT_S)
        assert closed.value.rcvd.code == 1008
    while stream._more():
        pass
    assert not stream.data.endswith(b"data: [DONE]\n\n"), "it was cut, and looks like no success"
    cut = until(lambda: [line for line in keyed.log if "key=ann" in line and "cut=key" in line], lambda: keyed.log)
    assert len(cut) == 2 and not [line for line in keyed.log if " 499 " in line], "the stream and the follower, by us"
    assert keyed.get("/v1/models", key=keyed.keys["ann"]).status == 401
    assert keyed.wait_for("client:hers", "finished")["end_reason"] == "disconnected"
    keyed.post("/v1/generations/client:his/resume").ok(202)
    assert finish_of(other.chunks())[0] == "length", "another key's stream knows nothing of it"


@pytest.mark.parametrize("text,mode,why", [("ann acme use blake2b:12\n", 0o600, "line 1"), ("", 0o600, "has no API key"),
                                           ("# none\n", 0o600, "has no API key"), (None, 0o600, "there is no file of API keys"),
                                           ("same", 0o622, "may be written by others")])
def test_a_broken_file_is_refused_and_the_keys_stay(keyed, text, mode, why):
    before = keyed.path.read_text()
    if text is None:
        keyed.path.unlink()
    else:
        keyed.path.write_text(before if text == "same" else text)
        os.chmod(keyed.path, mode)
    said = reread(keyed)
    assert "the API keys stay as they were" in said and why in said
    for name in keyed.keys:
        assert keyed.get("/v1/models", key=keyed.keys[name]).status == 200
    keyed.path.write_text(before)
    os.chmod(keyed.path, 0o600)
    assert "2 keys, 0 of those before gone" in reread(keyed)


def test_a_hangup_reads_the_keys_and_nothing_else(keyed):
    live = Stream(keyed, "/v1/completions", ENDLESS)
    live.texts(5)
    for _ in range(3):
        assert "2 keys, 0 of those before gone" in reread(keyed)
    keyed.post(f"/v1/generations/{live.generation}/resume").ok(202)
    assert finish_of(live.chunks())[0] == "length"
    assert keyed.stop() == 0


def test_a_hangup_while_it_begins_is_none_too_early(tmp_path):
    path, _ = key_file(tmp_path, ("ann", "acme", "use"))
    path.write_text(path.read_text() + "#\n" * 500_000)  # reading takes a while
    for _ in range(5):
        process = subprocess.Popen([str(BINARY), "serve", "--port", "0", "--engine", "fake", "--api-key-file", str(path)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            # The program, who takes its signals, and then the first of those that write: the file is looked at now.
            threads = pathlib.Path(f"/proc/{process.pid}/task")
            until(lambda: len(list(threads.iterdir())) >= 3, "it begins")
            process.send_signal(signal.SIGHUP)
            said = []
            while not said or "API keys read anew" not in said[-1]:
                said.append(process.stderr.readline())
                assert said[-1], f"it ended by {process.wait(WAIT_S)}: {said}"
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_S) == 0
        finally:
            process.kill()
            process.communicate()


def test_without_keys_a_lost_terminal_ends_it(start):
    server = start("--engine", "fake").ready()
    server.process.send_signal(signal.SIGHUP)
    assert server.process.wait(WAIT_S) == 0


def test_a_file_named_without_its_folder(tmp_path):
    for name in ("first", "second"):
        made = subprocess.run([str(BINARY), "new-key", name, "--append", "keys"], cwd=tmp_path, capture_output=True, text=True,
                              timeout=WAIT_S)
        assert made.returncode == 0, made.stderr
    assert [line.split()[0] for line in (tmp_path / "keys").read_text().splitlines() if not line.startswith("#")] == ["first", "second"]


@pytest.mark.parametrize("how", ["unread", "disk"])
@pytest.mark.parametrize("before", [None, "# ours\n"])
def test_a_key_that_could_not_be_printed_is_none(tmp_path, how, before):
    path = tmp_path / "keys"
    if before:
        path.write_text(before)
        os.chmod(path, 0o600)
    with taking_nothing(how) as out:
        made = subprocess.run([str(BINARY), "new-key", "one", "--append", str(path)], stdout=out, stderr=subprocess.PIPE,
                              text=True, timeout=WAIT_S)
    assert made.returncode == 1 and f"could not be written; {path} stays as it was" in made.stderr, made
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == ([("keys", before)] if before else [])


def test_a_folder_that_another_holds_is_not_waited_for_without_end(tmp_path):
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    made = subprocess.run([str(BINARY), "new-key", "one", "--append", str(tmp_path / "keys")], capture_output=True, text=True,
                          timeout=WAIT_S)
    assert made.returncode == 1 and f"{tmp_path} is locked by another program" in made.stderr and "lslocks" in made.stderr
    assert made.stdout == "" and not list(tmp_path.iterdir())
    os.close(folder)
    assert new_key("one", "--append", str(tmp_path / "keys"))


def test_a_key_in_two_lines_stays_when_nothing_changes(start, tmp_path):
    path, keys = key_file(tmp_path, ("ann", "acme", "use,admin"))
    line = path.read_text().splitlines()[-1]
    path.write_text(f"{line.replace('use,admin', 'use')}\n{line.replace('use,admin', 'admin,use')}\n")
    os.chmod(path, 0o600)
    server = start("--engine", "fake", "-c", "512", "--api-key-file", str(path)).ready()
    server.key = keys["ann"]
    live = Stream(server, "/v1/completions", ENDLESS)
    live.texts(5)
    path.write_text(path.read_text().replace("admin,use", "use,admin") + "# another comment\n")
    assert "2 keys, 0 of those before gone" in reread(server)
    server.post(f"/v1/generations/{live.generation}/resume").ok(202)
    assert finish_of(live.chunks())[0] == "length"
