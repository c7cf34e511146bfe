"""Print a system as command-line options of fairseq-train or fairseq-generate, one word per line.

``fairseq-train $(python scripts/config_options.py wmt14_en_de syncattn)`` trains the same model as
``fairseq-hydra-train`` with the arguments in docs/settings.md. Values can be changed the same way:
``... wmt14_en_de syncattn common.fp16=false task.data=elsewhere``. With ``--generate``, print
the options of the ``generation`` section for fairseq-generate.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from syncattn_fairseq.cli.common import command
from syncattn_lab.recipes.corpus_facts import load_corpus
from syncattn_lab.recipes.systems import (
    SHARED,
    generation_options,
    read_overrides,
    training_options,
)


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Print the options of the system that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("corpus")
    parser.add_argument("system")
    parser.add_argument("overrides", nargs="*", metavar="SECTION.OPTION=VALUE")
    parser.add_argument("--configs", type=Path, default=SHARED, help="where the configs are")
    parser.add_argument("--generate", action="store_true", help="options of fairseq-generate")
    args = parser.parse_args(argv)
    system = load_corpus(args.configs / args.corpus).system(args.system)
    config = system.load(read_overrides(args.overrides))
    options = generation_options if args.generate else training_options
    print("\n".join(options(config)))


if __name__ == "__main__":
    sys.exit(main())
