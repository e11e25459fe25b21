"""Each line of WIRE section 1, over the wire, as an attacker would try it. Keys: docs/security.md."""

import hashlib
import os
import secrets
import socket

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from stream import Stream

ONE = {"prompt": "x", "max_tokens": 2}


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "", "169.254.169.254"])
@pytest.mark.parametrize("path", ["/v1/models", "/health", "/nowhere"])
def test_a_name_that_was_made_to_point_here(fake, host, path):
    refused = fake.get(path, headers={"Host": host, "X-Forwarded-Host": "localhost"})
    assert refused.status in (421, 400) and "access-control-allow-origin" not in refused.headers


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
                                     {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://127.0.0.1:1"}])
def test_a_web_page_of_another_origin(fake, headers):
    for answer in (fake.post("/v1/completions", ONE, headers=headers), fake.get("/v1/generations", headers=headers),
                   fake.request("OPTIONS", "/v1/completions", headers={**headers, "Access-Control-Request-Method": "POST"})):
        assert answer.status == 403 and "access-control-allow-origin" not in answer.headers


def test_a_web_page_by_websocket(fake):
    with pytest.raises(InvalidStatus) as refused, connect(f"ws://{fake.host}:{fake.port}/v1/events", proxy=None,
                                                          origin="https://evil.example"):
        pass
    assert refused.value.response.status_code == 403
    with connect(f"ws://{fake.host}:{fake.port}/v1/events", proxy=None, origin=fake.url):
        pass


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
                                  "text/plain; application/json", "application/json; charset=utf-16"])
@pytest.mark.parametrize("path", ["/v1/completions", "/v1/generations/client:x/cancel", "/v1/resume"])
def test_a_form_of_another_page(fake, kind, path):
    assert fake.post(path, ONE, headers={"Content-Type": kind}).status == 415


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_the_open_network_needs_keys(start, host):
    server = None
    try:
        server = start("--engine", "fake", "--host", host)
    except AssertionError as ended:
        assert "key" in str(ended)
    assert server is None, "it listens"


def key_file(folder, *entries, mode=0o600):
    path = folder / "keys"
    keys, lines = {}, []
    for name, tenant, scopes in entries:
        keys[name] = "fermata_" + secrets.token_hex(32)
        lines.append(f"{name} {tenant} {scopes} blake2b:{hashlib.blake2b(keys[name].encode(), digest_size=32).hexdigest()}\n")
    path.write_text("# name tenant scopes hash\n" + "".join(lines))
    os.chmod(path, mode)
    return path, keys


@pytest.fixture
def keyed(start, tmp_path):
    path, keys = key_file(tmp_path, ("ann", "acme", "use"), ("bob", "acme", "use,review,admin"), ("eve", "other", "use"),
                          ("rev", "acme", "review"))
    server = start("--engine", "fake", "--api-key-file", str(path), "--allow-origin", "https://page.example").ready()
    server.keys = keys
    return server


@pytest.mark.parametrize("header", [None, "Bearer ", "Bearer wrong", "Basic YTpi", "Bearer fermata_" + "0" * 64, "KEY",
                                    "Bearer KEY x"])
def test_no_key_no_answer(keyed, header):
    headers = {} if header is None else {"Authorization": header.replace("KEY", keyed.keys["ann"])}
    for path in ("/v1/models", "/v1/generations", "/v1/nowhere", f"/v1/models?api_key={keyed.keys['ann']}"):
        refused = keyed.get(path, headers=headers)
        assert refused.status == 401 and refused.error["code"] == "invalid_api_key"
        assert keyed.keys["ann"] not in refused.body.decode()
    assert keyed.get("/health", headers=headers).status == 200


def test_another_tenants_ids_are_not_found(keyed):
    keyed.key = keyed.keys["ann"]
    named = {"client_id": "c", "session": "s", "idempotency_key": "k", "pause_at": 2, "on_pause": "return"}
    body = {**ONE, "max_tokens": 50, "ignore_eos": True, "fermata": named}
    mine = keyed.post("/v1/completions", body).ok()
    name, pause_id = mine["fermata"]["generations"][0], mine["choices"][0]["pause"]["pause_id"]
    eve = keyed.keys["eve"]
    for alias in (name, mine["id"], "client:c"):
        for path in ("", "/events", "/tokens", "/inspect"):
            theirs = keyed.get(f"/v1/generations/{alias}{path}", key=eve)
            unknown = keyed.get(f"/v1/generations/gen_0{path}", key=eve)
            assert theirs.status == unknown.status == 404 and theirs.error["message"] == unknown.error["message"]
        assert keyed.post(f"/v1/generations/{alias}/pause", key=eve).status == 404
        assert keyed.post(f"/v1/generations/{alias}/resume", key=eve).status == 404
    assert keyed.post(f"/v1/generations/{name}/cancel", key=eve).status == 404
    assert keyed.post("/v1/resume", {"pause_id": pause_id}, key=eve).status == 404
    assert keyed.get("/v1/sessions/s", key=eve).status == 404
    assert keyed.post("/v1/sessions/s/cancel", key=eve).status == 404
    assert keyed.get("/v1/generations", key=eve).ok()["data"] == []
    # Names of one tenant mean nothing to another: the same key, client id and session are new.
    other = keyed.post("/v1/completions", {**body, "fermata": {**body["fermata"], "tags": ["eve"]}}, key=eve).ok()
    assert other["fermata"]["generations"][0] != name
    assert keyed.generation(name)["state"] == "paused", "her session did not touch it"
    # A colleague of the same tenant may, but idempotency keys are a key's own.
    assert keyed.get(f"/v1/generations/{name}", key=keyed.keys["bob"]).status == 200
    assert keyed.post("/v1/resume", {"pause_id": pause_id, "wait": True}, key=keyed.keys["bob"]).status == 200
    keyed.post(f"/v1/generations/{other['fermata']['generations'][0]}/cancel", key=eve).ok()


