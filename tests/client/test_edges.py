"""Names, bodies and ends that two readings of WIRE would settle differently."""

import json
import socket
import threading
from urllib.parse import quote

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from server import until, WAIT_S
from stream import Stream, finish_of, text_of

LONG = {"prompt": "long", "max_tokens": 2000, "ignore_eos": True, "seed": 9}


def test_a_client_id_names_one_live_request(tiny):
    asked = {**LONG, "stream": True, "fermata": {"client_id": "mine"}}
    first = Stream(tiny, "/v1/completions", asked)
    first.texts(3)
    refused = tiny.post("/v1/completions", {**LONG, "fermata": {"client_id": "mine"}})
    assert (refused.status, refused.error["code"], refused.error["param"]) == (409, "duplicate_client_id", "fermata.client_id")
    assert refused.headers["x-should-retry"] == "false"
    assert tiny.cancel("client:mine").ok()["id"] == first.generation
    assert finish_of(first.chunks())[1]["code"] == "cancelled"
    again = tiny.post("/v1/completions", {"prompt": "x", "max_tokens": 2, "fermata": {"client_id": "mine"}}).ok()
    assert tiny.generation("client:mine")["id"] == again["fermata"]["generations"][0]


def test_a_resumed_stream_is_read_by_all_who_read_it(tiny):
    """A held stream goes on after a resume, and a resume that asks for a stream has one too: one log, two readers."""
    asked = {**LONG, "max_tokens": 300}
    whole = tiny.post("/v1/completions", asked).ok()["choices"][0]["text"]
    held = Stream(tiny, "/v1/completions", {**asked, "stream": True, "fermata": {"pause_at": 40}})
    record = tiny.wait_for(held.generation, "paused")["pause"]
    more = [Stream(tiny, "/v1/resume", {"pause_id": record["pause_id"], "stream": True}) for _ in range(2)]
    texts = [text_of(chunks) for chunks in (stream.chunks() for stream in (held, *more))]
    assert texts[0] == whole and texts[1] == texts[2] and whole.endswith(texts[1]) and 0 < len(texts[1]) < len(whole)


def test_the_last_reader_counts(tiny):
    held = Stream(tiny, "/v1/completions", {**LONG, "stream": True, "fermata": {"pause_at": 5}})
    name = held.generation
    record = tiny.wait_for(name, "paused")["pause"]
    more = Stream(tiny, "/v1/resume", {"pause_id": record["pause_id"], "stream": True})
    more.texts(3)
    held.reset()
    more.texts(30)
    assert tiny.generation(name)["state"] == "running", "one of its readers is there"
    more.reset()
    until(lambda: tiny.generation(name)["end_reason"] == "disconnected", "nobody reads it")


def test_who_is_nearly_right_is_told_what_is_meant(tiny):
    for path, meant in (("/chat/completions", "/v1/chat/completions"), ("/v1/v1/completions", "/v1/completions"), ("/models", "/v1/models"),
                        ("/generations/client:x/pause", "/v1/generations/client:x/pause"), ("/v1/models/", "/v1/models")):
        for method in ("GET", "POST"):
            refused = tiny.request(method, path, {})
            assert (refused.status, refused.error["code"]) == (404, "not_found")
            assert f"did you mean {meant}?" in refused.error["message"]
    assert "did you mean" not in tiny.get("/nowhere").error["message"]
    for field in ("pause_at", "client_id", "session", "on_pause", "on_disconnect", "stream_events", "timeout_ms"):
        refused = tiny.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], field: 1})
        assert (refused.status, refused.error["param"]) == (400, field)
        assert refused.error["message"] == f"there is no field {field}; did you mean fermata.{field}?"
    wrong = tiny.post("/v1/chat/completions", {"prompt": "x"}).error["message"]
    assert wrong == "there is no field prompt; give messages here, or send it to /v1/completions"
    wrong = tiny.post("/v1/completions", {"messages": []}).error["message"]
    assert wrong == "there is no field messages; give prompt here, or send it to /v1/chat/completions"


def test_a_client_id_without_its_prefix(tiny):
    tiny.post("/v1/completions", {"prompt": "x", "max_tokens": 1, "fermata": {"client_id": "near"}}).ok()
    for method, call in (("GET", ""), ("GET", "/tokens"), ("POST", "/pause"), ("POST", "/resume"), ("POST", "/cancel")):
        refused = tiny.request(method, f"/v1/generations/near{call}", {})
        assert refused.status == 404 and refused.error["message"].endswith("a client_id is named client:ID, here client:near")
    assert "client:" not in tiny.get("/v1/generations/nobody").error["message"]


