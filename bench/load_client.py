"""Streams of /v1/chat/completions over plain sockets, with the time of every token. Cheap enough to share the cores."""

import asyncio
import dataclasses
import json
import time

WORDS = ("time year people way day man thing woman life child world school state family student group country problem hand part "
         "place case week company system program question work night point home water room mother area money story fact month "
         "lot right study book eye job word business issue side kind head house service friend father power hour game line end "
         "member law car city name team minute idea kid body back parent face door health person art war history party").split()


@dataclasses.dataclass
class Answer:
    """Seconds on one clock. arrivals: of each token; sent: the request's last byte; ended: the end of the stream."""
    sent: float
    arrivals: list = dataclasses.field(default_factory=list)
    ended: float = 0.0
    n_prompt: int = 0
    n_tokens: int = 0

    @property
    def ttft(self):
        return self.arrivals[0] - self.sent

    @property
    def gaps(self):
        return [b - a for a, b in zip(self.arrivals, self.arrivals[1:])]


def body(n_prompt, n_tokens, chance):
    """A request of about n_prompt tokens that no other shares; the template's own tokens are counted."""
    words = " ".join(chance.choice(WORDS) for _ in range(max(1, n_prompt - 20)))
    return {
        "messages": [{"role": "system", "content": "You are terse."}, {"role": "user", "content": words}],
        "max_tokens": n_tokens, "ignore_eos": True, "stream": True, "stream_options": {"include_usage": True},
        "temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "seed": chance.randrange(1 << 31),
    }


async def _send(port, request):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    data = json.dumps(request).encode()
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                 b"Connection: close\r\nContent-Length: %d\r\n\r\n" % (port, len(data)) + data)
    await writer.drain()
    return reader, writer, Answer(time.perf_counter())


async def ask(port, request, on_first=None):
    """The Answer; raises if the server refuses. on_first: an event that is set when the first token comes."""
    reader, writer, answer = await _send(port, request)
    status = await reader.readline()
    if b" 200 " not in status:
        raise RuntimeError(f"{status!r} {await reader.read()!r}")
    while line := await reader.readline():
        if not line.startswith(b"data: {"):
            if line.startswith(b"data: [DONE]"):
                break
            continue
        now = time.perf_counter()
        chunk = json.loads(line[6:])
        if "error" in chunk:
            raise RuntimeError(line.decode())
        if chunk.get("usage"):
            answer.n_prompt, answer.n_tokens = chunk["usage"]["prompt_tokens"], chunk["usage"]["completion_tokens"]
        if chunk["choices"] and chunk["choices"][0]["delta"].get("content"):
            answer.arrivals.append(now)
            if on_first:
                on_first.set()
    answer.ended = time.perf_counter()
    writer.close()
    return answer


async def abandon(port, request, after_s):
    """Sends the request and closes the connection after so many seconds."""
    _, writer, _ = await _send(port, request)
    await asyncio.sleep(after_s)
    writer.close()
    await writer.wait_closed()


async def at_once(port, n_streams, n_prompt, n_tokens, chance):
    """(answers, wall seconds) of so many requests sent together."""
    requests = [body(n_prompt, n_tokens, chance) for _ in range(n_streams)]
    began = time.perf_counter()
    answers = await asyncio.gather(*(ask(port, request) for request in requests))
    return answers, time.perf_counter() - began


async def newcomer(port, n_streams, n_prompt, chance):
    """(longest gap of the streams that ran, time to first token of a long prompt that comes among them)."""
    started = [asyncio.Event() for _ in range(n_streams)]
    running = [asyncio.create_task(ask(port, body(30, 400, chance), event)) for event in started]
    await asyncio.gather(*(event.wait() for event in started))
    await asyncio.sleep(0.5)
    came = time.perf_counter()
    late = await ask(port, body(n_prompt, 4, chance))
    gaps = []
    for answer in await asyncio.gather(*running):
        if answer.ended < late.arrivals[0]:
            raise RuntimeError("the streams ended before the newcomer's first token: they are too short")
        times = [t for t in answer.arrivals if came - 0.2 <= t <= late.arrivals[0] + 0.2]
        gaps += [b - a for a, b in zip(times, times[1:])]
    return max(gaps), late.ttft


async def after_one_left(port, chance, leaves=True):
    """(ttft, seconds in all) of a short request right after a client left a prompt of 3,000 tokens half read."""
    if leaves:
        await abandon(port, body(3000, 64, chance), 0.3)
    answer = await ask(port, body(30, 16, chance))
    return answer.ttft, answer.ended - answer.sent
