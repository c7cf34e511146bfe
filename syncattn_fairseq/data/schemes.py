"""Store how the subwords of a binarised corpus are marked, since its text is not kept."""

import json
from collections.abc import Mapping
from pathlib import Path

from ..base.errors import DataError
from ..base.files import read_json, replacing
from .words import SCHEMES

_NAME = "subwords.json"


def stored_schemes(folder: Path | str) -> dict[str, str]:
    """Return the scheme of each language of a binarised corpus, see `.words.find_word_starts`.

    Empty if the corpus was not binarised by `syncattn-preprocess`.

    Raises:
        DataError: the file is damaged.
    """
    path = Path(folder) / _NAME
    try:
        schemes = read_json(path)
    except FileNotFoundError:
        return {}
    except ValueError:
        schemes = None
    if not isinstance(schemes, dict) or any(value not in SCHEMES for value in schemes.values()):
        raise DataError(
            f"{path}: expected one of {', '.join(SCHEMES)} for each language; remove it"
        )
    return schemes


def store_schemes(folder: Path | str, schemes: Mapping[str, str]) -> None:
    """Store the schemes of languages."""
    with replacing(Path(folder) / _NAME) as temporary:
        temporary.write_text(json.dumps(schemes, sort_keys=True) + "\n", "utf-8")
