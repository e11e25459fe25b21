"""fermata chat in a pseudo-terminal: pauses, the keys, what happens to the talk, and how it leaves the terminal."""

import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import time

import pytest

from server import BINARY, WAIT_S, tiny_model, until
from terminal import Terminal

# Words that any terminal shows alike, as many as are asked for.
WORDS = {"grammar": "root ::= [a-z ]+", "ignore_eos": True, "temperature": 1.0, "seed": 5}
LONG = {**WORDS, "max_tokens": 3000}
ENDLESS = {**WORDS, "max_tokens": 8000}  # of what is cut
SHORT = {**WORDS, "max_tokens": 30}
ESC, ENTER, UP = "\x1b", "\r", "\x1b[A"


def flags_of(fields):
    return [word for name, value in fields.items() for word in ("--field", f"{name}={json.dumps(value)}")]


def variables(home, **more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FERMATA_", "XDG_"))}
    return kept | {"HOME": str(home), "TERM": "xterm-256color", **more}


@pytest.fixture
def chat(tmp_path):
    """chat(server or None, fields, *flags): a talk in a terminal, at its prompt."""
    made = []

    def start(server, fields, *flags, n_columns=80, ready=True):
        where = ["--url", server.url] if server else []
        made.append(Terminal(BINARY, "chat", *where, *flags_of(fields), *flags, env=variables(tmp_path), n_columns=n_columns))
        if ready:
            made[-1].until_prompt()
        return made[-1]

    yield start
    for one in made:
        one.close()


def saved(talk, tmp_path):
    """The dialogue, by /save."""
    path = tmp_path / f"saved-{time.monotonic_ns()}.json"
    talk.line(f"/save {path}")
    talk.until(path.exists)
    return until(lambda: path.read_text().endswith("\n") and json.loads(path.read_text())["messages"], "it is written")


def whole_answer(server, fields, *messages):
    asked = [{"role": role, "content": content} for role, content in zip(("user", "assistant") * 9, messages)]
    return server.post("/v1/chat/completions", {**fields, "messages": asked}).ok()["choices"][0]["message"]["content"]


def shown(talk):
    return talk.picture.text.replace("\n", "")


def ended(talk, n_times=1):
    """Answers came to their token limit, and the prompt is back."""
    talk.until(lambda: shown(talk).count("[its token limit]") >= n_times, f"{n_times} whole answers")
    talk.until_prompt()


def under_way(talk):
    talk.until(lambda: len(talk.picture.rows) > 8, "some rows of an answer")


def paused(talk):
    talk.until("Enter: go on")
    return talk


def test_escape_pauses_and_enter_goes_on_exactly(tiny, chat, tmp_path):
    talk = chat(tiny, LONG)
    talk.line("a story")
    under_way(talk)
    talk.write(ESC)
    paused(talk)
    assert "paused at token" in talk.picture.text and " ms)" in talk.picture.text
    [one] = tiny.get("/v1/generations?state=paused").ok()["data"]
    assert one["pause"]["reason"]["class"] == "user" and one["session"].startswith("chat-")
    talk.write(ENTER)
    talk.until_prompt()
    answer = whole_answer(tiny, LONG, "a story")
    assert saved(talk, tmp_path) == [{"role": "user", "content": "a story"}, {"role": "assistant", "content": answer}]
    rows = [answer[at:at + 80].rstrip() for at in range(0, len(answer), 80)]
    assert "\n".join(["> a story", *rows]) in talk.picture.text, "on the terminal no trace of the pause is left"


def test_an_arrow_in_two_writes_is_no_escape(tiny, chat):
    talk = chat(tiny, ENDLESS)
    talk.line("a story")
    under_way(talk)
    for _ in range(50):  # until this process was not held up between the writes
        begun = time.monotonic()
        talk.write(ESC)
        talk.write("[A")
        if time.monotonic() - begun < 0.03:
            break
        talk.write(ENTER)
    else:
        pytest.skip("this machine is too busy to write twice in 30 ms")
    n = len(talk.picture.rows)
    talk.until(lambda: len(talk.picture.rows) > n + 8 or talk.picture.last == ">")
    if "paused" not in talk.picture.text:
        talk.write("\x03")
        talk.until_prompt()
    assert "paused" not in talk.picture.text


def test_a_pause_of_somebody_else_is_shown_and_so_is_its_end(tiny, chat):
    talk = chat(tiny, {**WORDS, "max_tokens": 200, "fermata": {"pause_at": 20}}, "--session", "desk")
    talk.line("a story")
    paused(talk)
    assert "paused at token" in talk.picture.text
    [one] = tiny.get("/v1/generations?session=desk&state=paused").ok()["data"]
    tiny.post(f"/v1/generations/{one['id']}/resume").ok(202)
    talk.until_prompt()
    assert "paused" not in talk.picture.text and whole_answer(tiny, {**WORDS, "max_tokens": 200}, "a story")[:50] in shown(talk)


def test_discard_brings_the_question_back(tiny, chat, tmp_path):
    talk = chat(tiny, {**SHORT, "fermata": {"pause_at": 5}})
    talk.line("first")
    paused(talk).write("d")
    talk.until(lambda: talk.picture.last == "> first")
    assert "[discarded]" in talk.picture.text
    until(lambda: tiny.stats()["alive"] == 0, "the generation is gone")
    talk.write("\x15other\r")
    paused(talk).write("c")
    talk.until_prompt()
    first, second = saved(talk, tmp_path)
    assert first == {"role": "user", "content": "other"} and second["role"] == "assistant"


def test_discard_spares_what_was_typed_meanwhile(tiny, chat):
    talk = chat(tiny, {**SHORT, "fermata": {"pause_at": 5}})
    talk.line("first")
    talk.write("my draft")
    paused(talk).write("d")
    talk.until(lambda: talk.picture.last == "> my draft")
    talk.write("\x15" + UP)
    talk.until(lambda: talk.picture.last == "> first")


def test_a_question_that_begins_with_a_slash_comes_back_as_one(tiny, chat, tmp_path):
    talk = chat(tiny, {**SHORT, "fermata": {"pause_at": 5}})
    talk.line("//new idea")
    paused(talk).write("d")
    talk.until(lambda: talk.picture.last == "> //new idea")
    talk.write(ENTER)
    paused(talk).write("c")
    talk.until_prompt()
    assert saved(talk, tmp_path)[0] == {"role": "user", "content": "/new idea"}


def test_a_sentence_that_was_not_put_in_is_not_kept_for_another_answer(tiny, chat):
    talk = chat(tiny, {**SHORT, "fermata": {"pause_at": 5}})
    talk.line("first")
    paused(talk).write("ileftover")
    talk.until(lambda: talk.picture.last == "go on with: leftover")
    talk.write("\x03")
    talk.until_prompt()
    talk.line("second")
    paused(talk).write("i")
    talk.until(lambda: talk.picture.last == "go on with:")


def test_a_paste_that_is_too_long_is_said_to_be(tiny, chat):
    talk = chat(tiny, SHORT)
    talk.write("\x1b[200~" + "x" * (1 << 20) + "yz\x1b[201~")
    talk.until("that is too long: nothing was put in")
    talk.until_prompt()


def test_cancel_keeps_what_is_there(tiny, chat, tmp_path):
    talk = chat(tiny, {**SHORT, "fermata": {"pause_at": 12}})
    talk.line("a story")
    paused(talk).write("c")
    talk.until_prompt()
    assert "[cut]" in talk.picture.text
    kept = saved(talk, tmp_path)[1]["content"]
    assert kept and whole_answer(tiny, SHORT, "a story").startswith(kept)


def test_a_sentence_of_the_user_goes_into_the_answer(tiny, chat, tmp_path):
    talk = chat(tiny, {**SHORT, "fermata": {"pause_at": 8}})
    talk.line("a story")
    paused(talk).write("i")
    talk.until(lambda: talk.picture.last == "go on with:")
    talk.write(ESC)
    paused(talk).write("i")
    talk.write("and then BANG\r")
    talk.until(lambda: talk.picture.has("BANG") and talk.picture.has("Enter: go on"), "the same pause_at of the rest")
    talk.write(ENTER)
    talk.until_prompt()
    answer = saved(talk, tmp_path)[1]["content"]
    begun = answer[:answer.index("BANG") + 4]
    assert begun.endswith(" and then BANG") and begun in shown(talk)
    assert answer == begun + whole_answer(tiny, SHORT, "a story", begun)


def test_a_paste_of_three_lines_is_one_message(tiny, chat, tmp_path):
    talk = chat(tiny, SHORT)
    talk.write("\x1b[200~one\rtwo\x1b[A\r\nthree\x1b[201~")
    talk.until("  three")
    assert tiny.stats()["alive"] == 0
    talk.write(ENTER)
    ended(talk, 1)
    assert saved(talk, tmp_path)[0]["content"] == "one\ntwo\x1b[A\nthree"


def test_wide_characters_and_backspace(tiny, chat, tmp_path):
    talk = chat(tiny, SHORT, n_columns=20)
    for byte in "日本語のテキストです x".encode():  # as it comes over a slow line
        talk.write(bytes([byte]))
    talk.until(lambda: talk.picture.last == "  す x")
    assert "> 日本語のテキストで" in talk.picture.text
    talk.write("\x7f\x7f\x7f\x7f")
    talk.until(lambda: talk.picture.last == "> 日本語のテキスト")
    talk.write(ENTER)
    ended(talk)
    assert saved(talk, tmp_path)[0]["content"] == "日本語のテキスト"


def test_resize_while_it_writes_and_while_it_is_paused(tiny, chat, tmp_path):
    talk = chat(tiny, LONG)
    talk.line("a story")
    under_way(talk)
    talk.resize(30, 50)
    talk.until(lambda: len(talk.picture.rows) > 3)
    talk.write(ESC)
    paused(talk)
    talk.resize(20, 30)
    talk.until(lambda: shown(talk).endswith("keep the text"))
    assert shown(talk).count("paused at token") == 1
    talk.write(ENTER)
    talk.until_prompt()
    assert saved(talk, tmp_path)[1]["content"] == whole_answer(tiny, LONG, "a story")


def test_escape_while_the_prompt_is_read(tiny, chat, tmp_path):
    fields = {**WORDS, "max_tokens": 300}
    talk = chat(tiny, fields)
    n_rows = tiny.stats()["prefill_rows"]
    question = "word " * 3000
    talk.write(f"\x1b[200~{question}\x1b[201~\r")
    talk.until(lambda: tiny.stats()["prefill_rows"] > n_rows, "the prompt is being read")
    talk.write(ESC)
    paused(talk).write(ENTER)
    ended(talk)
    assert saved(talk, tmp_path)[1]["content"] == whole_answer(tiny, fields, question)


# --- CASES I1

def test_ctrl_c_at_the_prompt_clears_the_line_and_twice_leaves(tiny, chat):
    talk = chat(tiny, SHORT)
    talk.write("half a question")
    talk.until(lambda: talk.picture.last == "> half a question")
    talk.write("\x03")
    talk.until_prompt()
    talk.write("\x03\x03")
    assert talk.end() == 130
    assert talk.attributes == talk.before


def test_ctrl_c_stops_the_answer_and_not_the_talk(tiny, chat, tmp_path):
    talk = chat(tiny, ENDLESS)
    talk.line("a story")
    under_way(talk)
    talk.write("\x03")
    talk.until("[cut]")
    talk.until_prompt()
    until(lambda: tiny.stats()["alive"] == 0, "the generation is gone")
    question, answer = saved(talk, tmp_path)
    assert question["content"] == "a story" and len(answer["content"]) > 100
    whole = whole_answer(tiny, LONG, "a story")
    n = min(len(whole), len(answer["content"]))
    assert whole[:n] == answer["content"][:n]
    assert talk.process.poll() is None


def test_ctrl_c_right_after_enter(tiny, chat):
    talk = chat(tiny, ENDLESS)
    talk.write("a story\r\x03")
    talk.until("[cut]")
    talk.until_prompt()
    until(lambda: tiny.stats()["alive"] == 0, "the generation is gone")
    assert talk.process.poll() is None


def test_ctrl_c_while_the_prompt_is_read(tiny, chat):
    talk = chat(tiny, SHORT)
    n_rows = tiny.stats()["prefill_rows"]
    talk.write("\x1b[200~" + "word " * 12000 + "\x1b[201~\r")
    talk.until(lambda: tiny.stats()["prefill_rows"] > n_rows, "the prompt is being read")
    talk.write("\x03")
    talk.until("[cut]")
    until(lambda: tiny.stats()["alive"] == 0, "the generation is gone")
    assert talk.process.poll() is None


def test_ctrl_c_while_paused_and_twice_at_once(tiny, chat):
    talk = chat(tiny, {**ENDLESS, "fermata": {"pause_at": 9}})
    talk.line("a story")
    paused(talk).write("\x03")
    talk.until("[cut]")
    talk.until_prompt()
    until(lambda: tiny.stats()["alive"] == 0, "the generation is gone")
    talk.line("another")
    paused(talk).write("\x03\x03")
    assert talk.end() == 130 and talk.attributes == talk.before


def test_a_server_that_dies_leaves_the_talk(start, chat, tmp_path):
    server = start("-m", tiny_model(), "-c", "16384").ready()
    talk = chat(server, {**LONG, "max_tokens": 16000})
    talk.line("a story")
    under_way(talk)
    server.stop(signal.SIGKILL)
    talk.until("broke off")
    talk.until_prompt()
    assert len(saved(talk, tmp_path)) == 2
    talk.line("are you there?")
    talk.until("no server answers")
    talk.until(lambda: talk.picture.last == "> are you there?", "the question to be sent again")
    talk.write("\x03")
    talk.until_prompt()
    talk.write("\x04")
    assert talk.end() == 0 and talk.attributes == talk.before


# --- how it leaves

@pytest.mark.parametrize("how, code", [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130),
                                       (signal.SIGQUIT, -signal.SIGQUIT), (signal.SIGSEGV, -signal.SIGSEGV),
                                       (signal.SIGABRT, -signal.SIGABRT)])