@pytest.mark.parametrize("path", ["/v1/generations/{}/pause", "/v1/generations/{}/cancel", "/v1/sessions/edge/pause",
                                  "/v1/sessions/edge/resume", "/v1/sessions/edge/cancel", "/v1/generations/client:nobody/cancel"])
def test_bodies_of_calls_without_fields(tiny, path):
    live = Stream(tiny, "/v1/completions", {**LONG, "stream": True, "fermata": {"session": "edge", "on_disconnect": "continue"}})
    name = live.generation
    path = path.format(name)
    for body, status in (('{"reason": "x"}', 400), ("{", 400), ("[]", 400), ("null", 400), ("{}{}", 400),
                         ('{"a":"' + "x" * 70_000 + '"}', 413)):
        refused = tiny.post(path, body)
        assert refused.status == status, (body[:40], refused.body[:300])
    assert tiny.post(path, '{"reason": "x"}').error["param"] == "reason"
    assert tiny.generation(name)["state"] in ("queued", "running"), "none of them did anything"
    assert tiny.post(path, "{}").status in (200, 202)
    tiny.cancel(name).ok()
    live.chunks()


def test_a_resume_has_a_bounded_body(tiny):
    assert tiny.post("/v1/resume", '{"pause_id":"' + "x" * 70_000 + '"}').status == 413


def test_a_client_id_of_any_characters_stands_escaped_in_a_path(tiny):
    name = "my story/é %"
    made = tiny.post("/v1/completions", {"prompt": "x", "max_tokens": 1, "fermata": {"client_id": name}}).ok()
    assert tiny.generation("client:" + quote(name, safe=""))["id"] == made["fermata"]["generations"][0]
    refused = tiny.post("/v1/completions", {"prompt": "x", "max_tokens": 1, "fermata": {"client_id": "a\nb"}})
    assert (refused.status, refused.error["param"]) == (400, "fermata.client_id")


@pytest.mark.parametrize("field, value", [
    ("grammar", "root ::= nothing"), ("json_schema", {"type": "thing"}), ("json_schema", {"pattern": "^(?=a)b$"}),
    ("response_format", {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "thing"}}})])
def test_what_cannot_be_followed_is_422_by_its_field(tiny, field, value):
    refused = tiny.post("/v1/completions", {"prompt": "x", "max_tokens": 1, field: value})
    assert (refused.status, refused.error["code"], refused.error["param"]) == (422, "grammar", field)
    assert "\n" not in refused.error["message"]


def test_a_bias_is_refused_by_its_token(tiny):
    refused = tiny.post("/v1/completions", {"prompt": "x", "max_tokens": 1, "logit_bias": {"5": 1, "99999999": 1}})
    assert (refused.status, refused.error["param"]) == (400, "logit_bias")
    assert refused.error["message"].startswith("logit_bias has token 99999999; allowed: 0 to ")


@pytest.mark.parametrize("seed", ["18446744073709551616", "1e300", "-1e300"])
def test_a_seed_out_of_range_is_told_the_range(tiny, seed):
    refused = tiny.post("/v1/completions", '{"prompt": "x", "max_tokens": 1, "seed": ' + seed + "}")
    assert refused.status == 400 and refused.error["param"] == "seed" and "18446744073709551615" in refused.error["message"]
    most = tiny.post("/v1/completions", '{"prompt": "x", "max_tokens": 1, "seed": 18446744073709551615}').ok()
    assert most["fermata"]["seed"] == 18446744073709551615


def test_a_page_begins_after_one_that_the_filter_no_longer_wants(tiny):
    asked = {**LONG, "fermata": {"tags": ["paged"], "pause_at": 1, "on_pause": "return"}}
    names = [tiny.post("/v1/completions", asked).ok()["fermata"]["generations"][0] for _ in range(4)]
    page = tiny.get("/v1/generations?tag=paged&state=paused&order=asc&limit=2").ok()
    assert [g["id"] for g in page["data"]] == names[:2]
    tiny.cancel(names[1]).ok()
    rest = tiny.get(f"/v1/generations?tag=paged&state=paused&order=asc&limit=2&after={page['last_id']}").ok()
    assert [g["id"] for g in rest["data"]] == names[2:] and not rest["has_more"]
    for name in names:
        tiny.cancel(name).ok()


def test_a_session_by_pages(tiny):
    asked = {"prompt": "x", "max_tokens": 1, "fermata": {"session": "by pages"}}
    names = [tiny.post("/v1/completions", asked).ok()["fermata"]["generations"][0] for _ in range(22)]
    path = "/v1/sessions/by%20pages"
    first = tiny.get(path).ok()
    assert [g["id"] for g in first["generations"]] == names[:20] and first["has_more"]
    assert (first["id"], first["first_id"], first["last_id"]) == ("by pages", names[0], names[19])
    rest = tiny.get(f"{path}?after={first['last_id']}").ok()
    assert [g["id"] for g in rest["generations"]] == names[20:] and not rest["has_more"]
    assert [g["id"] for g in tiny.get(f"{path}?order=desc&limit=1").ok()["generations"]] == names[-1:]
    assert tiny.get(f"{path}?limit=101").error["param"] == "limit"


