"""Take the pictures of the pages for the docs.

``python tests/e2e/screenshots.py --dashboard URL --out docs/screenshots``
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.e2e.browsing import launched, opened

PICTURES = {
    "overview": "/?cluster=alex",
    "pyramid": "/pyramid?cluster=alex",
    "budget-versus-actual": "/budget-versus-actual?cluster=philly&period=2017-10",
}
"""Picture -> the page of the demo that it shows."""
SIZE = (1280, 1000)
LARGEST_BYTES = 300_000


def main() -> None:
    """Write one picture per page; fail when one is larger than the repository should carry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dashboard", required=True, help="where the pages are served")
    parser.add_argument("--out", type=Path, required=True, help="folder for the pictures")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with launched() as browser:
        for name, path in PICTURES.items():
            target = options.out / f"{name}.png"
            url = options.dashboard.rstrip("/") + path
            page = opened(browser, url, SIZE)
            page.screenshot(path=target)
            page.close()
            size = target.stat().st_size
            print(f"{target} {size:,} bytes")
            if size > LARGEST_BYTES:
                sys.exit(f"{target} is larger than {LARGEST_BYTES:,} bytes")


if __name__ == "__main__":
    main()
