"""Make fairseq-pure, a wheel of fairseq without compiled code, from PyPI's fairseq-fixed.

The new wheel is for every version of Python. Compiled modules are left out: ``pure_fairseq/`` has
three of them, which translation uses, in plain Python. The examples are left out, too, 17 of 22 MB.
The other changes are in `EDITS`, and the wheel holds them as ``CHANGES.diff`` beside the licence.

Usage: slim_fairseq.py WHEEL FOLDER    (prints the new wheel)
"""

import difflib
import hashlib
import re
import sys
import zipfile
from base64 import urlsafe_b64encode
from pathlib import Path

PURE = {
    "fairseq/data/data_utils_fast.py": "data_utils_fast.py",
    "fairseq/data/token_block_utils_fast.py": "token_block_utils_fast.py",
    "fairseq/libbleu.py": "libbleu.py",
}
DROPPED = re.compile(r".*\.so|fairseq/examples/.*|.*\.dist-info/(RECORD|top_level\.txt)")

NAME = "fairseq-pure"
#: The version of fairseq-fixed that the wheel is made from. A later change here needs a number of
#: its own, such as 0.12.3.1.post1.
VERSION = "0.12.3.1"
README = Path(__file__).parent / "pure_fairseq" / "README.md"
HOME = "https://github.com/syncattn-fairseq/syncattn-fairseq"

# file: (text, what takes its place)
EDITS = {
    "fairseq/scoring/bleu.py": [("ctypes.cdll.LoadLibrary(libbleu.__file__)", "libbleu")],
    # The name of an installed package is enough for --user-dir, also if the package is editable.
    "fairseq/utils.py": [
        ("import importlib\n", "import importlib\nimport importlib.util\n"),
        (
            """\
                else:
                    raise FileNotFoundError(module_path)
""",
            """\
                else:
                    name = args.user_dir
                    spec = importlib.util.find_spec(name) if name.isidentifier() else None
                    folders = getattr(spec, "submodule_search_locations", None)
                    if not folders:
                        raise FileNotFoundError(module_path)
                    module_path = list(folders)[0]
""",
        ),
    ],
    # A library does not change the logging of the program that imports it.
    "fairseq/models/wav2vec/wav2vec2_classification.py": [
        ("logging.basicConfig(level=logging.DEBUG)\n", "")
    ],
    # A lock between processes needs /dev/shm, which some containers lack; this one is a debugger's.
    "fairseq/pdb.py": [
        ("import multiprocessing\n", "import threading\n"),
        ("multiprocessing.Lock()", "threading.Lock()"),
    ],
    # From Python 3.14 on, str(Optional[int]) is "int | None".
    "fairseq/dataclass/utils.py": [
        (
            """\
    if re.match(
        r"(typing.|^)Union\\[(.*), NoneType\\]$", typestring
    ) or typestring.startswith("typing.Optional"):
""",
            """\
    if re.match(
        r"(typing.|^)Union\\[(.*), NoneType\\]$|.* \\| None$", typestring
    ) or typestring.startswith("typing.Optional"):
""",
        )
    ],
    # Python 3.14 checks that help is text; one of hydra 1.3's is an object.
    "fairseq_cli/hydra_train.py": [
        ("import logging\n", "import argparse\nimport logging\n"),
        (
            'logger = logging.getLogger("fairseq_cli.hydra_train")\n',
            """\
logger = logging.getLogger("fairseq_cli.hydra_train")

if hasattr(argparse.ArgumentParser, "_check_help"):
    _check_help = argparse.ArgumentParser._check_help

    def _check_text(self, action):
        if isinstance(action.help, str):
            _check_help(self, action)

    argparse.ArgumentParser._check_help = _check_text
""",
        ),
    ],
    # sacreBLEU 2 wants lists.
    "fairseq_cli/score.py": [
        ("sacrebleu.corpus_bleu(fdsys, [fdref])", "sacrebleu.corpus_bleu([*fdsys], [[*fdref]])")
    ],
    # A warning since Python 3.12.
    "fairseq/models/wav2vec/wav2vec2_asr.py": [
        ('re.compile("encoder.layers.\\d.")', 're.compile(r"encoder.layers.\\d.")')
    ],
    # scikit-learn and SciPy are a third of fairseq's start-up, and only these two modules use them.
    "fairseq/criterions/sentence_prediction.py": [
        ("from sklearn.metrics import f1_score\n", ""),
        ("from sklearn.metrics import matthews_corrcoef as _matthews_corrcoef\n", ""),
        ("from scipy.stats import pearsonr, spearmanr\n", ""),
        ("    f1 = f1_score(", "    from sklearn.metrics import f1_score\n    f1 = f1_score("),
        (
            "    mcc = _matthews_corrcoef(",
            "    from sklearn.metrics import matthews_corrcoef\n    mcc = matthews_corrcoef(",
        ),
        (
            "    pearson_corr = pearsonr(",
            "    from scipy.stats import pearsonr, spearmanr\n    pearson_corr = pearsonr(",
        ),
    ],
    "fairseq/tasks/audio_classification.py": [
        ("from sklearn import metrics as sklearn_metrics\n", ""),
        (
            "            fpr, tpr, thresholds = sklearn_metrics.roc_curve(",
            """\
            from sklearn import metrics as sklearn_metrics
            fpr, tpr, thresholds = sklearn_metrics.roc_curve(""",
        ),
    ],
    "METADATA": [
        *((f"Requires-Dist: {name}\n", "") for name in ("cffi", "cython", "scikit-learn")),
        ("Requires-Dist: torchaudio >=0.8.0\n", ""),
        ("Requires-Dist: hydra-core ==1.3.2\n", "Requires-Dist: hydra-core >=1.3.2,<1.4\n"),
        ("Requires-Dist: omegaconf ==2.3.0\n", "Requires-Dist: omegaconf >=2.3.0,<2.4\n"),
        ("Name: fairseq-fixed\n", f"Name: {NAME}\n"),
        ("\nVersion: 0.12.3.1\n", f"\nVersion: {VERSION}\n"),
        (
            "Summary: Facebook AI Research Sequence-to-Sequence Toolkit -- Now Supporting "
            "Python 3.11+\n",
            "Summary: fairseq without compiled code, for Python 3.11 to 3.14\n",
        ),
        ("Home-page: https://github.com/JackismyShephard/fairseq\n", f"Home-page: {HOME}\n"),
        (
            "Classifier: Programming Language :: Python :: 3.12\n",
            "Classifier: Programming Language :: Python :: 3.12\n"
            "Classifier: Programming Language :: Python :: 3.13\n"
            "Classifier: Programming Language :: Python :: 3.14\n"
            "Requires-Python: >=3.11\n",
        ),
    ],
    "WHEEL": [
        ("Root-Is-Purelib: false\n", "Root-Is-Purelib: true\n"),
        ("Tag: cp312-cp312-manylinux_2_28_x86_64\n", "Tag: py3-none-any\n"),
    ],
}


