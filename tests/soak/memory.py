"""What a server holds, looked at while it works."""

import pathlib
import statistics

import time


class Memory:
    """Resident memory over time. It may grow while caches fill and finished generations are kept: `KEPT_BYTES` for each of
    those, up to as many as are kept. Beyond that the last quarter must be as the second is."""

    KEPT_BYTES = 32 * 1024  # an answer of 120 tokens with log-probabilities, its prompt, its events
    KEPT_MAX = 2000
    SLACK_BYTES = 24 << 20  # of the allocator

    def __init__(self, server, seconds):
        self.server, self.begun, self.seconds = server, time.monotonic(), seconds
        self.seen = []  # (second, resident bytes, ended generations)
        self.held_before = server.held()

    def look(self):
        status = pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text()
        resident = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))
        metrics = self.server.get("/metrics").body.decode()
        ended = sum(float(line.split()[-1]) for line in metrics.splitlines() if line.startswith("fermata_generations_ended_total{"))
        self.seen.append((time.monotonic() - self.begun, resident, ended))

    def _of(self, quarter):
        begin, end = (quarter - 1) * self.seconds / 4, quarter * self.seconds / 4
        rows = [row for row in self.seen if begin <= row[0] <= end] or self.seen
        return statistics.median(row[1] for row in rows), statistics.median(min(row[2], self.KEPT_MAX) for row in rows)

    def _growth(self):
        (then, n_then), (now, n_now) = self._of(2), self._of(4)
        return now - then, (n_now - n_then) * self.KEPT_BYTES + self.SLACK_BYTES

    def complaints(self, planted=0):
        grown, allowed = self._growth()
        found = []
        if grown + planted > allowed:
            found.append(f"memory grew by {(grown + planted) / 1e6:.1f} MB between the second and the last quarter; {allowed / 1e6:.1f} MB are explained")
        files, threads = self.server.held()
        if files > self.held_before[0] + 2 or threads > self.held_before[1]:
            found.append(f"(files, threads) were {self.held_before}, are {(files, threads)}")
        return found

    def line(self):
        return f"{self.seen[-1][1] / 1e6:.0f} MB resident" if self.seen else "not looked yet"

    def verdict(self):
        grown, allowed = self._growth()
        return f"second to last quarter {grown / 1e6:+.1f} MB, {allowed / 1e6:.1f} MB explained"
