"""Print what a config of configs/ is on the command line of fairseq-train or fairseq-generate.

Usage: ``python scripts/config_options.py configs/wmt14_en_de/syncattn.yaml``, one word per line:
``fairseq-train $(python scripts/config_options.py ...)`` makes the same model of the same data as
``fairseq-hydra-train --config-dir configs/wmt14_en_de --config-name syncattn``. Values can be
changed as for the latter: ``... syncattn.yaml common.fp16=false task.data=elsewhere``.
With ``--generate``, the options of its ``generation`` for fairseq-generate.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

#: Sections whose ``_name`` is an option; its name where that is not the section's.
NAMED = {"model": "arch"}
IGNORED = ("defaults", "generation", "hydra")


def load(path: Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Return a config with those that it builds on, in the order of its ``defaults``."""
    own: Any = OmegaConf.load(path)
    parts = [
        own if name == "_self_" else OmegaConf.create(load(path.with_name(f"{name}.yaml")))
        for name in own.get("defaults", ["_self_"])
    ]
    merged: Any = OmegaConf.to_container(
        OmegaConf.merge(*parts, OmegaConf.from_dotlist(list(overrides)))
    )
    return merged


def training_options(config: dict[str, Any]) -> Iterator[str]:
    """Yield the words behind ``fairseq-train``, the data first."""
    yield config["task"]["data"]
    for section, options in config.items():
        if section in IGNORED:
            continue
        for name, value in options.items():
            if name == "_name":
                yield from option(NAMED.get(section, section), value)
            elif name != "data":
                yield from option(name, value)


def option(name: str, value: Any) -> Iterator[str]:
    """Yield the words of one option; a flag that is off has none."""
    flag = "--" + name.replace("_", "-")
    if isinstance(value, bool):
        if value:
            yield flag
        return
    yield flag
    yield ",".join(map(str, value)) if isinstance(value, list) else str(value)


def main(argv: list[str]) -> None:
    """Print the options."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("config", type=Path)
    parser.add_argument("overrides", nargs="*", metavar="SECTION.OPTION=VALUE")
    parser.add_argument("--generate", action="store_true", help="those of fairseq-generate")
    args = parser.parse_args(argv)
    config = load(args.config, args.overrides)
    if args.generate:
        words = [word for name, v in config["generation"].items() for word in option(name, v)]
    else:
        words = list(training_options(config))
    print("\n".join(words))


if __name__ == "__main__":
    main(sys.argv[1:])