def test_a_signal_gives_the_terminal_back(tiny, chat, how, code):
    talk = chat(tiny, ENDLESS)
    talk.line("a story")
    under_way(talk)
    assert talk.attributes != talk.before
    talk.process.send_signal(how)
    assert talk.end() == code
    assert talk.attributes == talk.before and talk.raw.rfind(b"\x1b[?2004l") > talk.raw.rfind(b"\x1b[?2004h")


def test_ctrl_d_leaves_with_0(tiny, chat):
    talk = chat(tiny, SHORT)
    talk.write("\x04")
    assert talk.end() == 0 and talk.attributes == talk.before


def test_ctrl_z_pauses_suspends_and_comes_back(tiny, tmp_path):
    flags = " ".join(f"'{word}'" for word in ["--url", tiny.url, *flags_of(LONG)])
    script = f"set -m; {BINARY} chat {flags}; stty -a; echo STOPPED; read line; fg; echo END $?"
    talk = Terminal(shutil.which("bash"), "-c", script, env=variables(tmp_path))
    try:
        talk.until_prompt()
        talk.line("a story")
        under_way(talk)
        talk.write("\x1a")
        talk.until("STOPPED")
        assert " icanon" in talk.picture.text and " echo " in talk.picture.text
        assert len(tiny.get("/v1/generations?state=paused").ok()["data"]) == 1
        n = talk.picture.text.count("Enter: go on")
        talk.write("\n")
        talk.until(lambda: talk.picture.text.count("Enter: go on") > n)
        talk.write(ENTER)
        talk.until_prompt()
        talk.write("\x04")
        talk.until("END 0")
    finally:
        talk.close()


