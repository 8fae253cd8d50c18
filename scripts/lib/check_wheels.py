"""Compares built wheels with the packages they were built from. Reads only; builds and installs nothing.

Usage: check_wheels.py CHECKOUT DIST. Exits 1 with one line per difference when a wheel misses a file of its
package, holds a file that is not in it, or carries no licence: a forgotten migration or `py.typed` shows up here.
"""

import sys
import zipfile
from pathlib import Path

PACKAGES = (("aura", "."), ("aura_automation", "clients/python"))


def find_package(root: Path, name: str) -> Path:
    """Returns the folder of the package in a flat or a src layout; raises FileNotFoundError."""
    for folder in (root / name, root / "src" / name):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"{root} holds no package {name}")


def read_source_names(package: Path) -> set[str]:
    """Returns the names that the wheel must hold, as it spells them."""
    files = (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(package.parent).as_posix() for path in files}


def compare(wheel: Path, package: Path) -> list[str]:
    """Returns one line per difference between the wheel and its package."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
    held = {name for name in names if ".dist-info/" not in name}
    wanted = read_source_names(package)
    lines = [f"{wheel.name} misses {name}" for name in sorted(wanted - held)]
    lines += [f"{wheel.name} holds {name}, which is not in the source" for name in sorted(held - wanted)]
    if f"{package.name}/py.typed" not in held:
        lines.append(f"{wheel.name} has no {package.name}/py.typed, so its types are invisible to users")
    if not any(".dist-info/licenses/" in name for name in names):
        lines.append(f"{wheel.name} carries no licence file")
    return lines


def main(checkout: Path, dist: Path) -> int:
    """Checks one wheel per package and prints what it found."""
    problems: list[str] = []
    for name, root in PACKAGES:
        wheels = sorted(dist.glob(f"{name}-*.whl"))
        if len(wheels) != 1:
            problems.append(f"expected one wheel of {name}, found {len(wheels)}")
            continue
        found = compare(wheels[0], find_package(checkout / root, name))
        problems += found
        if not found:
            print(f"{wheels[0].name}: holds its package, whole and nothing else")
    for line in problems:
        print(f"error: {line}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
