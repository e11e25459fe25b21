"""The commands that ask a server, asked of one that is no fermata, or means no good."""

import contextlib
import json
import os
import socket
import subprocess
import threading

import pytest

from server import BINARY, WAIT_S
from test_commands import done


@contextlib.contextmanager
def answering(answer):
    """The URL of a server that answers each request with `answer(head)`, and the heads it got."""
    heads = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            while True:
                try:
                    client = listener.accept()[0]
                except OSError:
                    return
                with client, contextlib.suppress(OSError):
                    heads.append(client.recv(65536).decode())
                    client.sendall(answer(heads[-1]))
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", heads
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(WAIT_S)


def page(**fields):
    body = json.dumps(fields).encode()
    return b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 4\r\n\r\nnone"
NOT_IMPLEMENTED = NOT_FOUND.replace(b"404 Not Found", b"501 Unsupported method")


@pytest.mark.parametrize("said", [NOT_FOUND, NOT_IMPLEMENTED, b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 abc\r\n\r\n", b"\0" * 99])
@pytest.mark.parametrize("words", [("ps",), ("pause", "client:x"), ("tokens", "client:x")])
def test_what_is_no_fermata_is_said_to_be_none(said, words):
    with answering(lambda head: said) as (url, _):
        assert "no fermata server" in done(None, *words, url=url, code=1)


def test_nothing_but_the_server_is_asked_on_this_machine(fake, monkeypatch):
    with answering(lambda head: NOT_FOUND) as (proxy, heads):
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy)
        assert done(fake, "ps", key="a-secret").startswith("NAME")
        assert done(fake, "ps", url=fake.url.replace("127.0.0.1", "localhost")).startswith("NAME")
    assert heads == []


def test_other_machines_are_asked_by_the_proxy(monkeypatch):
    with answering(lambda head: page(data=[], has_more=False)) as (proxy, heads):
        monkeypatch.setenv("http_proxy", proxy)
        assert done(None, "ps", url="http://desk.invalid:8080").startswith("NAME")
    assert heads[0].startswith("GET http://desk.invalid:8080/v1/generations")


def test_a_key_of_two_lines_is_no_key(fake):
    for key in ("a\r\nX-Evil: 1", "a\n", "a b", "\x1b[31m"):
        said = done(fake, "ps", key=key, code=2)
        assert "FERMATA_API_KEY" in said and "Evil" not in said and "\x1b" not in said


def test_a_list_without_an_end_is_given_up():
    numbers = iter(range(1 << 30))
    row = {"id": "gen_" + "x" * (4 << 20)}
    with answering(lambda head: page(data=[row], has_more=True, last_id=f"id-{next(numbers)}")) as (url, heads):
        assert "no end" in done(None, "ps", url=url, code=1)
        assert len(heads) < 100


def test_a_journal_ends_where_the_server_says():
    with answering(lambda head: page(data=[{"index": 1e300, "id": -1e300, "token": "x", "origin": "\x1b[2J"}], has_more=False)) as (url, heads):
        shown = done(None, "tokens", "client:x", url=url)
    assert len(heads) == 1 and shown.count("\n") == 2 and "\x1b" not in shown


def test_names_are_no_steps_in_a_path():
    for name in (".", "..", "../../resume"):
        with answering(lambda head: NOT_FOUND) as (url, heads):
            done(None, "pause", name, url=url, code=1)
        assert heads[0].split()[1] == "/v1/generations/" + name.replace("/", "%2F") + "/pause"


def test_an_unset_variable_is_no_name(fake):
    for words in (("pause", ""), ("cancel", "--session", ""), ("ps", "--session", ""), ("tokens", ""), ("ps", "--url", "")):
        assert "must not be empty" in done(fake, *words, code=2)


def test_json_holds_nothing_that_a_terminal_obeys(fake):
    grammar = "cycle:" + ",".join(str(b) for b in "\x1b\u009b31m\u0085é".encode())
    fake.post("/v1/completions", {"prompt": "x", "max_tokens": 60, "grammar": grammar, "fermata": {"session": "j"}}).ok()
    line = done(fake, "ps", "--all", "--session", "j", "--json")
    assert not any(ord(c) < 0x20 and c != "\n" or 0x7F <= ord(c) < 0xA0 for c in line)
    assert "\u009b31m\u0085é" in json.loads(line)["text"]
    assert "E9" not in line.split("created_at")[1].split(",")[0], "a number is written as people write it"


def test_an_answer_on_a_terminal_cannot_make_it_do_anything():
    grammar = "cycle:" + ",".join(str(b) for b in "\x1b]0;x\x07\u009b2J\nred\t".encode())
    for on_terminal in (True, False):
        ours, its = os.openpty() if on_terminal else os.pipe()
        run = subprocess.Popen([BINARY, "run", "--engine", "fake", "--grammar", grammar, "-n", "40", "x"], stdout=its)
        shown = b""
        os.close(its)
        with contextlib.suppress(OSError):  # a terminal that nobody holds any more
            while piece := os.read(ours, 65536):
                shown += piece
        os.close(ours)
        assert run.wait(WAIT_S) == 0
        assert (b"\x1b" in shown or b"\xc2\x9b" in shown) != on_terminal and b"red\t" in shown
