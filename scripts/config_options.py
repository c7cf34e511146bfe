"""Print a config as command-line options of fairseq-train or fairseq-generate, one word per line.

``fairseq-train $(python scripts/config_options.py configs/wmt14_en_de/syncattn.yaml)`` trains the
same model as ``fairseq-hydra-train --config-dir configs/wmt14_en_de --config-name syncattn``.
Values can be changed the same way: ``... syncattn.yaml common.fp16=false task.data=elsewhere``.
With ``--generate``, print the options of the config's ``generation`` section for fairseq-generate.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from syncattn_fairseq.cli.common import command
from syncattn_fairseq.recipes.systems import (
    generation_options,
    load_system,
    read_overrides,
    training_options,
)


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Print the options."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("config", type=Path)
    parser.add_argument("overrides", nargs="*", metavar="SECTION.OPTION=VALUE")
    parser.add_argument("--generate", action="store_true", help="options of fairseq-generate")
    args = parser.parse_args(argv)
    config = load_system(args.config, read_overrides(args.overrides))
    options = generation_options if args.generate else training_options
    print("\n".join(options(config)))


if __name__ == "__main__":
    sys.exit(main())
