from tests.importing import run_program

PROGRAM = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (2**38, 2**38))
from syncattn_fairseq.base.errors import DataError
try:
    from syncattn_lab.report import viz
except DataError as error:
    print(error)
"""


def test_too_few_addresses_are_said_before_anything_is_drawn():
    done = run_program(PROGRAM)
    assert done.returncode == 0, done.stderr
    said = (
        "pictures need more virtual memory than is allowed here; lift the limit: "
        "ulimit -v unlimited\n"
    )
    assert done.stdout == said
