"""What clients do in a soak. Each act asks for one answer, disturbs it, and compares what came with the answer of a solo run."""

import json

from server import until
from stream import Stream, text_of


class Wrong(Exception):
    pass


def same(got, wanted, what="the text"):
    if got != wanted:
        at = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), min(len(got), len(wanted)))
        raise Wrong(f"{what} differs from its solo run at character {at} of {len(wanted)}: …{got[max(0, at - 30):at + 30]!r}, wanted …{wanted[max(0, at - 30):at + 30]!r}")


def begins(got, wanted):
    same(got, wanted[:len(got)], "what was cut")


def text_of_choice(choice):
    return choice["text"] if "text" in choice else choice["message"]["content"]


def log_of(choice):
    """Log-probabilities of a whole answer, if it has them."""
    return choice.get("logprobs") and json.dumps(choice["logprobs"])


def stream_of(soak, drawn, **fermata):
    return Stream(soak.server, drawn.path, {**drawn.body, "stream": True, "fermata": fermata})


def read(stream):
    """The rest of a stream: (text, code of the error that ended it or None)."""
    chunks = [chunk for chunk in stream.chunks() if chunk != "[DONE]"]
    error = chunks[-1]["error"]["code"] if chunks and "error" in chunks[-1] else None
    return text_of([chunk for chunk in chunks if "error" not in chunk]), error


def read_whole(stream, begun=""):
    text, error = read(stream)
    if error:
        raise Wrong(f"it ended with {error}")
    return begun + text


def name_of(stream):
    return stream.head() and stream.generation


def some_text(stream, chance):
    """Of the first few chunks; less if it ends."""
    found = []
    for _ in range(chance.choice((0, 1, 3, 10))):
        chunk = stream.chunk()
        if not isinstance(chunk, dict):
            return "".join(found), True
        found.append(text_of([chunk]))
    return "".join(found), False


def steer(soak, name, verb, **body):
    answer = soak.server.post(f"/v1/generations/{name}/{verb}", body)
    if answer.status not in (200, 202, 409):
        raise Wrong(f"{verb} is answered {answer.status}: {answer.body[:200]}")
    return answer


# ----------------------------------------------------------------------------------------------------------------- acts


def whole_answer(soak, drawn, whole, chance):
    choice = soak.server.post(drawn.path, drawn.body).ok()["choices"][0]
    same(text_of_choice(choice), text_of_choice(whole))
    same(log_of(choice) or "", log_of(whole) or "", "log-probabilities")
    soak.count("whole_answer")


def streamed(soak, drawn, whole, chance):
    same(read_whole(stream_of(soak, drawn)), text_of_choice(whole))
    soak.count("streamed")


def paused_and_resumed(soak, drawn, whole, chance):
    stream = stream_of(soak, drawn)
    name, (text, _) = name_of(stream), some_text(stream, chance)
    for _ in range(chance.randint(1, 3)):
        if steer(soak, name, "pause").status != 200:
            break
        soak.count("paused_and_resumed")
        if chance.random() < 0.5:
            soak.server.get(f"/v1/generations/{name}/inspect")
        steer(soak, name, "resume")
    same(read_whole(stream, text), text_of_choice(whole))


def paused_at_a_token(soak, drawn, whole, chance):
    at = chance.randint(1, 7)
    stream = stream_of(soak, drawn, pause_at=at)
    name = name_of(stream)
    found = until(lambda: (g := soak.server.generation(name))["state"] in ("paused", "finished") and g, f"{name} is paused")
    if found["state"] == "paused":
        soak.count("paused_at_a_token")
        steer(soak, name, "resume")
    same(read_whole(stream), text_of_choice(whole))


def returned_and_resumed(soak, drawn, whole, chance):
    if "response_format" in drawn.body:
        return
    stream = stream_of(soak, drawn, pause_at=chance.randint(1, 7), on_pause="return")
    name, text = name_of(stream), read_whole(stream)
    pause = soak.server.generation(name)["pause"]
    if pause:
        soak.count("returned_and_resumed")
        rest = Stream(soak.server, "/v1/resume", {"pause_id": pause["pause_id"], "stream": True})
        text = read_whole(rest, text)
    same(text, text_of_choice(whole))


def left_and_came_back(soak, drawn, whole, chance):
    how = chance.choice(("continue", "pause"))
    stream = stream_of(soak, drawn, on_disconnect=how)
    name, (text, ended) = name_of(stream), some_text(stream, chance)
    begins(text, text_of_choice(whole))
    stream.socket.close()
    if ended:
        return
    if how == "pause":
        until(lambda: soak.server.generation(name)["state"] in ("paused", "finished"), f"{name} is paused")
        steer(soak, name, "resume")
    events, text = Stream(soak.server, f"/v1/generations/{name}/events", None, method="GET"), ""
    while (event := events.event()) is not None:
        if event.get("event") == "token":
            text += json.loads(event["data"])["text"]
    if events.status == 200:
        same(text, text_of_choice(whole))
        soak.count("left_and_came_back")
    elif events.status != 410:  # so many came meanwhile that it is forgotten
        raise Wrong(f"the events of {name} are answered with {events.status}")


def cancelled(soak, drawn, whole, chance):
    stream = stream_of(soak, drawn)
    name, (text, _) = name_of(stream), some_text(stream, chance)
    steer(soak, name, "cancel")
    rest, error = read(stream)
    begins(text + rest, text_of_choice(whole))
    if error == "cancelled":
        soak.count("cancelled")
    elif error:
        raise Wrong(f"a cancelled one ended with {error}")


def dropped(soak, drawn, whole, chance):
    stream = stream_of(soak, drawn)
    name, (text, ended) = name_of(stream), some_text(stream, chance)
    stream.socket.close()
    begins(text, text_of_choice(whole))
    found = until(lambda: (g := soak.server.generation(name))["state"] == "finished" and g, f"{name} has ended")
    begins(found["text"], text_of_choice(whole))
    if found["end_reason"] == "disconnected":
        soak.count("dropped")


def replaced(soak, drawn, whole, chance):
    session = f"s{chance.randrange(3)}"
    stream = stream_of(soak, drawn, session=session, on_new_message=chance.choice(("cancel", "queue")))
    text, error = read(stream)
    begins(text, text_of_choice(whole))
    if error == "replaced":
        soak.count("replaced")
    elif error:
        raise Wrong(f"of a session one ended with {error}")
    else:
        same(text, text_of_choice(whole))


def read_slowly(soak, drawn, whole, chance):
    stream = Stream(soak.server, drawn.path, {**drawn.body, "stream": True}, receive_bytes=2048)
    name = name_of(stream)
    until(lambda: soak.server.generation(name)["state"] in ("finished", "paused"), f"{name} writes to nobody")
    same(read_whole(stream), text_of_choice(whole))
    soak.count("read_slowly")


ACTS = (whole_answer, streamed, paused_and_resumed, paused_at_a_token, returned_and_resumed, left_and_came_back, cancelled,
        dropped, replaced, read_slowly)
