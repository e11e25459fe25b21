#!/usr/bin/env python3
"""fermata against llama.cpp from the same sources: same file, same threads, by turns. usage: compare.py [--help]

A round runs every configuration of bench/peers.json once, then the peer's default a second time (the A/A row: what a
ratio of nothing looks like here); odd rounds run backwards. What is compared in a round is compared as a ratio; the median
of the rounds' ratios is given with a 95 % interval (bootstrap over rounds; range if there are fewer than six). The peer decodes random tokens and samples
nothing; fermata's figures include its sampler, journal and events.

Writes build/bench/NAME.json (commit, machine, model, every figure) and a Markdown table to standard output.
Needs the environment that tools/bench sets.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import time

import paired
from paired import AGAIN, PEER

DECODE = [(streams, prompt) for prompt in (100, 900) for streams in (1, 4, 8)]
PREFILL = (30, 500, 3000)
N_DECODED = 64


def cell(part, streams, prompt):
    return f"{part} {streams} x {prompt}" if part == "decode" else f"prefill {prompt}"


CELLS = [cell("decode", *pair) for pair in DECODE] + [cell("prefill", 1, n) for n in PREFILL]


def run(command, seconds):
    """Standard output of the command; None if it failed or took too long. No child outlives it."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0)
    try:
        out, errors = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, _ = child.communicate()
        print(f"  stopped after {seconds} s: {command[0]}", file=sys.stderr)
        return out  # the peer's finished lines still count
    if child.returncode != 0:
        print(f"  failed: {' '.join(command)}\n{errors[-600:]}", file=sys.stderr)
        return None
    return out


def peer_command(options, model, threads, prompts, n_decoded, streams):
    return [os.environ["FERMATA_PEER_BATCHED_BENCH"], "-m", model, "-t", str(threads), "-c", "8192", "--output-format", "jsonl",
            "-npp", ",".join(map(str, prompts)), "-ntg", str(n_decoded), "-npl", ",".join(map(str, streams)), *options]


def run_peer(options, args):
    """{cell: tok/s}"""
    speeds = {}
    # Beside endless loops its threads spin in each other's way; it gets less to do, so that it ends.
    decode = ((100,), 8) if args.busy else ((100, 900), N_DECODED)
    prefill = PREFILL[:2] if args.busy else PREFILL
    for part, prompts, n_decoded, streams in (("decode", *decode, (1, 4, 8)), ("prefill", prefill, 1, (1,))):
        out = run(peer_command(options, args.model, args.threads, prompts, n_decoded, streams), args.seconds) or ""
        for line in out.splitlines():
            if line.startswith("{"):
                row = json.loads(line)
                speeds[cell(part, row["pl"], row["pp"])] = row["speed_tg" if part == "decode" else "speed_pp"]
    return speeds


def run_fermata(options, args):
    """{cell: tok/s}, and what the engine said of itself."""
    out = run([os.environ["FERMATA_BUILD"] + "/src/cli/fermata", "bench", "core", "--only", "decode,prefill", "--rounds", "1",
               "--no-aged", "--prompt-max", "500" if args.busy else "3000", "-m", args.model, "-t", str(args.threads), *options], args.seconds)
    if not out:
        return {}
    result = json.loads(out)
    return {cell(r["part"], int(r["streams"]), int(r["prompt"])): r["tok_s"][0] for r in result["rows"]}


def run_one(config, args):
    return (run_fermata if config["kind"] == "fermata" else run_peer)(config["options"], args)


class BusyNeighbours:
    """Endless loops beside what is measured. They end with it, and by themselves after `seconds`."""

    def __init__(self, n, seconds):
        loop = f"import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass"
        self.children = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(n)]

    def end(self):
        for child in self.children:
            child.kill()
            child.wait()


def measure(configs, args):
    """[{config: {cell: tok/s}}], one for each round."""
    rounds = []
    for i in range(args.rounds):
        done = {}
        for name in paired.by_turns(configs, i):
            print(f"round {i + 1} of {args.rounds}, {name} (load {os.getloadavg()[0]:.1f})", file=sys.stderr)
            neighbours = BusyNeighbours(args.busy, args.seconds * 2)
            try:
                done[name] = run_one(configs[PEER if name == AGAIN else name], args)
            finally:
                neighbours.end()
        rounds.append({"load": os.getloadavg()[0], "speeds": done})
    return rounds


def compare(rounds, names):
    """{config: {cell: {tok_s, ratio, low, high}}} against the peer's default."""
    table = {}
    for name in names:
        table[name] = {}
        for key in CELLS:
            pairs = [(r["speeds"][name].get(key), r["speeds"][PEER].get(key)) for r in rounds]
            pairs = [(ours, theirs) for ours, theirs in pairs if ours and theirs]
            if pairs:
                ratio, low, high = paired.median_and_interval([ours / theirs for ours, theirs in pairs])
                table[name][key] = {"tok_s": statistics.median(ours for ours, _ in pairs), "ratio": ratio, "low": low,
                                    "high": high, "rounds": len(pairs)}
    return table


def markdown(table):
    names = list(table)
    lines = ["| tok/s; ratio to the peer's default (interval) | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for key in CELLS:
        shown = []
        for name in names:
            r = table[name].get(key)
            shown.append("" if r is None else f"{r['tok_s']:.0f}" if name == PEER else
                         f"{r['tok_s']:.0f}; **{r['ratio']:.2f}** ({r['low']:.2f}-{r['high']:.2f})")
        lines.append(f"| {key} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def parse(argv):
    parser = paired.parser(__doc__, "peers.json", "compare")
    parser.add_argument("--busy", type=int, default=0, help="endless loops beside what is measured")
    parser.add_argument("--seconds", type=int, default=240, help="most time for one program")
    return parser.parse_args(argv)


def main(argv):
    args = parse(argv)
    configs = paired.configurations("peers.json", args.only)
    began = time.time()
    rounds = measure(configs, args)
    table = compare(rounds, [*configs, AGAIN])
    paired.write(args.name, {
        **paired.provenance(args.model), "threads": args.threads, "busy_neighbours": args.busy,
        "took_s": round(time.time() - began), "configs": configs, "rounds": rounds, "table": table,
    })
    print(markdown(table))


if __name__ == "__main__":
    main(sys.argv[1:])
