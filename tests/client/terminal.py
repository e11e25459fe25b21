"""A program in a pseudo-terminal, and what its user would see."""

import codecs
import errno
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
import unicodedata

from server import WAIT_S

_ESCAPE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")


def _width(character):
    if unicodedata.combining(character) or character in "\u200d\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class Picture:
    """The rows of a terminal without end: what scrolled away is still there. Knows what fermata writes, and nothing else."""

    def __init__(self, n_columns):
        self.n_columns, self.rows, self.row, self.column = n_columns, [[]], 0, 0
        self._decoder, self._rest = codecs.getincrementaldecoder("utf-8")(), ""

    def take(self, data):
        text = self._rest + self._decoder.decode(data)
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                found = _ESCAPE.match(text, at)
                if not found:
                    if len(text) - at > 16:
                        raise AssertionError(f"an escape sequence nobody knows: {text[at:at + 16]!r}")
                    break
                self._obey(found.group(1), found.group(2))
                at = found.end()
            else:
                self._put(text[at])
                at += 1
        self._rest = text[at:]

    def _obey(self, parameters, what):
        n = int(parameters) if parameters.isdigit() else 1
        if what == "A":
            self.row = max(0, self.row - n)
        elif what == "C":
            self.column = min(self.n_columns - 1, self.column + n)
        elif what == "J" and parameters == "":
            del self.rows[self.row + 1:]
            del self.rows[self.row][self.column:]
        elif what == "K":
            del self.rows[self.row][self.column:]
        elif what == "J" and parameters == "2":
            self.rows = [[] for _ in self.rows]
        elif what == "H":
            self.row = self.column = 0
        else:
            assert what == "m" or (parameters, what) in (("?2004", "h"), ("?2004", "l")), f"unknown: {parameters}{what}"

    def _put(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.row += 1
        elif character == "\b":
            self.column = max(0, self.column - 1)
        else:
            assert character >= " ", f"a control character: {character!r}"
            width = _width(character)
            if width == 0:
                self.rows[self.row][self.column - 1] += character
                return
            if self.column + width > self.n_columns:
                self.row, self.column = self.row + 1, 0
            self._reach()
            line = self.rows[self.row]
            line.extend(" " * (self.column + width - len(line)))
            line[self.column:self.column + width] = [character] + [""] * (width - 1)
            self.column += width
        self._reach()

    def _reach(self):
        while len(self.rows) <= self.row:
            self.rows.append([])

    @property
    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.rows)

    def has(self, text):
        """Faster: whether a row has it."""
        return any(text in "".join(row) for row in reversed(self.rows))

    @property
    def last(self):
        """The row of the cursor."""
        return "".join(self.rows[self.row]).rstrip()


class Terminal:
    def __init__(self, *words, env=None, n_rows=24, n_columns=80):
        self._ours, self._theirs = pty.openpty()
        self._resize(n_rows, n_columns)
        self.before = termios.tcgetattr(self._theirs)
        self.raw, self.picture = bytearray(), Picture(n_columns)

        def take_terminal():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen([str(word) for word in words], stdin=self._theirs, stdout=self._theirs, stderr=self._theirs,
                                        env=env, start_new_session=True, preexec_fn=take_terminal)

    def _resize(self, n_rows, n_columns):
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", n_rows, n_columns, 0, 0))

    def resize(self, n_rows, n_columns):
        """What comes from now on is looked at by itself: each terminal wraps what was there in its own way."""
        self.picture = Picture(n_columns)
        self._resize(n_rows, n_columns)

    def write(self, data):
        data = data.encode() if isinstance(data, str) else data
        while data:
            self._read(0)  # else both may wait for each other
            data = data[os.write(self._ours, data[:1024]):]

    def line(self, text):
        self.write(text + "\r")

    def _read(self, wait_s):
        if not select.select([self._ours], [], [], wait_s)[0]:
            return False
        try:
            data = os.read(self._ours, 65536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return False
        self.raw += data
        self.picture.take(data)
        return bool(data)

    def until(self, true, what=None):
        """Reads until true() is, or a text is seen, or stands in the cursor's row; its value."""
        wanted = (lambda: self.picture.has(true)) if isinstance(true, str) else true
        end = time.monotonic() + WAIT_S
        while not (value := wanted()):
            is_gone = self.process.poll() is not None and not self._read(0)
            assert not is_gone or wanted(), f"it ended before {what or true}; there is:\n{self.picture.text[-3000:]}"
            assert time.monotonic() < end, f"it did not come to {what or true}; there is:\n{self.picture.text[-3000:]}"
            self._read(0.02)
        return value

    def until_prompt(self):
        return self.until(lambda: self.picture.last == ">", "an empty prompt")

    def end(self):
        """The exit status, when it has ended by itself."""
        self.until(lambda: self.process.poll() is not None, "its end")
        while self._read(0):
            pass
        return self.process.returncode

    @property
    def attributes(self):
        return termios.tcgetattr(self._theirs)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WAIT_S)
        os.close(self._ours)
        os.close(self._theirs)