def test_a_paused_session_stands_still(tiny):
    """What is queued does not begin in the place of what was paused, or ended, before it."""
    queue = {"session": "still", "on_new_message": "queue"}
    first = Stream(tiny, "/v1/completions", {**LONG, "stream": True, "fermata": queue})
    first.texts(1)
    second = Stream(tiny, "/v1/completions", {"prompt": "n", "max_tokens": 3, "ignore_eos": True, "stream": True, "fermata": queue})
    both = [(first.generation, "paused", "user"), (second.generation, "queued", "user")]  # both are there
    told = tiny.post("/v1/sessions/still/pause").ok()["data"]
    assert [(g["id"], g["state"], g["wait_reason"]) for g in told] == both
    tiny.cancel(first.generation).ok()
    tiny.post("/v1/completions", {"prompt": "another", "max_tokens": 20}).ok()
    assert tiny.generation(second.generation)["state"] == "queued"
    tiny.post(f"/v1/generations/{second.generation}/resume").ok(202)
    assert finish_of(second.chunks())[0] == "length" and finish_of(first.chunks())[1]["code"] == "cancelled"


def test_cancelling_a_session_begins_nothing(tiny):
    queue = {"session": "all", "on_new_message": "queue"}
    first = Stream(tiny, "/v1/completions", {**LONG, "stream": True, "fermata": queue})
    first.texts(1)
    streams = [first] + [Stream(tiny, "/v1/completions", {**LONG, "stream": True, "fermata": queue}) for _ in range(3)]
    names = [stream.generation for stream in streams]
    ended = tiny.post("/v1/sessions/all/cancel").ok()["data"]
    assert ended[0]["id"] == names[0] and sorted(g["id"] for g in ended) == sorted(names)  # those that came together, in any order
    assert all(g["end_reason"] == "cancelled" for g in ended)
    assert [g["usage"]["completion_tokens"] for g in ended[1:]] == [0, 0, 0]
    for stream in streams:
        assert finish_of(stream.chunks())[1]["code"] == "cancelled"


def test_who_follows_is_told_that_the_server_stops(start):
    server = start("--engine", "fake", "--drain", "0").ready()
    sources = [Stream(server, "/v1/events", None, method="GET") for _ in range(3)]
    for source in sources:
        while b": following\n\n" not in source.data:
            assert source._more()
    closed = []
    with connect(f"ws://{server.host}:{server.port}/v1/events", proxy=None) as socket:
        live = Stream(server, "/v1/completions", {**LONG, "max_tokens": 400, "stream": True, "fermata": {"pause_at": 3}})
        name = live.generation
        server.wait_for(name, "paused")
        of_one = Stream(server, f"/v1/generations/{name}/events", None, method="GET").head()
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        heard = []
        with pytest.raises(ConnectionClosed):
            while True:
                heard.append(json.loads(socket.recv(timeout=WAIT_S)))
        closed.append(socket.close_code)
        for source in sources:
            told = []
            while (event := source.event()) is not None:
                told.append(event["event"])
            assert told[-2:] == ["finished", "shutdown"] and source.is_over, told
            assert bytes(source.raw).endswith(b"0\r\n\r\n"), "the stream was ended, not cut"
        last = None
        while (event := of_one.event()) is not None:
            last = event
        assert last["event"] == "finished" and json.loads(last["data"])["end_reason"] == "shutdown"
        assert finish_of(live.chunks())[1]["code"] == "shutdown"
        stopping.join()
    assert heard[-1]["type"] == "finished" and closed == [1001]
    assert server.process.returncode == 0


def test_who_closes_one_side_hears_why_there_is_no_answer(tiny):
    with socket.create_connection((tiny.host, tiny.port), timeout=WAIT_S) as half:
        body = json.dumps({"prompt": "x", "max_tokens": 3000, "ignore_eos": True, "fermata": {"client_id": "half", "on_disconnect": "cancel"}}).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nHost: {tiny.host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        half.sendall(head.encode() + body)
        until(lambda: tiny.get("/v1/generations/client:half").status == 200, "it is known")
        half.shutdown(socket.SHUT_WR)
        answer = b""
        while part := half.recv(65536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 409 ") and b'"aborted"' in answer
    assert tiny.wait_for("client:half", "finished")["end_reason"] == "disconnected"
