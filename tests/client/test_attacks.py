"""What an attacker found, each as its kind."""

import json
import signal

import pytest

from server import WAIT_S, until
from stream import Stream
from test_security import key_file

ENDLESS = {"prompt": "x", "max_tokens": 500, "ignore_eos": True}


# -------------------------------------------------------------------------------------------------------- configuration

def test_a_file_of_flags_is_read_and_what_was_given_wins(start, tmp_path):
    path = tmp_path / "server.toml"
    key_path, keys = key_file(tmp_path, ("ann", "-", "use"))
    path.write_text('engine = "fake"\nctx = 256\nmodel-name = "from-file"\nallow-host = ["a.example", "b.example"]\n'
                    f'api-key-file = "{key_path}"\n')
    server = start("--config", str(path), "--model-name", "from-flag").ready()
    assert server.model == "from-flag"
    assert server.get("/v1/models", key=keys["ann"]).ok()["data"][0]["fermata"]["n_ctx"] == 256
    for name, status in (("a.example", 200), ("b.example", 200), ("c.example", 421)):
        assert server.get("/v1/models", key=keys["ann"], headers={"Host": name}).status == status


@pytest.mark.parametrize("text", ["prot = 8081", "port = 8081\n[model]\nname = 1", "drain = \"x\"", "config = \"y\"", "= 3", None])
def test_a_file_that_is_wrong_ends_it(start, tmp_path, text):
    path = tmp_path / "server.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(AssertionError, match="it ended"):
        start("--engine", "fake", "--config", str(path))


# ------------------------------------------------------------------------------------------------------------ resources

def test_a_long_text_is_not_tokenised_into_a_gigabyte(tiny):
    refused = tiny.post("/tokenize", {"content": "ab " * (1 << 19), "with_pieces": True})
    assert refused.status == 400 and refused.error["param"] == "content"
    pieces = tiny.post("/tokenize", {"content": "hello there", "with_pieces": True}).ok()["tokens"]
    plain = tiny.post("/tokenize", {"content": "hello there"}).ok()["tokens"]
    assert [p["id"] for p in pieces] == plain and bytes(b for p in pieces for b in p["piece"]) == b"hello there"
    assert tiny.post("/tokenize", {"content": ""}).ok() == {"tokens": []}


def test_a_text_of_many_long_tokens(tiny):
    pieces = tiny.post("/tokenize", {"content": " the information" * 3 + " " * 64, "with_pieces": True}).ok()["tokens"]
    longest = max(pieces, key=lambda token: len(token["piece"]))
    n = (4 << 20) // len(longest["piece"])
    assert len(tiny.post("/detokenize", {"tokens": [longest["id"]] * n}).ok()["content"]) == n * len(longest["piece"])
    refused = tiny.post("/detokenize", {"tokens": [longest["id"]] * (n + 1)})
    assert (refused.status, refused.error["code"], refused.error["param"]) == (400, "too_large", "tokens")
    assert str(4 << 20) in refused.error["message"]


@pytest.mark.parametrize("route,body,field", [
    ("/v1/completions", {"prompt": "a" * (1 << 22)}, "prompt"),
    ("/v1/completions", {"prompt": [1] * 600}, "prompt")])
def test_a_prompt_that_can_never_fit_is_refused_by_its_bytes(fake, route, body, field):
    refused = fake.post(route, body)
    assert refused.status == 400 and refused.error["param"] == field


# ----------------------------------------------------------------------------------------------------------------- text

def test_no_token_of_which_a_stop_string_took_a_part_is_told_of(tiny):
    text = tiny.post("/v1/completions", {"prompt": "Once", "max_tokens": 40, "seed": 3, "ignore_eos": True}).ok()["choices"][0]["text"]
    words = [text[i:i + 2] for i in range(1, len(text) - 2) if text[i:i + 2].isalnum() and text.find(text[i:i + 2]) == i]
    n_cut = 0
    for stop in words:
        asked = {"prompt": "Once", "max_tokens": 40, "seed": 3, "ignore_eos": True, "stop": [stop]}
        answer = tiny.post("/v1/completions", asked).ok()
        shown = answer["choices"][0]["text"]
        name = answer["fermata"]["generations"][0]
        journal = tiny.get(f"/v1/generations/{name}/tokens").ok()
        rows = [row for row in journal["data"] if row["origin"] != "prompt"]
        told = bytes(b for row in rows for b in row["bytes"])
        assert shown.encode().startswith(told), "a token tells of text that was taken away"
        n_cut += len(told) < len(shown.encode())
        events = Stream(tiny, f"/v1/generations/{name}/events", None, method="GET")
        ids = [token for event in iter(events.event, None) for token in json.loads(event["data"]).get("tokens", [])]
        assert ids == [row["id"] for row in rows]
    assert n_cut > 0, "no stop string began inside a token: the test shows nothing"


def test_what_one_tenant_computed_is_no_cached_prefix_of_another(start, tmp_path):
    path, keys = key_file(tmp_path, ("ann", "acme", "use"), ("amy", "acme", "use"), ("eve", "other", "use"))
    server = start("--engine", "fake", "--api-key-file", str(path)).ready()
    asked = {"prompt": "a prompt of some length", "max_tokens": 1}
    cached = [server.post("/v1/completions", asked, key=keys[name]).ok()["usage"]["prompt_tokens_details"]["cached_tokens"]
              for name in ("ann", "amy", "eve", "eve", "ann")]
    assert cached[0] == 0 and cached[2] == 0, "another tenant's prompt is seen in the count, and in the time"
    assert cached[1] > 0 and cached[3] > 0 and cached[4] > 0


# -------------------------------------------------------------------------------------------------------------- sessions

def test_a_resume_does_not_make_two_of_one_session_run(tiny):
    long = {"prompt": "x", "max_tokens": 8000, "ignore_eos": True}
    first = Stream(tiny, "/v1/completions", {**long, "stream": True, "fermata": {"session": "S2"}}).head()
    first.texts(1)
    second = Stream(tiny, "/v1/completions",
                    {**long, "stream": True, "fermata": {"session": "S2", "on_new_message": "pause"}}).head()
    second.texts(1)
    refused = tiny.post(f"/v1/generations/{first.generation}/resume", {})
    assert (refused.status, refused.error["code"]) == (409, "wrong_state")
    assert tiny.generation(first.generation)["state"] == "paused"
    tiny.cancel(second.generation)
    assert tiny.post(f"/v1/generations/{first.generation}/resume", {}).status == 202
    tiny.cancel(first.generation)


def test_cancels_that_come_first_have_a_limit_that_is_told(start):
    server = start("--engine", "fake").ready()
    answers = [server.cancel(f"client:t{i}").status for i in range(260)]
    assert answers == [202] * 256 + [429] * 4
    assert server.cancel("client:" + "x" * 300).status == 400


# ---------------------------------------------------------------------------------------------------------------- ending

def test_the_second_signal_hurries_and_still_tells_everybody(start):
    server = start("--engine", "fake", "-c", "100000", "--drain", "600").ready()
    streams = [Stream(server, "/v1/completions", {"prompt": "x", "max_tokens": 20000, "ignore_eos": True, "stream": True})
               for _ in range(5)]
    for stream in streams:
        stream.head().texts(1)
    server.process.send_signal(signal.SIGINT)
    until(lambda: any("stopping" in line for line in server.log), "it says that it stops")
    server.process.send_signal(signal.SIGINT)
    for stream in streams:
        chunks = list(stream.chunks())
        assert chunks[-1] == "[DONE]" or stream.data.endswith(b"data: [DONE]\n\n")
    assert server.process.wait(WAIT_S) == 0
