import pytest

from syncattn_fairseq.base.numbers import read_decimal, read_whole


def test_numbers():
    whole = {"0": 0, "-1": -1, "007": 7, "9" * 9: 10**9 - 1}
    assert {text: read_whole(text) for text in whole} == whole
    decimals = {"0.25": 0.25, "-1.5e-3": -0.0015, "7": 7}
    assert {text: read_decimal(text) for text in decimals} == decimals


@pytest.mark.parametrize("text", ["", "1_0", "+1", "٣", "1.0", "1e3", " 1", "1\n", "9" * 5000, "-"])
def test_what_is_no_whole_number(text):
    with pytest.raises(ValueError, match="is not a whole number") as error:
        read_whole(text)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize("text", ["", "nan", "inf", "1e100", "1_0", "٣", "1.2.3", "-", "." * 50])
def test_what_is_no_decimal(text):
    with pytest.raises(ValueError):
        read_decimal(text)