def test_a_cancel_that_comes_first_is_a_tenants_own(keyed):
    assert keyed.post("/v1/generations/client:later/cancel", key=keyed.keys["eve"]).status == 202
    answer = keyed.post("/v1/completions", {**ONE, "fermata": {"client_id": "later"}}, key=keyed.keys["ann"])
    assert answer.ok()["usage"]["completion_tokens"] > 0


def test_events_are_a_tenants_own(keyed):
    keyed.key = keyed.keys["eve"]
    source = Stream(keyed, "/v1/events", None, method="GET")
    source.head()
    keyed.post("/v1/completions", ONE, key=keyed.keys["ann"]).ok()
    mine = keyed.post("/v1/completions", ONE).ok()["fermata"]["generations"][0]
    assert f'"generation":"{mine}"' in source.event()["data"]
    with pytest.raises(InvalidStatus) as refused, connect(f"ws://{keyed.host}:{keyed.port}/v1/events", proxy=None):
        pass
    assert refused.value.response.status_code == 401


def test_what_comes_after_text_that_is_held_back_is_a_reviewers(keyed):
    keyed.key = keyed.keys["ann"]
    body = {"prompt": "x", "grammar": "cycle:97,98", "stop": ["babc"], "max_tokens": 50}
    for pause_at, is_held in ((3, True), (1, False)):  # "aba", of which "ba" may become a stop string; "a"
        fermata = {"pause_at": pause_at, "on_pause": "return"}
        paused = keyed.post("/v1/completions", {**body, "fermata": fermata}).ok()
        name, pause = paused["fermata"]["generations"][0], paused["choices"][0]["pause"]
        assert (pause["held_bytes"] > 0) == is_held
        mine = keyed.get(f"/v1/generations/{name}/inspect").ok()
        assert mine["withheld"] == is_held == (mine["next"] == []) == (mine["entropy"] is None) and mine["has_logits"]
        theirs = keyed.get(f"/v1/generations/{name}/inspect", key=keyed.keys["bob"]).ok()
        assert not theirs["withheld"] and theirs["next"] and theirs["entropy"] is not None
        keyed.cancel(name).ok()


def test_scopes(keyed):
    assert keyed.get("/v1/models", key=keyed.keys["rev"]).status == 403, "review does not contain use"
    assert keyed.get("/metrics", key=keyed.keys["ann"]).status == 403 and keyed.get("/metrics").status == 401
    assert keyed.get("/metrics", key=keyed.keys["bob"]).status == 200
    assert keyed.post("/v1/completions", ONE, key=keyed.keys["rev"]).status == 403
    assert "path" not in keyed.get("/v1/capabilities", key=keyed.keys["ann"]).ok()["model"]
    assert "path" in keyed.get("/v1/capabilities", key=keyed.keys["bob"]).ok()["model"]


def test_an_allowed_page(keyed):
    origin = {"Origin": "https://page.example"}
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}
    preflight = keyed.request("OPTIONS", "/v1/completions", headers={**origin, **asks})
    assert preflight.status == 204 and preflight.headers["access-control-allow-origin"] == "https://page.example"
    answer = keyed.post("/v1/completions", ONE, headers=origin, key=keyed.keys["ann"])
    assert answer.status == 200 and answer.headers["access-control-allow-origin"] == "https://page.example"
    assert "access-control-allow-credentials" not in answer.headers


def test_a_key_file_that_others_may_write(start, tmp_path):
    path, _ = key_file(tmp_path, ("ann", "acme", "use"), mode=0o666)
    with pytest.raises(AssertionError):
        start("--engine", "fake", "--api-key-file", str(path))


SMUGGLED = ["Content-Length: 5\r\nContent-Length: 6", "Content-Length: 5\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: gzip, chunked", "Content-Length: +5", "Content-Length: 5\r\n folded: line", "Host: 127.0.0.1",
            "Content-Length: 0x5", "Transfer-Encoding : chunked"]


@pytest.mark.parametrize("lines", SMUGGLED)
def test_what_two_servers_would_read_differently(fake, lines):
    with socket.create_connection((fake.host, fake.port), timeout=30) as line:
        line.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: {fake.host}:{fake.port}\r\nContent-Type: application/json\r\n"
                     f"{lines}\r\n\r\nhello GET /health HTTP/1.1\r\nHost: {fake.host}\r\n\r\n".encode())
        got = b""
        while piece := line.recv(65536):
            got += piece
    assert got.startswith(b"HTTP/1.1 400") and got.count(b"\r\ndate: ") == 1, got


def test_ids_do_not_repeat_or_count(fake):
    names = [fake.post("/v1/completions", {**ONE, "max_tokens": 0}).ok()["fermata"]["generations"][0] for _ in range(50)]
    assert len(set(names)) == 50 and all(len(name) == 4 + 32 for name in names)
    assert len({name[4:8] for name in names}) > 25
