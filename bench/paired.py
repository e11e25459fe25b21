"""What every comparison here shares: ratios with intervals, and which machine, commit and model they are from."""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import platform
import random
import statistics
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
PEER = "peer default"
AGAIN = "peer default, again"  # the A/A row: what a ratio of nothing looks like


def median_and_interval(ratios):
    """(median, low, high). From six ratios on 95 % of the medians of samples drawn from them lie between low and high (bootstrap);
    of fewer it would promise too much, and low and high are the smallest and the largest."""
    if len(ratios) < 6:
        return statistics.median(ratios), min(ratios), max(ratios)
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(2000))
    return statistics.median(ratios), medians[50], medians[1949]


def parser(text, file, name):
    """The arguments that every comparison has; the program's text begins with what it does."""
    arguments = argparse.ArgumentParser(description=text.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=6)
    arguments.add_argument("--only", help=f"configurations of bench/{file}, by comma; the peer's default always runs")
    arguments.add_argument("--model", default=os.environ.get("FERMATA_TEST_MODEL"))
    arguments.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    arguments.add_argument("--name", default=name, help="of the result in build/bench/")
    return arguments


def configurations(file, only):
    """{name: configuration} of bench/FILE; `only`: names by comma, and the peer's default in any case."""
    configs = json.loads((HERE / file).read_text())
    return {name: config for name, config in configs.items() if not only or name in [PEER, *only.split(",")]}


def by_turns(names, i_round):
    """The configurations of a round in order, the peer's default twice; odd rounds run backwards."""
    order = [*names, AGAIN]
    return order if i_round % 2 == 0 else order[::-1]


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False).stdout.strip()


def machine():
    fields = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    kept = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "asimd", "sve", "i8mm", "bf16")
    flags = [f for f in fields.get("flags", fields.get("Features", "")).split() if f in kept]
    return {"cpu": fields.get("model name", platform.machine()), "cores": os.cpu_count(), "flags": flags, "kernel": platform.release()}


def provenance(model):
    return {
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": output_of("git", "rev-parse", "HEAD"),
        "changed": bool(output_of("git", "status", "--porcelain")),
        "machine": machine(),
        "model": {"file": pathlib.Path(model).name, "sha256": hashlib.sha256(pathlib.Path(model).read_bytes()).hexdigest()},
    }


def write(name, result):
    """To build/bench/NAME.json."""
    folder = ROOT / "build/bench"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
