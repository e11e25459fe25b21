"""Events of one and of all, lists (CASES A9; WIRE section 7)."""

import contextlib
import http.client
import json

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from server import WAIT_S, until
from stream import Stream, text_of

ASKED = {"prompt": "events", "max_tokens": 40, "ignore_eos": True, "seed": 31}


def events(server, name, query="", headers=None):
    return Stream(server, f"/v1/generations/{name}/events{query}", None, headers, method="GET")


def read(stream):
    found = []
    while (event := stream.event()) is not None:
        found.append({"id": int(event["id"]), "event": event["event"], **json.loads(event["data"])})
    return found


def test_reattached_without_gap_or_repeat(tiny):
    live = Stream(tiny, "/v1/completions", {**ASKED, "stream": True, "fermata": {"pause_at": 20}})
    name = live.generation
    record = tiny.wait_for(name, "paused")["pause"]
    first = events(tiny, name)
    begun = []
    while not begun or begun[-1]["event"] != "paused":
        event = first.event()
        begun.append({"id": int(event["id"]), "event": event["event"], **json.loads(event["data"])})
    assert begun[-1]["pause"] == record
    first.reset()
    tiny.post("/v1/resume", {"pause_id": record["pause_id"]}).ok(202)
    rest = read(events(tiny, name, headers={"Last-Event-ID": str(begun[-1]["id"])}))
    whole = begun + rest
    assert [e["id"] for e in whole] == [e["seq"] for e in whole] == list(range(len(whole)))
    assert [e["event"] for e in whole if e["event"] != "token"] == ["created", "running", "paused", "resumed", "finished"]
    assert whole[0]["answer_id"] == tiny.generation(name)["answer_id"] and "session" not in whole[0]
    assert "".join(e.get("text", "") for e in whole) == text_of(live.chunks()) == tiny.generation(name)["text"]
    assert read(events(tiny, name)) == whole
    assert read(events(tiny, name, "?from=7")) == whole[7:], "from is inclusive"
    assert read(events(tiny, name, "?from=7", {"Last-Event-ID": "3"})) == whole[7:]
    assert tiny.generation(name)["n_events"] == len(whole)
    tokens = [t for e in whole for t in e.get("tokens", [])]
    listed = tiny.get(f"/v1/generations/{name}/tokens").ok()
    assert tokens == [row["id"] for row in listed["data"][listed["n_prompt"]:]]
    over = tiny.get(f"/v1/generations/{name}/events?from={len(whole)}")
    assert over.status == 204 and over.body == b""
    assert tiny.get(f"/v1/generations/{name}/events", headers={"Last-Event-ID": str(len(whole) - 1)}).status == 204
    assert tiny.get(f"/v1/generations/{name}/events?from=x").status == 400
    assert tiny.get("/v1/generations/gen_0/events").status == 404


def test_cancelled_from_another_connection(tiny):
    live = Stream(tiny, "/v1/completions", {**ASKED, "max_tokens": 8000, "stream": True,
                                            "fermata": {"on_disconnect": "continue"}})
    begun, name = live.texts(10), live.generation
    live.reset()
    again = events(tiny, name)
    told = [json.loads(again.event()["data"]) for _ in range(30)]
    assert "".join(t.get("text", "") for t in told).startswith(begun)
    tiny.cancel(name).ok()
    last = read(again)[-1]
    assert (last["event"], last["end_reason"]) == ("finished", "cancelled")


def following(server, query=""):
    stream = Stream(server, f"/v1/events{query}", None, method="GET")
    while b": following\n\n" not in stream.data:
        assert stream._more()
    return stream


@contextlib.contextmanager
def following_by(by, server, query):
    """A function that takes the next event."""
    if by == "sse":
        source = following(server, query)
        yield lambda: json.loads(source.event()["data"])
        source.finish()
    else:
        with connect(f"ws://{server.host}:{server.port}/v1/events{query}", proxy=None) as source:
            yield lambda: json.loads(source.recv(timeout=WAIT_S))


@pytest.mark.parametrize("by", ["sse", "websocket"])
def test_everything_of_everybody(tiny, by):
    query = f"?session=E-{by}"
    with following_by(by, tiny, query) as take:
        hear_only_ones_own(tiny, by, take)


