#!/usr/bin/env python3
"""House rules that no compiler knows. usage: tools/check_tree.py [ROOT]

Fails: a folder of src/, tests/ or bench/ with code but no README.md, or with one over 40 lines; words of unfinished work; paths of one
machine; addresses of package registries. Warns: a file over 600 lines, which then wants a review of its size.
"""

import re
import sys

import tree

README_LINES_MAX = 40
FILE_LINES_REVIEW = 600

# Written so that this file does not match itself.
FORBIDDEN = {
    r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b": "unfinished work belongs in an issue",
    r"(?<![\w.$}])/(work|opt/wheels|home/\w+|root)(/|\b)": "a path of one machine",
    r"(py" r"pi\.org|python" r"hosted\.org|npm" r"js\.(org|com)|deb\.deb" r"ian\.org|hugging" r"face\.co)": "a registry's address",
}
TEXT = {".h", ".cc", ".py", ".sh", ".md", ".txt", ".cmake", ".json", ".toml", ".yaml", ".yml", ""}


def readme_problems(root):
    for folder in sorted({path.parent for path in tree.files(root, tree.CODE, tree.CODE_FOLDERS)}):
        readme = folder / "README.md"
        where = folder.relative_to(root)
        if not readme.is_file():
            yield f"{where}: no README.md says what this folder is for"
        elif len(readme.read_text(encoding="utf-8").splitlines()) > README_LINES_MAX:
            yield f"{where}/README.md: over {README_LINES_MAX} lines"


def word_problems(root):
    for path in tree.files(root, TEXT):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for pattern, why in FORBIDDEN.items():
            for match in re.finditer(pattern, text):
                yield f"{path.relative_to(root)}:{text.count(chr(10), 0, match.start()) + 1}: '{match.group()}': {why}"


def size_warnings(root):
    for path in tree.files(root, tree.CODE | {".py", ""}):
        try:
            n_lines = len(path.read_text(encoding="utf-8").splitlines())
        except UnicodeDecodeError:
            continue
        if n_lines > FILE_LINES_REVIEW:
            yield f"{path.relative_to(root)}: {n_lines} lines; over {FILE_LINES_REVIEW}, its size wants a review"


def main():
    root = tree.ROOT if len(sys.argv) < 2 else tree.pathlib.Path(sys.argv[1])
    for warning in size_warnings(root):
        print(f"warning: {warning}")
    found = list(readme_problems(root)) + list(word_problems(root))
    print("\n".join(found) or "the tree keeps the house rules")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
