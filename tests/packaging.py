"""What a wheel is built from, and where it has the files of the tree."""

import shutil
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]


def copy_tree(names: Iterable[str], target: Path) -> None:
    """Copy files, and the links that make the folders one package."""
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target / name)
    for link in (ROOT / "ropeway").iterdir():
        if link.is_symlink():
            (target / "ropeway" / link.name).symlink_to(link.readlink())


def installed(name: str) -> str:
    """Where a file of the tree is in a wheel: all of it is one package."""
    return name if name.startswith("ropeway/") else f"ropeway/{name}"
