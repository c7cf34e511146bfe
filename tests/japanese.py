"""Stand-ins that take KyTea's and EDA's options and write what these write."""

import sys
from pathlib import Path

# Words of two characters; or words that are given, with tags. Without -out tok it escapes what has
# a meaning in its own format.
KYTEA = """\
#!{python} -SE
import sys
for line in sys.stdin:
    if sys.argv[1:] in (["-notags"], ["-notags", "-out", "tok"]):
        text = line.rstrip("\\n")
        words = [text[i : i + 2] for i in range(0, len(text), 2)]
        if "tok" not in sys.argv:
            words = ["".join("\\\\" * (c in "/&\\\\ ") + c for c in word) for word in words]
        print(" ".join(words))
    else:
        assert sys.argv[1:] == ["-in", "tok"]
        print(" ".join(f"{{word}}/名詞/よみ" for word in line.split()))
"""
# Every word's head is the next one.
EDA = """\
#!{python} -SE
import sys
assert sys.argv[1:6] == ["-i", "kytea", "-o", "conll", "-m"], sys.argv
assert open(sys.argv[6]).read() == "model"
for line in sys.stdin:
    words = [tagged.split("/")[0] for tagged in line.split()]
    for number, word in enumerate(words, 1):
        head = number + 1 if number < len(words) else -1
        print(number, word, "_", "名詞", "_", "_", head, "_")
    print()
"""


def install(folder: Path) -> Path:
    """Write programs ``kytea`` and ``eda`` into a folder for PATH; return a model for EDA."""
    for name, program in (("kytea", KYTEA), ("eda", EDA)):
        (folder / name).write_text(program.format(python=sys.executable), "utf-8")
        (folder / name).chmod(0o755)
    model = folder / "model.etm"
    model.write_text("model")
    return model