def hear_only_ones_own(tiny, by, take):
    tiny.post("/v1/completions", {**ASKED, "fermata": {"session": "somebody else"}}).ok()
    called = {"session": f"E-{by}", "client_id": f"c-{by}", "tags": ["a", "b"]}
    names = [tiny.post("/v1/completions", {**ASKED, "fermata": called}).ok()["fermata"]["generations"][0] for _ in range(2)]
    for name in names:
        told = []
        while not told or told[-1]["type"] != "finished":
            told.append(take())
        assert {t["generation"] for t in told} == {name} and [t["type"] for t in told[:3]] == ["created", "running", "token"]
        assert all({key: t[key] for key in called} == called for t in told), "who follows all can tell them apart"
        assert [t["seq"] for t in told] == list(range(len(told)))
        assert "".join(t.get("text", "") for t in told) == tiny.generation(name)["text"]


def test_only_some_types_of_events(tiny):
    source = following(tiny, "?types=finished,paused&tag=blue")
    tiny.post("/v1/completions", {**ASKED, "fermata": {"tags": ["red"]}}).ok()
    paused = tiny.post("/v1/completions", {**ASKED, "fermata": {"tags": ["blue"], "pause_at": 3, "on_pause": "return"}}).ok()
    tiny.cancel(paused["fermata"]["generations"][0]).ok()
    assert [json.loads(source.event()["data"])["type"] for _ in range(2)] == ["paused", "finished"]
    source.finish()
    for wrong, hint in (("started", ""), ("token,,paused", ""), ("tokens", "; did you mean token?"), ("paused,creatd", "; did you mean created?")):
        refused = tiny.get(f"/v1/events?types={wrong}")
        assert refused.status == 400 and refused.error["param"] == "types"
        assert refused.error["message"] == f"types must be one of created, running, token, paused, resumed, rewound, finished{hint}"


def test_one_that_waits_for_its_session_is_told_before_it_begins(tiny):
    source = following(tiny, "?session=W&types=created,running,finished")
    first = Stream(tiny, "/v1/completions", {**ASKED, "max_tokens": 8000, "stream": True, "fermata": {"session": "W"}})
    first.texts(1)
    waits = Stream(tiny, "/v1/completions", {**ASKED, "stream": True, "fermata": {"session": "W", "on_new_message": "queue"}})
    names = {first.generation: 1, waits.generation: 2}
    tiny.cancel(first.generation).ok()
    for one in (first, waits):
        one.chunks()
    told = [json.loads(source.event()["data"]) for _ in range(6)]
    assert [(t["type"], names[t["generation"]]) for t in told] == [
        ("created", 1), ("running", 1), ("created", 2), ("finished", 1), ("running", 2), ("finished", 2)]
    source.finish()


def test_lists(tiny):
    asked = {"prompt": "list", "max_tokens": 1, "ignore_eos": True}
    names = []
    for i in range(7):
        named = {"session": f"L{i % 2}", "tags": ["listed", f"n{i}"], "metadata": {"i": i}}
        names.append(tiny.post("/v1/completions", {**asked, "fermata": named}).ok()["fermata"]["generations"][0])
    page = tiny.get("/v1/generations?tag=listed&limit=3").ok()
    assert (page["object"], page["has_more"]) == ("list", True)
    found = [g["id"] for g in page["data"]]
    while page["has_more"]:
        page = tiny.get(f"/v1/generations?tag=listed&limit=3&after={page['last_id']}").ok()
        found += [g["id"] for g in page["data"]]
    assert found == names[::-1]
    assert (page["first_id"], page["last_id"]) == (names[0], names[0])
    ids = lambda query: [g["id"] for g in tiny.get(f"/v1/generations?tag=listed&order=asc&{query}").ok()["data"]]
    assert ids("") == names and ids("session=L1") == names[1::2] and ids("state=finished") == names
    assert ids("state=paused,queued") == [] and ids("state=paused,finished") == names and ids("reason=stop,length") == names
    assert ids("state=paused") == [] and ids("reason=length") == names
    created = int(tiny.generation(names[0])["created_at"])
    assert ids(f"created_after={created - 1}") == names and ids(f"created_after={created + 100}") == []
    assert [g["id"] for g in tiny.get("/v1/generations?tag=n3").ok()["data"]] == names[3:4]
    for wrong in ("limit=0", "limit=1000", "limit=x", "order=up", "after=gen_0", "created_after=soon", "reason=nonsense", "limit=1&limit=2"):
        refused = tiny.get(f"/v1/generations?{wrong}")
        assert refused.status == 400 and refused.error["param"] == wrong.split("=")[0]
    for wrong, hint in (("state=runing", "running"), ("reason=lenght", "length"), ("reason=pauseat", "pause_at"), ("order=des", "desc")):
        said = tiny.get(f"/v1/generations?{wrong}").error["message"]
        assert said.startswith(f"{wrong.split('=')[0]} must be one of ") and said.endswith(f"; did you mean {hint}?") and ".md" not in said
    record = tiny.generation(names[2])
    assert record["metadata"] == {"i": 2} and record["tags"] == ["listed", "n2"]


