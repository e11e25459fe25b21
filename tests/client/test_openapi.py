"""GET /openapi.json against the running server. What other tests ask is checked as well, by contract.py."""

import json
import pathlib
import re

import jsonschema
import pytest
from websockets.sync.client import connect

from contract import contract, escaped
from server import ROOT, WAIT_S, tiny_model
from stream import Stream
from test_security import key_file

PARAMETER = r"\{(\w+)\}"
HERE = pathlib.Path(__file__).parent
ONE = {"prompt": "x", "max_tokens": 2, "ignore_eos": True}
HELLO = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2, "ignore_eos": True}
PAUSED = {"pause_at": 1, "on_pause": "return"}


@pytest.fixture
def promised(tiny):
    return contract(tiny)


def filled(path, **names):
    return path.format(**{"model": "tiny", "generation": "gen_0", "session": "s", **names})


def generation(server, body=ONE, **fermata):
    path = "/v1/chat/completions" if "messages" in body else "/v1/completions"
    return server.post(path, {**body, "fermata": {"session": "s", **fermata}}).ok()["fermata"]["generations"][0]


# ------------------------------------------------------------------------------------------------------- the document


def test_it_is_openapi(promised):
    """The official schema of OpenAPI 3.1 (spec.openapis.org/oas/3.1/schema/2022-10-07), and what it leaves to prose."""
    document = promised.document
    official = json.loads((HERE / "openapi-3.1.schema.json").read_text())
    jsonschema.Draft202012Validator(official).validate(document)
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    ids = [operation["operationId"] for _, _, operation in promised.calls]
    assert len(set(ids)) == len(ids)
    for _, path, operation in promised.calls:
        named = [p["$ref"].split("/")[-1] for p in operation.get("parameters", []) if "$ref" in p]
        in_path = [n for n in named if document["components"]["parameters"][n]["in"] == "path"]
        assert in_path == re.findall(PARAMETER, path)


def test_its_examples_are_right(tiny, promised):
    """Each fits the schema that it stands beside, which is closed; and what is asked by one works."""
    n_seen = 0
    for method, path, operation in promised.calls:
        verb = f"paths/{escaped(path)}/{method.lower()}"
        holders = {f"{verb}/responses/{status}": response for status, response in operation["responses"].items()}
        if "requestBody" in operation:
            holders[f"{verb}/requestBody"] = operation["requestBody"]
        for pointer, holder in holders.items():
            for media, content in holder.get("content", {}).items():
                if "example" in content:
                    validator = promised.validator(f"{pointer}/content/{escaped(media)}/schema")
                    promised.fits(validator, content["example"], f"example of {pointer}")
                    n_seen += 1
        if method == "POST" and "{" not in path and path != "/v1/resume":
            example = operation["requestBody"]["content"]["application/json"]["example"]
            answer = tiny.post(path, example)
            assert answer.status == 200, f"{path}: {answer.body}"
            if "fermata" in example:
                assert tiny.cancel(f"{answer.headers['x-fermata-generation']}").status == 200
    assert n_seen > 30


def test_everybody_may_read_it_at_any_time(start, tmp_path):
    path, _ = key_file(tmp_path, ("ann", "acme", "use"))
    server = start("-m", tiny_model(), "-c", "131072", "--api-key-file", str(path))
    at_once = server.get("/openapi.json")
    assert at_once.status == 200 and at_once.body == server.ready().get("/openapi.json").body
    assert server.get("/openapi.json", headers={"Host": "evil.example"}).status == 421
    assert server.get("/openapi.json", headers={"Origin": "https://evil.example"}).status == 403


def test_docs_api_lists_the_same_calls(promised):
    text = (ROOT / "docs/api.md").read_text()
    told = {f"{method} {path}" for method, path in re.findall(r"`(GET|POST|PUT|DELETE) (/[\w/.]*)", text)}
    called = {f"{method} {re.sub(PARAMETER, 'NAME', path)}" for method, path, _ in promised.calls}
    assert told == called


