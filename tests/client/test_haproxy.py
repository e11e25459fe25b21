"""deploy/haproxy.cfg: TLS, HTTP/2, slow clients, draining, before a real server (docs/deploy.md)."""

import json
import signal
import socket
import ssl
import subprocess

import httpx2
import openai
import pytest
from websockets.sync.client import connect

from haproxy import HaProxy
from server import until

LONG = {"prompt": "x", "max_tokens": 100_000, "ignore_eos": True, "grammar": "cycle:97,98,99"}
JSON = ("-H", "Content-Type: application/json")


@pytest.fixture
def server(start):
    return start("--engine", "fake", "-c", "200000", "--drain", "20").ready()


@pytest.fixture
def behind(server, tmp_path):
    proxy = HaProxy(server, tmp_path)
    yield proxy
    proxy.end()


def curl_stream(proxy, *flags, **body):
    """A completion stream as curl's output, over HTTP/2."""
    return subprocess.Popen(["curl", "-sN", "--http2", "--cacert", proxy.trust, *JSON, *flags,
                             "-d", json.dumps({**LONG, **body, "stream": True}), proxy.url + "/v1/completions"],
                            stdout=subprocess.PIPE, text=True)


def chunks_of(curl):
    for line in curl.stdout:
        if line.startswith("data: ") and line.strip() != "data: [DONE]":
            yield json.loads(line.removeprefix("data: "))


def test_a_token_passes_before_the_next_one_is_made(server, behind):
    curl = curl_stream(behind, max_tokens=60, fermata={"client_id": "h2", "pause_at": 20})
    text, chunks = "", chunks_of(curl)
    while len(text) < 20:  # it is paused then: nothing that comes later pushes this through
        text += next(chunks)["choices"][0]["text"]
    assert server.wait_for("client:h2", "paused")["text"] == text
    server.post("/v1/generations/client:h2/resume").ok(202)
    text += "".join(chunk["choices"][0]["text"] for chunk in chunks)
    assert curl.wait() == 0 and len(text) == 60
    assert behind.curl("/v1/models", "--http2", "-w", "%{http_version}").stdout.endswith(b"2")


def test_the_openai_client_through_it(behind):
    trust = ssl.create_default_context(cafile=str(behind.trust))
    with openai.OpenAI(base_url=behind.url + "/v1", api_key="none", http_client=httpx2.Client(verify=trust), max_retries=0) as client:
        whole = client.completions.create(model="fake", prompt="x", max_tokens=30, seed=5)
        stream = client.completions.create(model="fake", prompt="x", max_tokens=30, seed=5, stream=True)
        assert "".join(chunk.choices[0].text for chunk in stream) == whole.choices[0].text
        with pytest.raises(openai.BadRequestError, match="max_tokens"):
            client.completions.create(model="fake", prompt="x", max_tokens=-7)


def test_many_streams_on_few_connections(server, behind, tmp_path):
    body = tmp_path / "body.json"
    body.write_text(json.dumps({**LONG, "max_tokens": 20, "stream": True}))
    ran = subprocess.run(["h2load", "-n", "400", "-c", "10", "-m", "10", "-d", body, "-H", "Content-Type: application/json",
                          "-H", "Host: localhost", f"https://127.0.0.1:{behind.port}/v1/completions"],
                         capture_output=True, text=True, timeout=60)
    assert "400 succeeded, 0 failed, 0 errored, 0 timeout" in ran.stdout, ran.stdout + ran.stderr
    assert "400 2xx" in ran.stdout and "Application protocol: h2" in ran.stdout, ran.stdout
    until(lambda: server.stats()["alive"] == 0, "all have ended")


def test_a_client_that_leaves_cancels(server, behind):
    curl = curl_stream(behind, fermata={"client_id": "leaver"})
    next(chunks_of(curl))
    curl.kill()
    curl.wait()
    assert server.wait_for("client:leaver", "finished")["end_reason"] == "disconnected"


def test_a_websocket_follows_through_it(server, behind):
    trust = ssl.create_default_context(cafile=str(behind.trust))
    with connect(f"wss://localhost:{behind.port}/v1/events", ssl=trust, proxy=None) as follower:
        answer = server.post("/v1/completions", {**LONG, "max_tokens": 2}).ok()
        [generation] = answer["fermata"]["generations"]
        until(lambda: json.loads(follower.recv(timeout=20)).get("type") == "finished", "the end is told")
    assert server.generation(generation)["state"] == "finished"


def test_who_is_slow_to_ask_does_not_reach_the_server(server, tmp_path):
    proxy = HaProxy(server, tmp_path, FERMATA_HEAD_S="1s")
    try:
        trust = ssl.create_default_context(cafile=str(proxy.trust))
        trust.set_alpn_protocols(["http/1.1"])
        head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
        for begun in (head, head + b"\r\n{"):  # neither a head nor a body that never comes whole
            with trust.wrap_socket(socket.create_connection(("127.0.0.1", proxy.port)), server_hostname="localhost") as slow:
                slow.settimeout(30)
                slow.sendall(begun)
                assert slow.recv(4096).startswith(b"HTTP/1.1 408"), "it is told, and cut"
        assert not [line for line in server.log if "POST /v1" in line]
    finally:
        proxy.end()


def test_a_server_that_stops_serves_what_it_has_and_gets_nothing_new(server, behind):
    curl = curl_stream(behind, max_tokens=3000, fermata={"client_id": "last", "pause_at": 10})
    chunks = chunks_of(curl)
    assert next(chunks)
    server.wait_for("client:last", "paused")
    server.post("/v1/generations/client:last/resume").ok(202)
    server.process.send_signal(signal.SIGTERM)
    ends = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert curl.wait() == 0 and ends[-1] == "length", "what ran came to its end"
    until(lambda: behind.curl("/v1/models").stdout == b"503", "503 once it is away")
    assert json.loads(behind.body.read_text())["error"]["code"] in ("overloaded", "draining")
    assert server.process.wait(timeout=30) == 0


def test_the_metrics_are_not_for_the_world(behind):
    assert behind.curl("/metrics").stdout == b"404"
