import subprocess
from pathlib import Path
from random import Random

import pytest

from syncattn_fairseq.base.errors import DataError
from tests.checkpoints import make_task

HEADS = "test.heads.en-de.en"
TEXT = "test.en-de.en"
AGAIN = "binarise the text and its parses again, with syncattn-preprocess"


def load(data: Path, split: str = "test") -> None:
    make_task(data).load_dataset(split)


def test_other_programs_can_check_them(own_data):
    command = ["sha256sum", "--check", "--strict", f"{HEADS}.sha256"]
    done = subprocess.run(command, cwd=own_data, capture_output=True, text=True, check=True)
    names = [f"{name}.{suffix}" for name in (TEXT, HEADS) for suffix in ("idx", "bin")]
    assert done.stdout.splitlines() == [f"{name}: OK" for name in names]


@pytest.mark.parametrize("name", [f"{HEADS}.bin", f"{TEXT}.bin"])
def test_flipped_bits_are_noticed(own_data, name):
    content = bytearray((own_data / name).read_bytes())
    random = Random(1)
    for _ in range(40):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    (own_data / name).write_bytes(content)
    told = f"^{own_data}/{name}: has changed since {own_data}/{HEADS}.sha256 .*; {AGAIN}$"
    with pytest.raises(DataError, match=told):
        load(own_data)


def test_heads_of_another_text_of_the_same_lengths_are_noticed(own_data):
    """Even if their checksums came with them: the text is another."""
    text = bytearray((own_data / f"{TEXT}.bin").read_bytes())
    text[0] ^= 1  # another first word
    (own_data / f"{TEXT}.bin").write_bytes(text)
    with pytest.raises(DataError, match=f"^{own_data}/{TEXT}.bin: has changed"):
        load(own_data)


def test_files_may_have_new_names(own_data):
    for path in list(own_data.glob("test.*")):
        path.rename(path.with_name(path.name.replace("test", "valid2", 1)))
    load(own_data, "valid2")


def test_data_without_checksums_is_loaded(own_data):
    for path in own_data.glob("*.sha256"):
        path.unlink()
    heads = (own_data / f"{HEADS}.bin").read_bytes()
    (own_data / f"{HEADS}.bin").write_bytes(heads[:2] * (len(heads) // 2))
    load(own_data)


@pytest.mark.parametrize("content", [b"", b"x\n" * 4, b"\xff\n"])
def test_damaged_checksums_are_named(own_data, content):
    (own_data / f"{HEADS}.sha256").write_bytes(content)
    with pytest.raises(DataError, match=rf"^{own_data}/{HEADS}\.sha256:"):
        load(own_data)


@pytest.mark.parametrize(
    "name", [f"{TEXT}.idx", f"{TEXT}.bin", "test.en-de.de.bin", f"{HEADS}.idx"]
)
def test_a_file_that_is_cut_short_is_named(own_data, name):
    content = (own_data / name).read_bytes()
    for path in own_data.glob("*.sha256"):  # data of an earlier version
        path.unlink()
    for changed in (content + b"x", *(content[:length] for length in (0, 5, 20, -1, -4))):
        (own_data / name).write_bytes(changed)
        told = f"^{own_data}/{name}: the file is damaged or cut short; binarise the text again$"
        with pytest.raises(DataError, match=told):
            load(own_data)
