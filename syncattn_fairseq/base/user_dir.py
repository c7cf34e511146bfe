"""Import a user's own plugin, as fairseq does for ``--user-dir``."""

import hashlib
from argparse import Namespace
from pathlib import Path

from .errors import DataError


def hash_user_dir(folder: Path) -> str:
    """Return a SHA-256 over the names and contents of the files in a plugin's folder."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            total.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return total.hexdigest()


def import_user_dir(folder: Path) -> None:
    """Import the plugin folder of ``--user-dir``; raise `DataError` if that is impossible."""
    from fairseq.utils import import_user_module

    if folder.is_file():
        raise DataError(f"--user-dir {folder}: is a file; give the folder of your plugin")
    if folder.is_dir() and not (folder / "__init__.py").is_file():
        raise DataError(
            f"--user-dir {folder}: has no __init__.py, so that nothing would be registered; give "
            "the folder of your plugin"
        )
    try:
        import_user_module(Namespace(user_dir=str(folder)))
    except FileNotFoundError:
        raise DataError(f"--user-dir {folder}: no such folder") from None
    except SyntaxError as error:
        raise DataError(f"{error.filename}:{error.lineno}: {error.msg}") from None
    except ImportError as error:
        raise DataError(f"--user-dir {folder}: {' '.join(str(error).split())}") from None
