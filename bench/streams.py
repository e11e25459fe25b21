#!/usr/bin/env python3
"""What the server itself costs: 1,000 streams on the scripted engine, which computes nothing, in CPU time a token.

Prints, and writes to build/bench/NAME.json: µs of CPU of the process for each event that it sent, and of its io thread
alone (the first; the rest is the engine's and that of the threads that read requests). Medians of the rounds, with all of
them. CPU time, so other load on the machine changes it little. Needs the environment that tools/bench sets.
"""

import argparse
import asyncio
import json
import os
import pathlib
import statistics
import sys
import types

import paired
import serving

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def cpu_s(path):
    """Of a process or thread: user and system time so far."""
    fields = pathlib.Path(path, "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


async def read_stream(port, number, n_tokens):
    """The events of a stream of n_tokens; nothing is parsed, so that the client leaves the cores to the server."""
    body = json.dumps({"prompt": f"p{number}", "max_tokens": n_tokens, "ignore_eos": True, "stream": True}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                 b"Connection: close\r\nContent-Length: %d\r\n\r\n" % (port, len(body)) + body)
    n_events, is_done, tail = 0, False, b""
    while data := await reader.read(1 << 16):
        data = tail + data
        n_events += data.count(b"data: {")
        is_done |= b"data: [DONE]" in data
        tail = data[-6:] if not data.endswith(b"data: {") else b""
    writer.close()
    if not is_done:
        raise RuntimeError(f"stream {number} was cut after {n_events} events")
    return n_events


async def read_all(port, n_streams, n_tokens):
    return sum(await asyncio.gather(*(read_stream(port, number, n_tokens) for number in range(n_streams))))


def measure(args):
    config = {"kind": "fermata", "options": ["--engine", "fake"]}
    with serving.Server(config, types.SimpleNamespace(model=args.model, threads=1)) as server:
        process = f"/proc/{server.process.pid}"
        io_thread = f"{process}/task/{server.process.pid}"
        before = cpu_s(process), cpu_s(io_thread)
        n_events = asyncio.run(read_all(server.port, args.streams, args.tokens))
        used = cpu_s(process) - before[0], cpu_s(io_thread) - before[1]
        return {"n_events": n_events, "process_us": used[0] / n_events * 1e6, "io_thread_us": used[1] / n_events * 1e6,
                "memory_kib": server.memory_kib()}


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=200, help="of each stream")
    parser.add_argument("--model", default=os.environ.get("FERMATA_TEST_MODEL"), help="for the record; it is not loaded")
    parser.add_argument("--name", default="streams", help="of the result in build/bench/")
    args = parser.parse_args(argv)
    rounds = [measure(args) for _ in range(args.rounds)]
    paired.write(args.name, {**paired.provenance(args.model), "streams": args.streams, "tokens": args.tokens, "rounds": rounds})
    for what in ("process_us", "io_thread_us"):
        values = [one[what] for one in rounds]
        print(f"{what} an event: {statistics.median(values):.1f} ({', '.join(f'{value:.1f}' for value in values)})")
    print(f"{rounds[0]['n_events']} events of {args.streams} streams; {rounds[-1]['memory_kib'] / 1024:.0f} MiB resident")


if __name__ == "__main__":
    main(sys.argv[1:])
