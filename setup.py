"""The page on PyPI: README.md, with links that lead to the repository from anywhere."""

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
VERSION = re.search(r'__version__ = "(.+)"', (ROOT / "syncattn_fairseq/__init__.py").read_text())[1]


def absolute_links(text: str, repository: str, version: str) -> str:
    """Return Markdown whose links and pictures no longer depend on where it is shown.

    Args:
        text: the Markdown of a page in the repository's root.
        repository: where the repository is, on GitHub.
        version: what its tag is called after, "v0.1.0".
    """

    def replace(link: re.Match[str]) -> str:
        kind = "raw" if link[1] else "blob"
        return f"{link[1]}[{link[2]}]({repository}/{kind}/v{version}/{link[3]})"

    return re.sub(r"(!?)\[([^]]*)\]\((?!https?://|#)([^)]*)\)", replace, text)


if __name__ == "__main__":
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    setup(
        long_description=absolute_links(readme, urls["Repository"], VERSION),
        long_description_content_type="text/markdown",
    )
