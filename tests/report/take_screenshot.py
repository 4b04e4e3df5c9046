"""Takes the picture of a report that the README shows: `python -m tests.report.take_screenshot REPORT PICTURE`."""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path

from tests.report.browser import open_browser, set_view

WIDTH, HEIGHT = 1280, 1000


def take_screenshot(report: Path, picture: Path) -> None:
    """Writes the first screen of `report` (HTML) as a PNG."""
    with tempfile.TemporaryDirectory() as profile, open_browser(Path(profile)) as chrome:
        set_view(chrome, WIDTH)
        chrome.get(report.resolve().as_uri())
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": 1}
        shot = chrome.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    picture.write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    take_screenshot(Path(sys.argv[1]), Path(sys.argv[2]))
