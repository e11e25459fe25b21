"""The log of requests, and the ids in it (docs/security.md, "What is logged")."""

import json
import re

import openai
import pytest

from server import tiny_model, until
from stream import Stream
from test_security import key_file

SECRETS = ("xyzzy-prompt", "abababab", "xyzzy-query", "xyzzy-header", "xyzzy-metadata")
ASKED = {"prompt": "xyzzy-prompt", "grammar": "cycle:97,98", "max_tokens": 8, "fermata": {"metadata": {"a": "xyzzy-metadata"}}}


def requests_of(server):
    lines = [json.loads(line) for line in server.log if line.startswith("{")]
    return [line for line in lines if line["event"] == "request"]


def logged(server, request_id):
    return until(lambda: next((line for line in requests_of(server) if line["request_id"] == request_id), None), lambda: server.log)


@pytest.fixture
def keyed(start, tmp_path):
    path, keys = key_file(tmp_path, ("ann", "acme", "use"), ("bob", "-", "use,admin"))
    server = start("--engine", "fake", "--api-key-file", str(path), "--log-format", "json", "--log-level", "debug").ready()
    server.keys, server.key = keys, keys["ann"]
    return server


def test_a_line_for_each_request(keyed):
    answer = keyed.post("/v1/completions?q=xyzzy-query", ASKED, headers={"x-request-id": "mine/1", "x-other": "xyzzy-header"})
    assert answer.ok() and answer.headers["x-request-id"] == "mine/1"
    line = logged(keyed, "mine/1")
    assert {key: line[key] for key in ("level", "method", "path", "status", "bytes", "key", "tenant", "whole")} == {
        "level": "info", "method": "POST", "path": "/v1/completions", "status": 200, "bytes": len(answer.body), "key": "ann",
        "tenant": "acme", "whole": True}
    assert line["generation"] == answer.json["fermata"]["generations"][0] and line["ms"] >= 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])

    stream = Stream(keyed, "/v1/completions", {**ASKED, "stream": True})
    stream.chunks()
    line = logged(keyed, stream.headers["x-request-id"])
    assert (line["status"], line["bytes"], line["generation"]) == (200, len(stream.data), stream.generation)

    for refused, status, level in ((keyed.get("/v1/nowhere"), 404, "warn"), (keyed.post("/v1/completions", {"prompt": 5}), 400, "warn"),
                                   (keyed.get("/v1/models", key="wrong"), 401, "warn"), (keyed.get("/health"), 200, "debug")):
        line = logged(keyed, refused.headers["x-request-id"])
        assert refused.status == line["status"] == status and line["level"] == level
    said = "".join(keyed.log)
    assert not [secret for secret in (*SECRETS, *keyed.keys.values()) if secret in said]
    assert keyed.stop() == 0
    assert all(json.loads(line) for line in keyed.log if not line.startswith((" ", "fermata serves"))), "nothing else is on it"


def test_a_client_that_left(keyed):
    stream = Stream(keyed, "/v1/completions", {**ASKED, "stream": True, "fermata": {"pause_at": 3}}, headers={"x-request-id": "left"})
    stream.texts(3)
    stream.finish()
    line = logged(keyed, "left")
    assert (line["status"], line["whole"], line["cut"]) == (200, False, "client") and "end" not in line


@pytest.mark.parametrize("how", ["finish", "reset"])
def test_a_client_that_left_before_its_whole_answer(keyed, how):
    asked = Stream(keyed, "/v1/completions", {**ASKED, "fermata": {"pause_at": 3, "client_id": how}}, headers={"x-request-id": how})
    until(lambda: keyed.get(f"/v1/generations/client:{how}").status == 200, "it is there")
    keyed.wait_for(f"client:{how}", "paused")
    getattr(asked, how)()
    line = logged(keyed, how)
    assert (line["status"], line["whole"], line["cut"], line["end"], line["level"]) == (499, False, "client", "disconnected", "warn")


