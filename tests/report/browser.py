"""Headless Chromium with the network off, and what it logged."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

selenium = pytest.importorskip("selenium", reason="the browser tests need selenium (the dev extra)")
from selenium import webdriver  # noqa: E402 - only after the check that it is there
from selenium.webdriver.chrome.service import Service  # noqa: E402

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
)  # fmt: skip


def find_browser() -> tuple[str, str]:
    """(browser, driver). Skips where one is missing, or fails where QUANTGATE_REQUIRE_BROWSER says that it must not."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        reason = "Chromium and chromedriver are not on PATH"
        if os.environ.get("QUANTGATE_REQUIRE_BROWSER") == "1":
            pytest.fail(f"{reason}, but QUANTGATE_REQUIRE_BROWSER=1 asks for them")
        pytest.skip(reason)
    return browser, driver


@contextmanager
def open_browser(profile: Path, *, javascript: bool = True) -> Iterator[webdriver.Chrome]:
    """A browser with an empty profile in which every network request fails."""
    browser, driver = find_browser()
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    if not javascript:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    try:
        chrome.execute_cdp_cmd("Network.enable", {})
        chrome.execute_cdp_cmd(
            "Network.emulateNetworkConditions",
            {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0},
        )
        # The browser's own start page has loaded its parts by now; what is logged from here on is the report's.
        chrome.get("about:blank")
        chrome.get_log("performance")
        yield chrome
    finally:
        chrome.quit()


def set_view(chrome: webdriver.Chrome, width: int, *, dark: bool = False) -> None:
    chrome.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


def requested_urls(chrome: webdriver.Chrome) -> list[str]:
    """Every address that the page asked for since the last call, the page itself included."""
    messages: list[dict[str, Any]] = [
        json.loads(entry["message"])["message"] for entry in chrome.get_log("performance")
    ]
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
