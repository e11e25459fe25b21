"""curl: streams, pauses, time-outs, HTTP/1.0, Expect, HEAD and OPTIONS."""

import json
import subprocess

import pytest

from server import WAIT_S, until
from stream import finish_of, text_of

ASKED = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 60, "seed": 11}
ENDLESS = {**ASKED, "max_tokens": 8000, "ignore_eos": True, "stream": True}


def command(server, path, body=None, *flags):
    data = [] if body is None else ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
    return ["curl", "-sS", *data, *flags, f"{server.url}{path}"]


def curl(server, path, body=None, *flags, data=None):
    return subprocess.run(command(server, path, body, *flags), capture_output=True, input=data, timeout=WAIT_S)


def chunks_of(out):
    events = [event for event in out.decode().split("\n\n") if event]
    assert all(event.startswith("data: ") for event in events)
    return [event if event == "[DONE]" else json.loads(event) for event in (e.removeprefix("data: ") for e in events)]


def known(server, name):
    until(lambda: server.get(f"/v1/generations/client:{name}").status == 200, "it is known")


@pytest.fixture
def undisturbed(pulsing):
    return pulsing.post("/v1/chat/completions", ASKED).ok()["choices"][0]["message"]["content"]


@pytest.mark.parametrize("version", ["--http1.1", "--http1.0"])
def test_whole_and_streamed(pulsing, undisturbed, version):
    whole = curl(pulsing, "/v1/chat/completions", ASKED, version, "-f")
    assert whole.returncode == 0, whole.stderr
    assert json.loads(whole.stdout)["choices"][0]["message"]["content"] == undisturbed
    streamed = curl(pulsing, "/v1/chat/completions", {**ASKED, "stream": True}, version, "-N", "-i")
    head, out = streamed.stdout.split(b"\r\n\r\n", 1)
    assert streamed.returncode == 0 and (b"chunked" in head.lower()) == (version == "--http1.1")
    assert text_of(chunks_of(out)) == undisturbed and finish_of(chunks_of(out))[0] == "length"


@pytest.mark.parametrize("version", ["--http1.1", "--http1.0"])
def test_a_pause_in_the_middle(pulsing, undisturbed, version):
    body = {**ASKED, "stream": True, "fermata": {"pause_at": 20, "client_id": f"curl{version}"}}
    with subprocess.Popen(command(pulsing, "/v1/chat/completions", body, version, "-N"), stdout=subprocess.PIPE) as run:
        out = b""
        while out.count(b'"delta":{},"finish_reason":null') < 3:
            assert (line := run.stdout.readline()), out
            out += line
        # As docs/clients.md shows it.
        resumed = curl(pulsing, f"/v1/generations/client:curl{version}/resume", None, "-X", "POST", "-H", "Content-Type: application/json")
        assert json.loads(resumed.stdout)["object"] == "generation"
        out += run.stdout.read()
    assert run.returncode == 0 and text_of(chunks_of(out)) == undisturbed


def test_max_time_in_a_pause_ends_the_generation(pulsing):
    """Paused long before curl's time is over, which is waited for once."""
    def body(stream):
        return {**ASKED, "stream": stream, "fermata": {"pause_at": 5, "client_id": f"curl-time-{stream}"}}
    runs = {stream: subprocess.Popen(command(pulsing, "/v1/chat/completions", body(stream), "--max-time", "4"),
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE) for stream in (True, False)}
    for stream in runs:
        known(pulsing, f"curl-time-{stream}")
        pulsing.wait_for(f"client:curl-time-{stream}", "paused")
    for stream, run in runs.items():
        run.communicate(timeout=WAIT_S)
        assert run.returncode == 28
        ended = pulsing.wait_for(f"client:curl-time-{stream}", "finished")
        assert (ended["end_reason"], ended["usage"]["completion_tokens"]) == ("disconnected", 5)


def test_ctrl_c_ends_the_generation(pulsing):
    body = {**ENDLESS, "fermata": {"client_id": "curl-killed"}}
    with subprocess.Popen(command(pulsing, "/v1/chat/completions", body, "-N"), stdout=subprocess.PIPE) as run:
        for _ in range(6):
            run.stdout.readline()
        run.terminate()
    assert pulsing.wait_for("client:curl-killed", "finished")["end_reason"] == "disconnected"


def test_a_large_body_that_asks_first(pulsing, undisturbed):
    body = json.dumps(ASKED)[:-1].encode() + b" " * (4 << 20) + b"}"
    told = curl(pulsing, "/v1/chat/completions", None, "-v", "-H", "Content-Type: application/json", "-H", "Expect: 100-continue",
                "--data-binary", "@-", data=body)
    assert b"< HTTP/1.1 100 Continue" in told.stderr and b"< HTTP/1.1 200" in told.stderr
    assert json.loads(told.stdout)["choices"][0]["message"]["content"] == undisturbed


def test_a_body_too_large_is_refused_before_it_is_sent(pulsing):
    told = curl(pulsing, "/v1/chat/completions", None, "-v", "-H", "Content-Type: application/json", "-H", "Expect: 100-continue",
                "--data-binary", "@-", "-w", "\n%{size_upload}", data=b"{}" + b" " * (17 << 20))
    out, size = told.stdout.rsplit(b"\n", 1)
    assert b"100 Continue" not in told.stderr and b"< HTTP/1.1 413" in told.stderr
    assert json.loads(out)["error"]["code"] == "too_large" and int(size) == 0


def test_head_is_get_without_a_body(pulsing):
    for path in ("/health", "/v1/models", "/v1/capabilities"):
        head, get = curl(pulsing, path, None, "-I"), curl(pulsing, path, None, "-i")
        _, body = get.stdout.split(b"\r\n\r\n", 1)
        assert head.stdout.startswith(b"HTTP/1.1 200") and head.stdout.endswith(b"\r\n\r\n")
        assert f"content-length: {len(body)}".encode() in head.stdout.lower() and head.returncode == 0
    assert curl(pulsing, "/v1/chat/completions", None, "-I").stdout.startswith(b"HTTP/1.1 405")


def test_options(pulsing):
    asked = curl(pulsing, "/v1/chat/completions", None, "-i", "-X", "OPTIONS")
    assert asked.stdout.startswith(b"HTTP/1.1 405") and b"\r\nallow: POST\r\n" in asked.stdout
    print(asked.stdout.decode())
    foreign = curl(pulsing, "/v1/chat/completions", None, "-i", "-X", "OPTIONS", "-H", "Origin: https://evil.example",
                   "-H", "Access-Control-Request-Method: POST")
    assert foreign.stdout.startswith(b"HTTP/1.1 403") and b"access-control-allow-origin" not in foreign.stdout.lower()