@pytest.mark.parametrize("streams", [True, False])
def test_how_a_generation_ended(start, streams):
    server = start("--engine", "fake", "--log-format", "json").ready()

    def ask(name, **more):
        asked = {**ASKED, "max_tokens": 400, "stream": streams, **more, "fermata": {"client_id": name, **more.get("fermata", {})}}
        return Stream(server, "/v1/completions", asked, headers={"x-request-id": name})

    def said(name, stream):
        while not stream.is_over:
            stream._more()
        line = logged(server, name)
        assert line["whole"] and "cut" not in line
        return line["end"], line["status"] == 200, line["level"]
    assert said("pause", ask("pause", fermata={"pause_at": 3, "on_pause": "return"})) == ("pause", True, "info")
    assert said("stop", ask("stop", stop=["b"])) == ("stop", True, "info")
    held = [ask(name, fermata={"pause_at": 3}) for name in ("cancelled", "shutdown")]
    for name in ("cancelled", "shutdown"):
        until(lambda: server.get(f"/v1/generations/client:{name}").status == 200, "it is there")
        server.wait_for(f"client:{name}", "paused")
    server.cancel("client:cancelled").ok()
    assert said("cancelled", held[0]) == ("cancelled", streams, "info")
    assert server.stop() == 0
    assert said("shutdown", held[1]) == ("shutdown", streams, "warn")


def test_lines_for_people(start):
    server = start("--engine", "fake").ready()
    assert server.get("/health").status == 200
    server.post("/v1/completions", ASKED, headers={"x-request-id": "one"}).ok()
    line = until(lambda: next((line for line in server.log if "id=one" in line), None), lambda: server.log)
    assert re.fullmatch(r"\S+Z info  POST /v1/completions 200 \d+ B \d+\.\d ms key=local id=one generation=gen_\w+ end=length\n", line)
    assert not [line for line in server.log if "/health" in line], "probes are not told of"
    assert not [secret for secret in SECRETS if secret in "".join(server.log)]


def test_off_a_terminal_the_start_is_a_few_plain_lines(start):
    server = start("-m", tiny_model(), "-c", "1024").ready()
    until(lambda: "stop    Ctrl-C" in "".join(server.log), "it has said all")
    assert server.stop() == 0
    said = "".join(server.log)
    assert not set("\r\x1b") & set(said) and len([line for line in server.log if "%" in line]) <= 3, said


def test_what_the_loader_says_is_the_logs_too(start):
    server = start("-m", tiny_model(), "-c", "1024", "--log-format", "json").ready()
    assert server.stop() == 0
    said = [json.loads(line) for line in server.log if not line.startswith((" ", "fermata serves"))]
    loading = [line["message"] for line in said if line["message"].startswith("loading ")]
    assert 0 < len(loading) <= 3 and loading[-1].endswith(" 100 %"), said


def test_a_probe_while_the_model_is_loaded_is_nothing_to_warn_of(start):
    server = start("-m", tiny_model(), "-c", "131072", "--log-format", "json", "--log-level", "debug")
    probe = server.get("/health")
    refused = server.get("/v1/capabilities")
    for answer, level in ((probe, "debug"), (refused, "info")):
        line = logged(server, answer.headers["x-request-id"])
        assert (answer.status, line["status"], line["level"]) == (503, 503, level)


@pytest.mark.parametrize("is_ready", [True, False])
def test_a_server_that_was_asked_to_stop_says_so_last(start, is_ready):
    server = start(*(["--engine", "fake"] if is_ready else ["-m", tiny_model(), "-c", "131072"]), "--log-format", "json")
    server.get("/health")  # it takes signals from now on
    if is_ready:
        server.ready()
    assert server.stop() == 0

    def last():
        return json.loads([line for line in server.log if line.startswith("{")][-1])
    until(lambda: last().get("message") == "stopped: asked to", lambda: server.log)
    assert last()["level"] == "info"


def test_the_self_test_is_told_of_when_it_runs(start, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    told = []
    for _ in range(2):
        server = start("-m", tiny_model(), "-c", "1024").ready()
        assert server.stop() == 0
        told.append([line for line in server.log if "checking that its answers are exact" in line])
    assert [len(lines) for lines in told] == [1, 0] and " info " in told[0][0], "the second start knows"


def test_a_variable_that_counts_for_nothing_is_told_of(start, monkeypatch):
    monkeypatch.setenv("FERMATA_PROT", "8081")
    server = start("--engine", "fake").ready()
    assert server.stop() == 0
    assert [line for line in server.log if " warn " in line and "FERMATA_PROT" in line and "did you mean 'FERMATA_PORT'?" in line]


def test_the_openai_client_tells_the_id(tiny):
    with openai.OpenAI(base_url=f"{tiny.url}/v1", api_key="none", max_retries=0) as client:
        answer = client.completions.create(model="tiny", prompt="x", max_tokens=1)
        assert answer._request_id.startswith("req_")
        with pytest.raises(openai.BadRequestError) as refused:
            client.completions.create(model="tiny", prompt="x", max_tokens=-7)
        assert refused.value.request_id.startswith("req_")