def test_list_of_sessions(start):
    server = start("--engine", "fake").ready()
    asked = {"prompt": "list", "max_tokens": 1, "ignore_eos": True}
    for session in ("A", "B", None, "A", "C"):
        server.post("/v1/completions", {**asked, "fermata": {"session": session} if session else {}}).ok()
    held = server.post("/v1/completions", {**asked, "max_tokens": 9, "fermata": {
        "session": "B", "pause_at": 1, "on_pause": "return"}}).ok()["fermata"]["generations"][0]
    page = server.get("/v1/sessions?limit=2").ok()
    assert [(s["id"], s["n_generations"], s["n_alive"], s["state"]) for s in page["data"]] == [
        ("B", 2, 1, "paused"), ("C", 1, 0, "finished")]
    assert page["data"][0]["newest"] == held and page["has_more"]
    assert (page["first_id"], page["last_id"]) == ("B", "C")
    rest = server.get("/v1/sessions?limit=2&after=C").ok()
    assert [s["id"] for s in rest["data"]] == ["A"] and not rest["has_more"]
    assert [s["id"] for s in server.get("/v1/sessions?order=asc").ok()["data"]] == ["A", "C", "B"]
    for wrong in ("limit=0", "order=up", "after=nobody"):
        refused = server.get(f"/v1/sessions?{wrong}")
        assert refused.status == 400 and refused.error["param"] == wrong.split("=")[0]
    cancelled = server.post("/v1/sessions/B/cancel").ok()
    assert (cancelled["first_id"], cancelled["last_id"], cancelled["has_more"]) == (held, held, False)


def test_a_page_that_ends_with_a_forgotten_one_is_gone(start):
    server = start("--engine", "fake").ready()
    asked = {"prompt": "page", "max_tokens": 1, "ignore_eos": True}
    opened = lambda **fermata: server.post("/v1/completions", {**asked, "fermata": fermata}).ok()["fermata"]["generations"][0]
    first, _ = opened(session="stays"), opened(session="goes")
    alive = server.post("/v1/completions", {**asked, "max_tokens": 9, "fermata": {
        "session": "stays", "pause_at": 1, "on_pause": "return"}}).ok()["fermata"]["generations"][0]
    assert [g["id"] for g in server.get(f"/v1/sessions/stays?after={first}").ok()["generations"]] == [alive]
    used = server.post("/v1/completions", {**asked, "max_tokens": 9, "fermata": {"pause_at": 1, "on_pause": "return"}}).ok()
    resumed = {"pause_id": used["choices"][0]["pause"]["pause_id"]}
    server.post("/v1/resume", {**resumed, "wait": True}).ok()
    connection = http.client.HTTPConnection(server.host, server.port, timeout=WAIT_S)
    for _ in range(2000):  # as many as are kept
        connection.request("POST", "/v1/completions", json.dumps(asked), {"Content-Type": "application/json"})
        assert connection.getresponse().read()
    connection.close()
    until(lambda: server.get(f"/v1/generations/{first}").status == 410, "it is forgotten")
    for path in ("/v1/generations", "/v1/sessions/stays"):
        refused = server.get(f"{path}?after={first}")
        assert (refused.status, refused.error["code"], refused.error["param"]) == (410, "expired", "after"), path
    until(lambda: server.get(f"/v1/generations/{used['fermata']['generations'][0]}").status == 410, "the other one too")
    gone = server.post("/v1/resume", resumed)
    assert (gone.status, gone.error["code"]) == (410, "expired"), "a pause goes with its generation"
    assert "60 minutes" in gone.error["message"] and "2000" in gone.error["message"]
    # Sessions are the client's names: one of which nothing is kept is not known.
    assert server.get("/v1/sessions/goes").status == 404 and server.get("/v1/sessions?after=goes").status == 400
    assert server.get(f"/v1/generations?after={alive}").ok()["data"] == []


def test_a_key_follows_all_events_so_many_times(start):
    server = start("--engine", "fake").ready()
    sources = [following(server) for _ in range(32)]
    refused = server.get("/v1/events")
    assert (refused.status, refused.error["code"]) == (429, "busy") and "Retry-After".lower() in refused.headers
    with pytest.raises(InvalidStatus) as too_many:
        connect(f"ws://{server.host}:{server.port}/v1/events", proxy=None)
    assert too_many.value.response.status_code == 429
    sources.pop().reset()
    until(lambda: Stream(server, "/v1/events", None, method="GET").head().status == 200, "the place of the one that left")