def test_docs_api_lists_the_same_errors(promised):
    text = (ROOT / "docs/api.md").read_text()
    table = text.split("<!-- table: errors -->")[1].split("<!-- end -->")[0]
    told = {(int(status), code) for status, also, code in re.findall(r"\| (\d+)(?:; (\d+)[^|]*)? \| `(\w+)`", table)}
    told |= {(413, "too_large"), (408, "invalid_argument"), (431, "too_large"), (503, "busy")}  # said before a call is known
    told |= {(409, "cancelled"), (409, "replaced"), (409, "disconnected"), (504, "timeout"), (503, "shutdown")}  # ends
    told |= {(409, "rewound")}  # of a stream
    responses = promised.document["components"]["responses"]
    assert told == {(int(name.removeprefix("error")), code) for name, r in responses.items() for code in r["x-codes"]}
    codes = promised.document["components"]["schemas"]["Error"]["properties"]["code"]["enum"]
    assert set(codes) == {code for _, code in told} and len(set(codes)) == len(codes)


# ---------------------------------------------------------------------------------------------------- calls and answers


def test_each_call_is_there_for_its_methods_alone(tiny, promised):
    name = generation(tiny)
    for path, methods in promised.document["paths"].items():
        there = {method.upper() for method in methods}
        for method in there | ({"HEAD"} if "GET" in there else set()):
            stream = Stream(tiny, filled(path, generation=name), None, method=method).head()
            assert stream.status not in (404, 405), f"{method} {path}"
            stream.finish()
        for method in {"GET", "POST", "PUT", "DELETE", "PATCH"} - there:
            refused = tiny.request(method, filled(path, generation=name), {})
            assert refused.status == 405, f"{method} {path}"
            allowed = set(refused.headers["allow"].split(", "))
            assert allowed == there | ({"HEAD"} if "GET" in there else set()), path


def test_every_call_with_every_success(tiny, promised):
    """Each documented operation with each of its answers below 400, in each of its forms."""
    promised.seen.clear()
    for path, ask, cut in (("/v1/chat/completions", HELLO, PAUSED), ("/v1/completions", ONE, PAUSED)):
        logprobs = {"logprobs": 2} if "prompt" in ask else {"logprobs": True, "top_logprobs": 2}
        for extra in ({}, logprobs, {"fermata": {"tags": ["t"], "session": "s"}}):
            tiny.post(path, {**ask, **extra}).ok()
            tiny.post(path, {**ask, **extra, "stream": True, "stream_options": {"include_usage": True}})
        tiny.post(path, {**ask, "stream": True, "stop": ["e"], "max_tokens": 300, "fermata": {"stream_events": True}})
        for how in ({"wait": True}, {"stream": True}, {}):
            pause = tiny.post(path, {**ask, "fermata": cut}).ok()["choices"][0]["pause"]["pause_id"]
            tiny.post("/v1/resume", {"pause_id": pause, **how})
            tiny.post(path, {**ask, "stream": True, "fermata": {**cut, "client_id": "c"}})
            tiny.post("/v1/generations/client:c/resume", how)
    paused = generation(tiny, {**ONE, "max_tokens": 50}, **PAUSED, metadata={"a": {"b": [1]}}, priority=3)
    tiny.post(f"/v1/generations/{paused}/edit", {"edits": [{"from": {"in": "completion", "byte": 1}, "text": "x"}]}).ok()
    branch, = tiny.post(f"/v1/generations/{paused}/fork", {"resume": False}).ok(201)["data"]
    tiny.get(f"/v1/generations/{paused}/tree").ok()
    tiny.cancel(branch["id"])
    for call in ("", "/tokens", "/inspect", "/inspect?top=0"):
        tiny.get(f"/v1/generations/{paused}{call}").ok()
    tiny.post(f"/v1/generations/{paused}/pause").ok()
    generation(tiny, {**ONE, "max_tokens": 50}, **PAUSED, session="h")
    waits = Stream(tiny, "/v1/completions", {**ONE, "stream": True, "fermata": {"session": "h", "on_new_message": "queue"}})
    tiny.post(f"/v1/generations/{waits.generation}/pause").ok(202)
    tiny.post("/v1/sessions/h/resume").ok()
    waits.chunks()
    tiny.get("/v1/sessions/s").ok()
    tiny.get("/v1/sessions").ok()
    with connect(f"ws://{tiny.host}:{tiny.port}/v1/events", proxy=None) as socket:
        promised.check_head("GET", "/v1/events", socket.response.status_code, {})
        following = Stream(tiny, "/v1/events", None, method="GET")
        while b": following\n\n" not in following.data:
            assert following._more()
        tiny.post("/v1/resume", {"pause_id": tiny.generation(paused)["pause"]["pause_id"]}).ok(202)
        tiny.post("/v1/sessions/s/pause").ok()
        tiny.post("/v1/sessions/s/cancel").ok()
        told = []
        while not told or told[-1]["type"] != "finished":
            told.append(json.loads(socket.recv(timeout=WAIT_S)))
            promised.fits(promised.schema("EventOfAll"), told[-1], "WebSocket")
            assert json.loads(following.event()["data"]) == told[-1]
        following.finish()
    n_events = tiny.generation(paused)["n_events"]
    tiny.get(f"/v1/generations/{paused}/events")
    tiny.get(f"/v1/generations/{paused}/events?from={n_events}").ok(204)
    tiny.post(f"/v1/generations/{paused}/cancel").ok()
    tiny.post("/v1/generations/client:never/cancel").ok(202)
    tiny.get("/v1/generations?limit=5").ok()
    for prefix in ("", "/v1"):
        for with_pieces in (True, False):
            tokens = tiny.post(f"{prefix}/tokenize", {"content": "Hi", "with_pieces": with_pieces}).ok()["tokens"]
        tiny.post(f"{prefix}/detokenize", {"tokens": tokens}).ok()
        tiny.get(f"{prefix}/health").ok()
    for call in ("/v1/models", "/v1/models/tiny", "/v1/capabilities", "/v1/stats", "/openapi.json"):
        tiny.get(call).ok()
    assert tiny.get("/metrics").status == 200
    documented = {(operation["operationId"], int(status), media) for _, _, operation in promised.calls
                  for status, response in operation["responses"].items() if int(status) < 400
                  for media in response.get("content", {None: None})}
    assert documented - promised.seen == set()