def slim(wheel: Path, folder: Path) -> Path:
    """Write the wheel of fairseq-pure, made from ``wheel``, into ``folder``; return its path.

    The same wheel gives the same bytes.

    Raises:
        ValueError: the wheel is not the one this was written for.
    """
    edits = dict(EDITS)
    with zipfile.ZipFile(wheel) as old:
        names = [name for name in old.namelist() if not DROPPED.fullmatch(name) and name[-1] != "/"]
        [record] = (name for name in old.namelist() if name.endswith(".dist-info/RECORD"))
        held = {name: old.read(name).replace(b"\r\n", b"\n") for name in names}
    info = record.removesuffix("/RECORD")
    edits |= {f"{info}/{name}": edits.pop(name) for name in ("METADATA", "WHEEL")}
    differences: list[str] = []
    for name, changes in edits.items():
        if name not in held:
            raise ValueError(f"{wheel}: no {name}")
        before = held[name].decode()
        after = edit(before, changes, f"{wheel}: {name}")
        held[name] = after.encode()
        differences += difflib.unified_diff(
            before.splitlines(keepends=True),
            after.splitlines(keepends=True),
            f"fairseq-fixed/{name}",
            f"{NAME}/{name}",
        )
    for name, source in PURE.items():
        held[name] = (README.parent / source).read_bytes()
    header = held[f"{info}/METADATA"].decode().partition("\n\n")[0].rstrip("\n")
    held[f"{info}/METADATA"] = f"{header}\n\n{README.read_text()}".encode()
    held[f"{info}/CHANGES.diff"] = "".join(differences).encode()
    new = f"{NAME.replace('-', '_')}-{VERSION}"
    held = {name.replace(info, f"{new}.dist-info"): data for name, data in held.items()}
    lines = [f"{name},sha256={digest(data)},{len(data)}\n" for name, data in held.items()]
    lines.append(f"{new}.dist-info/RECORD,,\n")
    held[f"{new}.dist-info/RECORD"] = "".join(lines).encode()
    made = folder / f"{new}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, data in held.items():
            entry = zipfile.ZipInfo(name)  # of 1980: the bytes do not depend on the day
            entry.external_attr = 0o644 << 16
            zipped.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return made


def edit(text: str, changes: list[tuple[str, str]], where: str) -> str:
    """Return ``text`` with each old text, which must occur once, replaced by its new text.

    Raises:
        ValueError: a text to replace is not there exactly once.
    """
    for old, new in changes:
        if text.count(old) != 1:
            raise ValueError(f"{where} does not have {old!r} once")
        text = text.replace(old, new)
    return text


def digest(data: bytes) -> str:
    """Return the SHA-256 of data in the form that the RECORD of a wheel has."""
    return urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


if __name__ == "__main__":
    print(slim(Path(sys.argv[1]), Path(sys.argv[2])))
