#!/usr/bin/env python3
"""Mixed load with random interrupts: every answer equals its solo run, memory stays flat (README.md)."""

import argparse
import collections
import pathlib
import random
import statistics
import sys
import threading
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "client"))

from requests_drawn import draw_requests  # noqa: E402
from clients import ACTS, Wrong  # noqa: E402
from memory import Memory  # noqa: E402
from server import ROOT, Server, tiny_model, until  # noqa: E402

LEAST = 1  # times that each act must have come to its point, for every 60 s


def start(arguments):
    path = {"tiny": tiny_model, "default": lambda: str(ROOT / ".deps/model/default.gguf")}.get(arguments.model, lambda: arguments.model)()
    return Server("-m", path, "-c", str(arguments.context), "--model-name", "soak",
                  "--keep-alive", "0.5").ready()


def solo_answers(arguments, drawn):
    """Of a server that has nothing else to do."""
    server = start(arguments)
    try:
        return [server.post(one.path, one.body).ok()["choices"][0] for one in drawn]
    finally:
        server.stop()


class Soak:
    def __init__(self, arguments, server, drawn, whole):
        self.arguments, self.server, self.drawn, self.whole = arguments, server, drawn, whole
        self.counts, self.failures = collections.Counter(), []
        self.lock, self.end = threading.Lock(), time.monotonic() + arguments.seconds

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def work(self, seed):
        chance = random.Random(seed)
        while time.monotonic() < self.end and not self.failures:
            i = chance.randrange(len(self.drawn))
            act = chance.choice(ACTS)
            moment = chance.getrandbits(48)
            try:
                act(self, self.drawn[i], self.whole[i], random.Random(moment))
            except Exception as error:  # noqa: BLE001: of any kind, with what replays it
                why = str(error) if isinstance(error, Wrong) else traceback.format_exc()
                with self.lock:
                    self.failures.append(f"{act.__name__} of request {i}, moment {moment}: {why}")

    def run(self):
        memory = Memory(self.server, self.arguments.seconds)
        workers = [threading.Thread(target=self.work, args=(f"{self.arguments.seed}/{n}",)) for n in range(self.arguments.clients)]
        for worker in workers:
            worker.start()
        while any(worker.is_alive() for worker in workers):
            memory.look()
            self.tell(memory)
            time.sleep(min(1.0, self.arguments.seconds / 100))
        for worker in workers:
            worker.join()
        until(lambda: self.server.stats()["alive"] == 0, "nothing is alive at the end")
        self.failures += memory.complaints()
        expected = {act.__name__ for act in ACTS}
        rare = [name for name in sorted(expected) if self.counts[name] < max(1, LEAST * self.arguments.seconds // 60)]
        if rare and not self.failures:
            self.failures.append(f"too rare to say anything: {', '.join(rare)}")
        return memory

    def tell(self, memory):
        if sys.stderr.isatty():
            left = max(0, self.end - time.monotonic())
            print(f"\r\x1b[K{sum(self.counts.values())} things done, {memory.line()}, {left:.0f} s left", end="", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--requests", type=int, default=24, help="different ones, each asked for many times")
    parser.add_argument("--context", type=int, default=6144, help="cells of the pool: so few that there is pressure")
    parser.add_argument("--model", default="default", help="default, tiny, or a GGUF file")
    parser.add_argument("--seed", default=str(int(time.time())))
    parser.add_argument("--plant", choices=["answer", "memory"], help="a lie that must be found")
    arguments = parser.parse_args()

    print(f"soak: seed {arguments.seed}, {arguments.clients} clients, {arguments.seconds:.0f} s", flush=True)
    drawn = draw_requests(random.Random(arguments.seed), arguments.requests)
    whole = solo_answers(arguments, drawn)
    if arguments.plant == "answer":
        whole[0] = {**whole[0], "text": "planted"} if "text" in whole[0] else {**whole[0], "message": {"content": "planted"}}
    server = start(arguments)
    soak = Soak(arguments, server, drawn, whole)
    try:
        memory = soak.run()
        if arguments.plant == "memory":
            soak.failures += memory.complaints(planted=1 << 30)
    finally:
        ended = server.stop()
    print("\n" + "\n".join(f"  {name:<28} {n}" for name, n in sorted(soak.counts.items())))
    print(f"  memory: {memory.line()}; {memory.verdict()}")
    if ended != 0:
        soak.failures.append(f"the server ended with {ended}")
    for failure in soak.failures[:5]:
        print(f"FAILED (seed {arguments.seed}): {failure}")
    n = sum(soak.counts.values())
    print(f"soak: {'FAILED' if soak.failures else 'passed'}, {n} answers looked at, mean of "
          f"{statistics.mean(len(one) for one in map(str, whole)):.0f} bytes")
    return 1 if soak.failures else 0


if __name__ == "__main__":
    sys.exit(main())