def test_every_call_asked_wrongly(tiny, promised):
    """Refused before a handler, by a handler for what it names, and for what comes with it; all are documented."""
    for method, path, operation in promised.calls:
        target = filled(path)
        assert tiny.request(method, target, headers={"Host": "evil.example"}).status == 421
        assert tiny.request(method, target, headers={"Origin": "https://evil.example"}).status == 403
        assert tiny.request(method, target + "?a=%zz").status == 400
        assert tiny.request(method, target, headers={"X": "x" * 40_000}).status == 431
        if method == "POST":
            assert tiny.request(method, target, {}, headers={"Content-Type": "text/plain"}).status == 415
            assert tiny.request(method, target, headers={"Content-Length": str(1 << 30)}).status == 413
        if "{generation}" in path or "{session}" in path:
            assert tiny.request(method, filled(path, session="nobody's"), {}).status == 404
        elif method == "POST":
            assert tiny.request(method, target, "[]").status == tiny.request(method, target, "{").status == 400
    done = generation(tiny)
    for call in ("pause", "resume"):
        assert tiny.post(f"/v1/generations/{done}/{call}").status == 409
    assert tiny.get(f"/v1/generations/{done}/inspect").status == 409


def test_each_answer_names_its_request(tiny, promised):
    """As it is described; contract.py looks for it in all that tests ask."""
    described = promised.document["components"]["headers"]["x-request-id"]["schema"]
    for method, path, operation in promised.calls:
        assert {"$ref": "#/components/parameters/x-request-id"} in operation["parameters"], path
        for theirs in ("mine-1", "no id", ""):
            asked = {"Host": "evil.example", "x-request-id": theirs}
            named = tiny.request(method, filled(path), {}, headers=asked).headers["x-request-id"]
            assert jsonschema.Draft202012Validator(described).is_valid(named) and (named == theirs) == (theirs == "mine-1")


def test_scopes_are_the_documented_ones(start, tmp_path, promised):
    everything = ("use", "review", "admin")
    entries = [(f"only-{s}", "acme", s) for s in everything]
    entries += [(f"no-{s}", "acme", ",".join(set(everything) - {s})) for s in everything]
    path, keys = key_file(tmp_path, *entries)
    server = start("--engine", "fake", "--api-key-file", str(path)).ready()
    for method, path, operation in promised.calls:
        target = filled(path, session="nobody", generation="gen_0") + ("?from=x" if path == "/v1/events" else "")
        def status(key):
            server.key = keys.get(key)
            stream = Stream(server, target, {}, method=method).head()
            stream.finish()
            return stream.status
        if not operation["security"]:
            assert status(None) == 200
            continue
        scope, = operation["security"][0]["key"]
        assert f"`{scope}`" in operation["description"]
        assert status(None) == 401 and status(f"no-{scope}") == 403, path
        assert status(f"only-{scope}") not in (401, 403), path


# --------------------------------------------------------------------------------------------------- what may be asked


