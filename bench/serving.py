#!/usr/bin/env python3
"""fermata against llama-server from the same sources, over HTTP: same file, threads and pool, by turns.

A round starts every server of bench/servers.json once, the peer's default a second time (the A/A row), and asks each the
same: 1 / 4 / 8 streams that come together with prompts of 30 / 500 / 3,000 tokens; a long prompt that comes among four
streams; a short request right after a client left a long prompt. Ratios are ours to the peer's default within a round:
above 1 is better for throughput, below 1 for times. Median of the rounds with a 95 % interval (range if there are
fewer than six).

Writes build/bench/NAME.json and Markdown tables to standard output. Needs the environment that tools/bench sets.
"""

import asyncio
import math
import os
import pathlib
import random
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request

import load_client
import paired
from paired import AGAIN, PEER

GRID = [(streams, prompt) for prompt in (30, 500, 3000) for streams in (1, 4, 8)]
N_TOKENS = 64
POOL = 32768
N_IDLE = 200  # connections


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server as a child process, ready when entered and ended when left."""

    def __init__(self, config, args):
        self.port = free_port()
        common = ["--port", str(self.port), "-m", args.model, "-t", str(args.threads), "-c", str(POOL), *config["options"]]
        ours = [os.environ["FERMATA_BUILD"] + "/src/cli/fermata", "serve", *common]
        theirs = [os.environ["FERMATA_PEER_SERVER"], *common]
        self.command = ours if config["kind"] == "fermata" else theirs
        self.environment = {**os.environ, **config.get("environment", {})}

    def __enter__(self):
        self.log = open(pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"fermata-bench-{self.port}.log", "w+", encoding="utf8")
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log, env=self.environment)
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5) as answer:
                    if answer.status == 200:
                        return self
            except (OSError, urllib.error.URLError):
                pass
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        self.__exit__()
        raise RuntimeError(f"it does not start: {' '.join(self.command)}\n{pathlib.Path(self.log.name).read_text()[-2000:]}")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def memory_kib(self):
        """Resident."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])


def percentile(values, p):
    """The smallest value that p % of them do not exceed; of a hundred or fewer the 99th is the largest."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * p / 100) - 1)]


async def measure_grid(port, chance, grid):
    figures = {}
    for streams, prompt in grid:
        answers, walls = [], []
        for _ in range(max(1, 240 // (streams * prompt))):  # short ones several times
            some, wall = await load_client.at_once(port, streams, prompt, N_TOKENS, chance)
            answers, walls = answers + some, walls + [wall]
        gaps = [gap for answer in answers for gap in answer.gaps]
        figures[f"{streams} x {prompt}"] = {
            "tok_s": sum(a.n_tokens for a in answers) / sum(walls), "ttft_p50": statistics.median(a.ttft for a in answers),
            "ttft_max": max(a.ttft for a in answers), "itl_p50": statistics.median(gaps), "itl_p99": percentile(gaps, 99),
            "n_prompt": statistics.median(a.n_prompt for a in answers), "n_answers": len(answers)}
    return figures


async def measure_all(port, seed, grid):
    chance = random.Random(seed)
    await load_client.at_once(port, 1, 30, 16, chance)  # warm
    figures = {"grid": await measure_grid(port, chance, grid)}
    gap, ttft = await load_client.newcomer(port, 4, 3000, chance)
    figures["newcomer"] = {"longest_gap": gap, "ttft": ttft}
    alone = [await load_client.after_one_left(port, chance, leaves=False) for _ in range(3)]
    after = [await load_client.after_one_left(port, chance) for _ in range(3)]
    figures["after one left"] = {"alone_ttft": statistics.median(t for t, _ in alone), "alone": statistics.median(s for _, s in alone),
                                 "ttft": statistics.median(t for t, _ in after), "total": statistics.median(s for _, s in after)}
    return figures


def measure_idle(server):
    """KiB a connection that has asked once and waits. None if the server does not take so many."""
    request = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % server.port
    connections = []
    before = server.memory_kib()
    try:
        for _ in range(N_IDLE):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=2)
            connections.append(connection)
            connection.sendall(request)
            connection.recv(4096)
        return (server.memory_kib() - before) / N_IDLE
    except OSError:
        return None
    finally:
        for connection in connections:
            connection.close()


def run_one(config, args, seed):
    with Server(config, args) as server:
        idle_kib = measure_idle(server)  # before there is freed memory that would hide it
        figures = asyncio.run(measure_all(server.port, seed, [cell for cell in GRID if cell[1] <= args.prompt_max]))
        figures["memory_kib"] = server.memory_kib()
        figures["idle_kib"] = idle_kib
        return figures


def flat(figures):
    """{(what, figure): value}"""
    parts = {**figures["grid"], **{key: figures[key] for key in ("newcomer", "after one left")}}
    return {(what, name): value for what, row in parts.items() for name, value in row.items() if not name.startswith("n_")}


def compare(rounds, names):
    """{"what, figure": {config: {value, ratio, low, high}}}"""
    table = {}
    for key in flat(rounds[0][PEER]):
        row = table[", ".join(key)] = {}
        for name in names:
            pairs = [(flat(r[name])[key], flat(r[PEER])[key]) for r in rounds]
            ratio, low, high = paired.median_and_interval([ours / theirs for ours, theirs in pairs])
            row[name] = {"value": statistics.median(ours for ours, _ in pairs), "ratio": ratio, "low": low, "high": high}
    return table


def markdown(table, names):
    lines = ["| tok/s or ms; ratio to the peer's default (interval) | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for what, row in table.items():
        scale = 1 if what.endswith("tok_s") else 1000
        shown = [f"{r['value'] * scale:.{0 if r['value'] * scale >= 100 else 1}f}" +
                 ("" if name == PEER else f"; **{r['ratio']:.2f}** ({r['low']:.2f}-{r['high']:.2f})") for name, r in row.items()]
        lines.append(f"| {what} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def parse(argv):
    parser = paired.parser(__doc__, "servers.json", "serving")
    parser.add_argument("--prompt-max", type=int, default=3000, help="longest prompt of the grid")
    return parser.parse_args(argv)


def main(argv):
    args = parse(argv)
    configs = paired.configurations("servers.json", args.only)
    rounds = []
    for i in range(args.rounds):
        done = {}
        for name in paired.by_turns(configs, i):
            print(f"round {i + 1} of {args.rounds}, {name} (load {os.getloadavg()[0]:.1f})", file=sys.stderr)
            done[name] = run_one(configs[PEER if name == AGAIN else name], args, seed=i)
        rounds.append(done)
        table = compare(rounds, done)
        paired.write(args.name, {**paired.provenance(args.model), "threads": args.threads, "configs": configs, "rounds": rounds,
                                 "table": table})  # after each round, so that a run that is cut short leaves something
    names = [*configs, AGAIN]
    print(markdown({what: {name: row[name] for name in names} for what, row in table.items()}, names))
    for name in names:
        print(f"{name}: {statistics.median(r[name]['memory_kib'] for r in rounds) / 1024:.0f} MiB resident, "
              f"KiB an idle connection: {[r[name]['idle_kib'] for r in rounds]}")


if __name__ == "__main__":
    main(sys.argv[1:])
