"""Plants what the checkers exist for and sees each caught, and sees them silent where nothing is wrong."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import check_includes  # noqa: E402
import check_tree  # noqa: E402


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def plant(self, path, text=""):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


class Includes(Tree):
    def setUp(self):
        super().setUp()
        for header in ("base/ids.h", "engine/engine.h", "engine/fake/fake_engine.h", "generation/fold.h", "scheduler/plan.h",
                       "runtime/core.h", "engine/attention/attention.h"):
            self.plant(f"src/{header}")

    def found(self, file, include):
        self.plant(f"src/{file}", f"// first line\n#include {include}\n")
        return list(check_includes.problems(self.root))

    def test_accepts_what_points_down(self):
        for file, include in (("generation/a.cc", '"engine/engine.h"'), ("scheduler/a.cc", '"generation/fold.h"'),
                              ("base/a.cc", "<vector>"), ("engine/llama/a.cc", '"llama.h"'),
                              ("engine/attention/a.cc", '"ggml-backend.h"'), ("engine/attention/b.cc", '"hwy/highway.h"'),
                              ("engine/llama/b.cc", '"chat.h"'), ("runtime/a_test.cc", '"engine/fake/fake_engine.h"')):
            self.assertEqual(self.found(file, include), [], f"{file} {include}")

    def test_refuses_what_points_up_or_past_a_border(self):
        for file, include in (("base/a.cc", '"engine/engine.h"'), ("engine/a.cc", '"generation/fold.h"'),
                              ("generation/a.cc", '"scheduler/plan.h"'), ("scheduler/a.cc", '"runtime/core.h"'),
                              ("generation/a.h", '"llama.h"'), ("scheduler/a.cc", "<llama.h>"), ("runtime/a.cc", '"ggml.h"'),
                              ("engine/attention/a.cc", '"llama.h"'), ("engine/attention/a.cc", '"engine/engine.h"'),
                              ("runtime/a.cc", '"engine/fake/fake_engine.h"'), ("scheduler/a.cc", '"chat.h"'),
                              ("engine/llama/a.cc", '"engine/fake/fake_engine.h"'), ("generation/a.cc", '"fold.h"'),
                              ("generation/a.cc", "<engine/engine.h>"), ("invented/a.cc", '"base/ids.h"')):
            with self.subTest(file=file, include=include):
                found = self.found(file, include)
                self.assertEqual(len(found), 1, found)
                self.assertTrue(found[0].startswith(f"src/{file}:2: "), found)
                (self.root / "src" / file).unlink()


class HouseRules(Tree):
    def test_readme_is_asked_of_a_folder_with_code(self):
        self.plant("src/base/a.h")
        self.assertEqual(list(check_tree.readme_problems(self.root)), ["src/base: no README.md says what this folder is for"])
        self.plant("src/base/README.md", "line\n" * 41)
        self.assertEqual(list(check_tree.readme_problems(self.root)), ["src/base/README.md: over 40 lines"])
        self.plant("src/base/README.md", "line\n" * 40)
        self.assertEqual(list(check_tree.readme_problems(self.root)), [])

    def test_words_and_paths(self):
        for text in ("// TO" "DO: later", "path = '/wo" "rk/main'", "https://py" "pi.org/simple", "x = FIX" "ME"):
            self.plant("src/a.cc", f"fine\n{text}\n")
            self.assertEqual(len(list(check_tree.word_problems(self.root))), 1, text)
        for text in ("// the work is done", "a/work/b", "/v1/models", "methodology"):
            self.plant("src/a.cc", text)
            self.assertEqual(list(check_tree.word_problems(self.root)), [], text)

    def test_what_is_fetched_or_built_is_not_looked_at(self):
        self.plant(".deps/llama.cpp/a.cc", "// TO" "DO")
        self.plant("build/release/a.txt", "// TO" "DO")
        self.assertEqual(list(check_tree.word_problems(self.root)), [])

    def test_long_file_is_a_warning(self):
        self.plant("src/base/a.cc", "\n" * 601)
        self.assertEqual(len(list(check_tree.size_warnings(self.root))), 1)


class Budgets(unittest.TestCase):
    def test_all_suites_together_stay_below_90_minutes(self):
        budgets = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "budgets.txt"
        lines = [line.split() for line in budgets.read_text().splitlines() if not line.startswith("#")]
        self.assertGreater(len(lines), 5)
        self.assertLess(sum(int(all_of_it) for _, _, all_of_it in lines), 90 * 60)


if __name__ == "__main__":
    unittest.main()