def candidates(schema):
    """Values of every type, and those at the bounds that a schema has, on both sides."""
    for part in [schema, *schema.get("anyOf", [])]:
        for key, step in (("minimum", -1), ("maximum", 1)):
            if key in part:
                yield from (part[key], part[key] + step)
        if "maxLength" in part:
            yield "x" * min(part["maxLength"], 10_000)  # a text of a megabyte takes its time
            yield "x" * (part["maxLength"] + 1)
        if "maxItems" in part and part["maxItems"] < 100:
            yield from (["x"] * part["maxItems"], ["x"] * (part["maxItems"] + 1))
        yield from part.get("enum", [])
    yield from (None, True, False, 0, 1, -1, 0.5, 1e30, "", "x", "a\nb", [], ["x"], [1], [None], {}, {"a": 1}, {"5": 1}, [[5, 1]])


# What a field needs beside it, where a schema cannot say so.
NEEDS = {
    "top_logprobs": {"logprobs": True}, "stream_options": {"stream": True}, "continue_final_message": None,
    "add_generation_prompt": None, "fermata.stream_events": {"stream": True}, "fermata.on_new_message": {"fermata": {"session": "s"}},
    "fermata.pause_at": {"fermata": {"on_pause": "return"}},
}


LIMITED_BY_MODEL = ("max_tokens", "max_completion_tokens", "n_predict", "min_keep")  # by its pool, its vocabulary


def agrees(answer, is_fine, name, value):
    """Refused by its name if and only if the document says so, or the model is too small for it."""
    if is_fine and name in LIMITED_BY_MODEL and (value or 0) > 256:
        assert answer.status == 400 and answer.error["param"] in LIMITED_BY_MODEL
        return
    said = f"{name} = {json.dumps(value)[:80]}: {answer.status} {answer.body[:300]}"
    if is_fine:
        assert answer.status != 400, said
    else:
        assert answer.status == 400 and (answer.error["param"] or "").startswith(name), said


def fields_of(promised, name):
    """(path, schema) of every field of a body, those of inner objects too."""
    schemas = promised.document["components"]["schemas"]
    def properties(schema, prefix):
        for field, inner in schema["properties"].items():
            while "$ref" in inner:
                inner = schemas[inner["$ref"].split("/")[-1]]
            yield prefix + field, inner
            if prefix + field in ("fermata", "stream_options"):
                yield from properties(inner, prefix + field + ".")
    return list(properties(schemas[name], ""))


def fitting(promised, schema):
    return jsonschema.Draft202012Validator({**schema, "components": promised.document["components"]})


@pytest.mark.parametrize("path, body", [("/v1/chat/completions", HELLO), ("/v1/completions", ONE)])
def test_every_field_of_a_completion(start, promised, path, body):
    server = start("-m", tiny_model(), "-c", "256").ready()
    request = "ChatRequest" if "messages" in body else "CompletionRequest"
    n_refused = n_fine = 0
    for name, schema in fields_of(promised, request):
        if name in ("prompt", "messages"):
            continue
        valid = fitting(promised, schema)
        needs = NEEDS.get(name, {})
        if needs is None:  # true or false depends on the last message; the types do not
            needs, valid = {}, fitting(promised, {"type": ["boolean", "null"]})
        for value in candidates(schema):
            asked = {**body, "max_tokens": 1, **json.loads(json.dumps(needs))}
            if needs is not NEEDS.get(name, {}) and isinstance(value, bool):
                continue
            if name in ("max_completion_tokens", "n_predict"):
                del asked["max_tokens"]
            *outer, field = name.split(".")
            holder = asked.setdefault(outer[0], {}) if outer else asked
            if outer == ["stream_options"]:
                asked["stream"] = True
            holder[field] = value
            is_fine = valid.is_valid(value)
            n_fine, n_refused = n_fine + is_fine, n_refused + (not is_fine)
            agrees(server.post(path, asked), is_fine, name, value)
    assert n_fine > 300 and n_refused > 500, (n_fine, n_refused)
    assert server.post(path, {**body, "unknown": 1}).error["param"] == "unknown"


@pytest.mark.parametrize("request_name, path", [("ResumeRequest", "/v1/generations/{generation}/resume"),
                                                ("TokenizeRequest", "/tokenize"), ("DetokenizeRequest", "/v1/detokenize")])
