#!/usr/bin/env python3
"""Streams that come together, against llama-server: every server is up at once and is asked by turns, cell by cell.

What takes a server a second is compared with what the others took in the seconds beside it, so that a machine whose speed
wanders does not decide (bench/serving.py restarts its servers between rounds, minutes apart). Ratios are ours to the peer's
default within a round; median with a 95 % interval. The peer's default runs twice: what a ratio of nothing looks like.

Writes build/bench/NAME.json and a Markdown table to standard output. Needs the environment that tools/bench sets.
"""

import asyncio
import contextlib
import random
import statistics
import sys

import load_client
import paired
from paired import AGAIN, PEER
from serving import GRID, N_TOKENS, Server, percentile


def parse(argv):
    parser = paired.parser(__doc__, "servers.json", "grid")
    parser.add_argument("--cells", default="", help="such as 1x30,8x500; left out: 1 / 4 / 8 streams x 30 / 500 / 3000 tokens")
    return parser.parse_args(argv)


async def ask(port, streams, prompt, chance):
    """One round of one server; short cells several times, so that each takes about as long."""
    answers, wall = [], 0
    for _ in range(max(1, 480 // (streams * prompt))):
        some, took = await load_client.at_once(port, streams, prompt, N_TOKENS, chance)
        answers, wall = answers + some, wall + took
    return answers, sum(answer.n_tokens for answer in answers) / wall


async def measure(servers, cells, rounds, log):
    chance = random.Random(1)
    for server in servers.values():
        await load_client.at_once(server.port, 1, 30, 16, chance)  # warm
    table = {}
    for streams, prompt in cells:
        speeds, ttft, gaps = ({name: [] for name in servers} for _ in range(3))
        for i in range(rounds):
            names = list(servers)
            for name in names[i % len(names):] + names[:i % len(names)]:
                answers, speed = await ask(servers[name].port, streams, prompt, chance)
                speeds[name].append(speed)
                ttft[name] += [answer.ttft * 1000 for answer in answers]
                gaps[name] += [gap * 1000 for answer in answers for gap in answer.gaps]
        row = table[f"{streams} x {prompt}"] = {}
        for name in servers:
            ratio, low, high = paired.median_and_interval([a / b for a, b in zip(speeds[name], speeds[PEER])])
            row[name] = {"tok_s": statistics.median(speeds[name]), "ratio": ratio, "low": low, "high": high,
                         "ttft_p50_ms": statistics.median(ttft[name]), "itl_p50_ms": statistics.median(gaps[name]),
                         "itl_p99_ms": percentile(gaps[name], 99)}
            print(f"{streams} x {prompt}, {name}: {row[name]['tok_s']:.0f} tok/s, {ratio:.2f} ({low:.2f}-{high:.2f})", file=log, flush=True)
    return table


def markdown(table):
    names = list(next(iter(table.values())))
    lines = ["| streams x prompt | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for cell, row in table.items():
        shown = [f"{r['tok_s']:.0f} / {r['ttft_p50_ms']:.0f} / {r['itl_p50_ms']:.0f} / {r['itl_p99_ms']:.0f}" +
                 ("" if name == PEER else f"; **{r['ratio']:.2f}** ({r['low']:.2f}-{r['high']:.2f})") for name, r in row.items()]
        lines.append(f"| {cell} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def main(argv):
    args = parse(argv)
    configs = paired.configurations("servers.json", args.only)
    cells = [tuple(map(int, cell.split("x"))) for cell in args.cells.split(",")] if args.cells else GRID
    with contextlib.ExitStack() as stack:
        servers = {name: stack.enter_context(Server(configs[PEER if name == AGAIN else name], args)) for name in [*configs, AGAIN]}
        table = asyncio.run(measure(servers, cells, args.rounds, sys.stderr))
    paired.write(args.name, {**paired.provenance(args.model), "threads": args.threads, "configs": configs, "rounds": args.rounds,
                             "table": table})
    print(markdown(table))


if __name__ == "__main__":
    main(sys.argv[1:])
