"""Link the package into site-packages, where fairseq looks for a plugin that is not in this folder.

    python scripts/link_package.py FOLDER

An editable install leaves only a hook there, and fairseq wants a folder. pip's list of the files of
the package gets the link, so that pip removes it with the package.
"""

import sys
import sysconfig
from pathlib import Path


def link_package(folder: Path, site: Path) -> None:
    """Make the link.

    Args:
        folder: the package's.
        site: site-packages, where the package is installed as editable.
    """
    link = site / folder.name
    if link.is_symlink():
        link.unlink()
    link.symlink_to(folder)
    [record] = site.glob(f"{folder.name}-*.dist-info/RECORD")
    text = record.read_text(encoding="utf-8")
    line = f"{folder.name},,\n"
    if line not in text:
        record.write_text(text + line, encoding="utf-8")


if __name__ == "__main__":
    link_package(Path(sys.argv[1]), Path(sysconfig.get_path("purelib")))