def test_every_field_of_another_body(tiny, promised, request_name, path):
    target = filled(path, generation=generation(tiny))
    for name, schema in fields_of(promised, request_name):
        for value in candidates(schema):
            agrees(tiny.post(target, {name: value}), fitting(promised, schema).is_valid(value), name, value)
    needed = {"tokens": [5]} if request_name == "DetokenizeRequest" else {}
    assert tiny.post(target, {**needed, "unknown": 1}).error["param"] == "unknown"


@pytest.mark.parametrize("name, fine, wrong", [
    ("messages", [[{"role": "user", "content": "x"}], [{"role": "system", "content": [{"type": "text", "text": "x"}]},
                                                       {"role": "assistant", "content": "x", "tool_calls": []}]],
     [None, "x", [], [1], [{}], [{"role": "tool", "content": "x"}], [{"role": "user"}], [{"role": "user", "content": []}],
      [{"role": "user", "content": None}], [{"role": "user", "content": [{"type": "image"}]}],
      [{"role": "user", "content": "x", "unknown": 1}], [{"role": "user", "content": "x", "tool_calls": [1]}],
      [{"role": "user", "content": "x", "refusal": ""}]]),
    ("prompt", ["x", [5, 6], ["x"], [[5]]], [None, 1, {}, [], [-1], [1.5], ["x", "y"], [[1], [2]], [[["x"]]], [True]])])
def test_what_a_model_is_asked(tiny, promised, name, fine, wrong):
    is_chat = name == "messages"
    schema = dict(fields_of(promised, "ChatRequest" if is_chat else "CompletionRequest"))[name]
    for value in fine + wrong:
        is_fine = fitting(promised, schema).is_valid(value)
        assert is_fine == (value in fine), value
        answer = tiny.post("/v1/chat/completions" if is_chat else "/v1/completions", {name: value, "max_tokens": 1})
        agrees(answer, is_fine, name, value)


OTHERS = ("/metrics", "/v1/chat/completions", "/v1/completions", "/v1/models", "/v1/models/{model}", "/tokenize", "/v1/tokenize", "/detokenize",
          "/v1/detokenize", "/health", "/v1/health", "/v1/capabilities", "/v1/stats", "/openapi.json")


def test_a_parameter_that_a_call_does_not_have(tiny, promised):
    """A 400 that names it and those that are documented, but for calls that others defined, or that say what the server is."""
    name = generation(tiny)
    for method, path, operation in promised.calls:
        def asked(query):
            return tiny.request(method, filled(path, generation=name) + query, None if method == "GET" else {})
        if path in OTHERS:
            plain, more = asked(""), asked("?api-version=1")
            assert (more.status, len(more.body)) == (plain.status, len(plain.body)) or path.endswith(("stats", "health", "metrics")), path
            continue
        named = [promised.document["components"]["parameters"][p["$ref"].split("/")[-1]] if "$ref" in p else p
                 for p in operation.get("parameters", [])]
        known = [p["name"] for p in named if p["in"] == "query"]
        refused = asked("?api-version=1")
        assert refused.status == 400 and refused.error["param"] == "api-version", path
        has = "this call has " + (", ".join(known) or "none")
        assert refused.error["message"] == f"unknown parameter api-version; {has}"
        for one in known:
            twice = asked(f"?{one}=1&{one}=1")
            assert (twice.status, twice.error["param"]) == (400, one) and "more than once" in twice.error["message"]
            assert asked(f"?{one}x=1").error["message"] == f"unknown parameter {one}x; did you mean {one}? {has}"


def test_every_parameter(tiny, promised):
    name = generation(tiny)
    n_seen = 0
    for method, path, operation in promised.calls:
        for parameter in operation.get("parameters", []):
            if "$ref" in parameter:
                parameter = promised.document["components"]["parameters"][parameter["$ref"].split("/")[-1]]
            if parameter.get("in") != "query" or path == "/v1/events":
                continue  # /v1/events takes any text
            schema, field = parameter["schema"], parameter["name"]
            for value in ([*candidates(schema)] if schema["type"] == "integer" else [*schema.get("enum", []), "x"]):
                is_fine = field != "after" and fitting(promised, schema).is_valid(value)
                text = json.dumps(value) if schema["type"] == "integer" else value
                answer = tiny.get(f"{filled(path, generation=name)}?{field}={text.replace(' ', '')}".replace('"', ""))
                assert (answer.status == 400) == (not is_fine), f"{path} {field}={value}: {answer.status}"
                assert is_fine or answer.error["param"] == field
                n_seen += 1
    assert n_seen > 100
