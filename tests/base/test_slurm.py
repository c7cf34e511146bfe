import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.slurm import minutes_of


@pytest.mark.parametrize(
    ("time", "minutes"),
    [("30", 30), ("30:00", 30), ("30:01", 31), ("1:00:00", 60), ("2-0", 2880), ("1-2:30", 1590)]
    + [("1-2:30:10", 1591)],
)
def test_times_in_minutes(time, minutes):
    assert minutes_of(time) == minutes


@pytest.mark.parametrize("time", ["", "soon", "1:2:3:4", "-1", "1-", "1.5"])
def test_other_times_are_refused(time):
    with pytest.raises(DataError, match="give minutes, hours:minutes:seconds or days-hours"):
        minutes_of(time)