# --- what is typed

def test_history_is_kept_for_its_owner_alone(tiny, chat, tmp_path):
    path = tmp_path / ".local/state/fermata/history"
    talk = chat(tiny, SHORT)
    talk.line("first question")
    ended(talk)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    talk.write("draft" + UP)
    talk.until(lambda: talk.picture.last == "> first question")
    talk.write("\x1b[B")
    talk.until(lambda: talk.picture.last == "> draft")
    again = chat(tiny, SHORT)
    again.write(UP)
    again.until(lambda: again.picture.last == "> first question")
    before = path.read_bytes()
    without = chat(tiny, SHORT, "--no-history")
    without.line("/nothing")
    without.until("/help lists them")
    assert path.read_bytes() == before
    path.write_bytes(b"rubbish")
    assert "begins anew" in chat(tiny, SHORT).picture.text


def test_commands(tiny, chat, tmp_path):
    talk = chat(tiny, SHORT, "--system", "Be brief.")
    talk.line("/hlep")
    talk.until("did you mean '/help'")
    talk.until(lambda: talk.picture.last == "> /hlep", "the line to be mended")
    talk.write("\x15/help\r")
    talk.until("Alt-Enter")
    assert tiny.get("/v1/generations?state=running").ok()["data"] == [] and tiny.stats()["alive"] == 0
    talk.line("//etc")
    ended(talk)
    first = saved(talk, tmp_path)
    assert [message["content"] for message in first[:2]] == ["Be brief.", "/etc"]
    path = tmp_path / "there.json"
    path.write_text("mine")
    talk.line(f"/save {path}")
    talk.until("is there already")
    assert path.read_text() == "mine"
    talk.line("/retry")
    ended(talk, 2)
    assert saved(talk, tmp_path) == first, "the same seed"
    talk.line("/new")
    talk.line("/system Be long.")
    talk.until("system: Be long.")
    assert saved(talk, tmp_path) == [{"role": "system", "content": "Be long."}]
    talk.line("/quit")
    assert talk.end() == 0


