"""fermata ps, pause, resume, cancel, tokens: a running server steered from a terminal and from scripts."""

import json
import os
import socket
import subprocess
import threading

from server import BINARY, WAIT_S
from stream import Stream, text_of
from test_security import key_file

LONG = {"prompt": "long", "max_tokens": 8000, "ignore_eos": True, "seed": 9}


def fermata(server, *words, key=None, url=None):
    variables = {name: value for name, value in os.environ.items() if not name.startswith("FERMATA_")}
    variables |= {"FERMATA_URL": url or server.url} | ({"FERMATA_API_KEY": key} if key else {})
    return subprocess.run([BINARY, *words], env=variables, capture_output=True, text=True, timeout=WAIT_S)


def done(*asked, code=0, **more):
    ran = fermata(*asked, **more)
    assert ran.returncode == code, (ran.returncode, ran.stdout, ran.stderr)
    return ran.stderr if code else ran.stdout


def rows(*asked, **more):
    return [json.loads(line) for line in done(*asked, "--json", **more).splitlines()]


def test_pause_look_resume_changes_nothing(tiny):
    asked = {**LONG, "max_tokens": 600}
    whole = tiny.post("/v1/completions", asked).ok()["choices"][0]["text"]
    live = Stream(tiny, "/v1/completions", {**asked, "stream": True, "fermata": {"client_id": "of a shell", "session": "desk"}})
    text = live.texts(3)
    said = done(tiny, "pause", "client:of a shell")
    assert said.startswith(live.generation) and "pau_" in said and "paused at token" in said
    table = done(tiny, "ps")
    assert "client:of a shell" in table and "paused (user)" in table and "desk" in table
    [one] = rows(tiny, "ps")
    assert one["id"] == live.generation and one["state"] == "paused"
    journal = rows(tiny, "tokens", live.generation[:20])
    assert [row["index"] for row in journal] == list(range(len(journal)))
    assert len(journal) == one["pause"]["at"]["token"]
    assert [row["index"] for row in rows(tiny, "tokens", live.generation, "--from", "2", "--limit", "2")] == [2, 3]
    assert "running" in done(tiny, "resume", live.generation)
    assert text + text_of(live.chunks()) == whole


def test_a_session_is_paused_and_cancelled_whole(tiny):
    streams = [Stream(tiny, "/v1/completions", {**LONG, "stream": True, "fermata": {"session": "s", "on_new_message": how}})
               for how in ("queue", "queue")]
    paused = rows(tiny, "pause", "--session", "s")
    assert {one["id"] for one in paused} == {one.generation for one in streams}
    assert done(tiny, "ps", "--session", "other").count("\n") == 1, "the heads alone"
    ended = rows(tiny, "cancel", "--session", "s")
    assert {one["end_reason"] for one in ended} == {"cancelled"}
    assert rows(tiny, "ps", "--session", "s") == []
    assert len(rows(tiny, "ps", "--all", "--session", "s")) == 2


def test_a_list_longer_than_a_page_is_whole(fake):
    names = []
    for i in range(130):
        body = {"prompt": "x", "max_tokens": 1, "fermata": {"session": "many", "client_id": f"m{i}"}}
        names.append(fake.post("/v1/completions", body).ok()["fermata"]["generations"][0])
    assert [one["id"] for one in rows(fake, "ps", "--all", "--session", "many")] == names


def test_what_is_refused_says_why_and_the_rest_is_done(fake):
    body = {"prompt": "x", "max_tokens": 1}
    known = fake.post("/v1/completions", body).ok()["fermata"]["generations"][0]
    ran = fermata(fake, "cancel", "gen_" + "0" * 32, known)
    assert ran.returncode == 1 and "there is no such generation" in ran.stderr
    assert ran.stdout.startswith(known) and "finished (length)" in ran.stdout
    assert "has ended" in done(fake, "pause", known, code=1)
    assert "several generations begin so" in done(fake, "pause", "gen_", code=2)
    assert "a NAME, or --session" in done(fake, "pause", code=2)
    assert "paus" in done(fake, "paus", code=2), "the nearest command is named"


def test_a_cancel_that_comes_first_is_told_so(fake):
    done(fake, "cancel", "client:not yet")
    answer = fake.post("/v1/completions", {"prompt": "x", "max_tokens": 5, "fermata": {"client_id": "not yet"}})
    assert answer.status == 409 and answer.error["code"] == "cancelled"


def test_a_key_is_taken_from_the_variable(start, tmp_path):
    path, keys = key_file(tmp_path, ("ann", "acme", "use"))
    keyed = start("--engine", "fake", "--api-key-file", str(path)).ready()
    assert "FERMATA_API_KEY" in done(keyed, "ps", code=1)
    assert done(keyed, "ps", key=keys["ann"]).startswith("NAME")


def test_nobody_there_and_somebody_else_there():
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        assert "fermata serve" in done(None, "ps", url=url, code=1)
        nobody.listen()

        def another():
            with nobody.accept()[0] as client:
                client.recv(65536)
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

        thread = threading.Thread(target=another)
        thread.start()
        assert "no fermata server" in done(None, "ps", url=url, code=1)
        thread.join()
    assert "http://host:port" in done(None, "ps", url="ftp://x", code=2)


def test_what_a_generation_says_does_nothing_to_the_terminal(fake):
    grammar = "cycle:" + ",".join(str(b) for b in "\x1b[31m\u009b1mred".encode())
    fake.post("/v1/completions", {"prompt": "x", "max_tokens": 60, "grammar": grammar}).ok()
    shown = done(fake, "ps", "--all")
    assert "red" in shown
    assert not any(ord(c) < 0x20 and c != "\n" or 0x7F <= ord(c) < 0xA0 for c in shown)
