"""Archives of files in memory."""

import io
import stat
import tarfile
import zipfile
from collections.abc import Mapping


def tar(members: Mapping[str, bytes], mode: str = "w", *infos: tarfile.TarInfo) -> bytes:
    """Return a tar with these files, and what else there is before them."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for info in infos:
            archive.addfile(info)
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def special(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def zipped(members: Mapping[str, bytes], *links: str, kind: int = stat.S_IFLNK) -> bytes:
    """Return a zip with these files, of which links are symbolic links, or of another kind."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            if name in links:
                info.external_attr = (kind | 0o777) << 16
            archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def packed(name: str, members: Mapping[str, bytes]) -> bytes:
    """Return an archive of the kind that its name says."""
    modes = {".tgz": "w:gz", ".tar.gz": "w:gz", ".tar.bz2": "w:bz2", ".tar": "w"}
    mode = next((mode for suffix, mode in modes.items() if name.endswith(suffix)), None)
    return zipped(members) if mode is None else tar(members, mode)
