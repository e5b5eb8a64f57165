"""Pictures of pages on the demo, for README and empty states: `make pictures`.

`python -m tests.journeys.pictures LINK` takes them from the dashboard at the address that `faultline
serve` printed, in the folder of app that holds them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import urlsplit

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.journeys.chromium import find_chromium
from tests.journeys.test_access import settled

FOLDER = Path(__file__).parents[2] / "app" / "pictures"
SIZE, WIDTH, COLOURS = {"width": 1440, "height": 900}, 1080, 160
ADDRESSES = {
    "overview": "", "failures": "failures", "incidents": "incidents",
    "incident": "incident?incident=largest", "job": "job?job=125319", "node": "node?node=gpu0173",
    "mttf": "mttf", "ettr": "ettr", "ledger": "ledger", "my_runs": "my_runs?user=mult01",
    "planner": "planner", "lemons": "lemons", "trend": "trend?period=all",
    "availability": "availability?period=all",
}  # fmt: skip
"""Page -> what it shows."""


def main(link: str) -> None:
    """Takes them all."""
    split = urlsplit(link)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport=SIZE, color_scheme="light")  # type: ignore[arg-type]
        page.goto(link)
        for name, address in ADDRESSES.items():
            page.goto(f"{split.scheme}://{split.netloc}/{address}")
            settled(page)
            path = FOLDER / f"{name}.png"
            page.screenshot(path=path)
            with Image.open(path) as taken:
                small = taken.convert("RGB").resize((WIDTH, WIDTH * taken.height // taken.width))
            small.quantize(COLOURS).save(path, optimize=True)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