def test_what_a_model_says_does_nothing_to_the_terminal(tiny, chat):
    talk = chat(tiny, {"grammar": 'root ::= "\x1b[31mred\u009b1m\x07\r\ttab"', "max_tokens": 200, "seed": 1})
    n = len(talk.raw)
    talk.line("say it")
    talk.until("tab")
    said = bytes(talk.raw[n:])
    assert b"\x1b[31m" not in said and "\u009b".encode() not in said and b"\x07" not in said
    assert " [31mred 1m" in talk.picture.text


# --- without a terminal

def piped(text, *flags, env=None, home="/nonexistent"):
    return subprocess.run([BINARY, "chat", *flags], input=text, capture_output=True, timeout=WAIT_S, env=env or variables(home))


def test_lines_without_a_terminal(tiny, tmp_path):
    path = tmp_path / "talk.json"
    lines = f"/system Be brief.\none\n\n//two\n/save {path}".encode()  # no end of line at the end
    ran = piped(lines, "--url", tiny.url, *flags_of(SHORT), home=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert b"\x1b" not in ran.stdout + ran.stderr
    messages = json.loads(path.read_text())["messages"]
    assert [m["content"] for m in messages if m["role"] != "assistant"] == ["Be brief.", "one", "/two"]
    said = [m["content"] for m in messages if m["role"] == "assistant"]
    assert ran.stdout.decode() == "".join(text + "\n" for text in said)
    assert not (tmp_path / ".local").exists(), "what comes from a program is no history"


def test_errors_without_a_terminal_are_told_by_the_code(tiny, tmp_path):
    assert piped(b"x\n", "--url", "http://127.0.0.1:9", home=tmp_path).returncode == 1
    refused = piped(b"x\n", "--url", tiny.url, "--field", "no_such_field=1", home=tmp_path)
    assert refused.returncode == 2 and b"no_such_field" in refused.stderr
    unknown = piped(b"/hlep\n", "--url", tiny.url, home=tmp_path)
    assert unknown.returncode == 2 and b"/help" in unknown.stderr
    both = piped(b"", "--url", tiny.url, "--engine", "fake", home=tmp_path)
    assert both.returncode == 2 and b"--url" in both.stderr
    field = piped(b"", "--url", tiny.url, "--field", "x", home=tmp_path)
    assert field.returncode == 2 and b"NAME=JSON" in field.stderr


# --- with a server of its own

def test_a_server_of_its_own_comes_and_goes_with_it(chat, tmp_path):
    talk = chat(None, ENDLESS, "-m", tiny_model(), ready=False)
    talk.until("in this process")
    talk.until_prompt()
    talk.line("a story")
    under_way(talk)
    talk.write(ESC)
    paused(talk).write("\x03")
    talk.until_prompt()
    talk.write("\x04")
    assert talk.end() == 0 and talk.attributes == talk.before
    ran = piped(b"one\ntwo\n", "-m", tiny_model(), *flags_of(SHORT), home=tmp_path)
    assert ran.returncode == 0 and ran.stdout.count(b"\n") == 2, ran.stderr
    without = piped(b"one\n", "--engine", "fake", home=tmp_path)
    assert without.returncode == 3 and b"chat template" in without.stderr
