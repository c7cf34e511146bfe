import subprocess
import sys

import pytest

PROGRAM = """\
import logging, sys, warnings
logging.basicConfig(level=logging.DEBUG, format="%(message)s", stream=sys.stdout)
from syncattn_fairseq.patches.quiet import mend
mend()
from argparse import Namespace
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.options import get_generation_parser, parse_args_and_arch
convert_namespace_to_omegaconf(parse_args_and_arch(get_generation_parser(), ["bin", "--path=x"]))
logging.getLogger("fairseq_cli.generate").info({"all": "options"})
logging.getLogger("fairseq_cli.generate").info("loading")
logging.getLogger("fairseq_cli.train").info({"all": "options"})
warnings.warn("`torch.cuda.amp.autocast(args...)` is deprecated.", FutureWarning, stacklevel=1)
warnings.warn("'pin_memory' argument is set as true but no accelerator is found", stacklevel=1)
warnings.warn("mine", stacklevel=1)
"""


@pytest.mark.parametrize(
    ("name", "options", "quiet"),
    [("fairseq-generate", [], True), ("fairseq-generate", ["-Wdefault"], False), ("x", [], False)],
)
def test_only_what_looks_like_a_failure_is_left_out(tmp_path, name, options, quiet):
    program = tmp_path / name
    program.write_text(PROGRAM)
    done = subprocess.run([sys.executable, *options, program], capture_output=True, text=True)
    assert done.returncode == 0 and "UserWarning: mine" in done.stderr
    for word in ("hydra", "autocast", "pin_memory"):
        assert (word not in done.stderr + done.stdout) == quiet, done.stderr
    said = done.stdout.splitlines()[-3:]
    assert said[-2:] == ["loading", "{'all': 'options'}"], "training keeps its options"
    assert (said[0] != "{'all': 'options'}") == quiet
