"""The report in headless Chromium with the network off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.report.browser import open_browser, requested_urls, set_view, webdriver
from tests.report.stored_run import build_run, build_verdict

from quantgate.report.render import render_report

pytestmark = pytest.mark.browser

ATTACK = (
    "</script><img src=x onerror=\"document.title='owned'\"><svg onload=\"document.title='owned'\">"
    "<style>@import url(http://example.org/x.css);</style><iframe src=http://example.org></iframe>"
)


@pytest.fixture(scope="module")
def report_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_report(build_run(text=ATTACK), build_verdict(), price_per_hour=1.2), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def chrome(report_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with open_browser(tmp_path_factory.mktemp("profile")) as browser:
        browser.get(report_file.as_uri())
        yield browser


def test_it_opens_without_an_error_and_asks_for_nothing(chrome: webdriver.Chrome, report_file: Path) -> None:
    assert chrome.get_log("browser") == []
    assert {url for url in requested_urls(chrome) if not url.startswith("data:")} == {report_file.as_uri()}
    assert chrome.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_hostile_text_is_shown_and_runs_nothing(chrome: webdriver.Chrome) -> None:
    assert "owned" not in chrome.title
    assert chrome.execute_script("return document.querySelectorAll('img, iframe').length") == 0
    assert chrome.execute_script("return document.scripts.length") == 1
    assert ATTACK in chrome.execute_script(
        "return document.querySelector('#flips pre:last-of-type').closest('section').textContent"
    )


def test_the_policy_stops_what_would_get_past_the_escaping(chrome: webdriver.Chrome) -> None:
    chrome.execute_script(PLANT, ATTACK)
    assert "owned" not in chrome.title
    assert any("Content Security Policy" in entry["message"] for entry in chrome.get_log("browser"))


PLANT = """
const planted = document.createElement('div');
document.body.append(planted);
planted.innerHTML = arguments[0];
const script = document.createElement('script');
script.textContent = "document.title = 'owned'";
planted.append(script);
planted.remove();
"""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 800, 1600])
def test_it_fits_the_window_and_reads_well(chrome: webdriver.Chrome, width: int, dark: bool) -> None:
    set_view(chrome, width, dark=dark)
    chrome.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    assert chrome.execute_script("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert chrome.execute_script(CONTRAST) >= 4.5


CONTRAST = """
const channel = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
const luminance = (c) => { const [r, g, b] = c.match(/[0-9.]+/g).map(Number);
  return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b); };
const behind = (e) => { while (e) { const c = getComputedStyle(e).backgroundColor;
  if (!/, 0\\)$/.test(c)) return c; e = e.parentElement; } return 'rgb(255, 255, 255)'; };
let least = 21;
for (const e of document.querySelectorAll('p, li, td, th, dd, dt, h1, h2, h3, h4, .badge, .stamp, summary, pre, a')) {
  const [a, b] = [luminance(getComputedStyle(e).color), luminance(behind(e))].sort((x, y) => y - x);
  least = Math.min(least, (a + 0.05) / (b + 0.05));
}
return least;
"""
"""The least contrast ratio of text against what lies behind it (WCAG 2.2, 1.4.3 asks for 4.5)."""


def test_the_flip_filter_hides_what_does_not_match(chrome: webdriver.Chrome) -> None:
    chrome.find_element("id", "flip-filter").send_keys("item-1")
    flips = "return [...document.querySelectorAll('#flips .flip')].map((flip) => [flip.hidden, flip.textContent])"
    states = chrome.execute_script(flips)
    assert {is_hidden for is_hidden, _ in states} == {True, False}
    assert all(is_hidden != ("item-1" in text) for is_hidden, text in states)


def test_folded_parts_are_printed(chrome: webdriver.Chrome) -> None:
    chrome.execute_script("for (const d of document.querySelectorAll('details')) d.open = false")
    opened = "document.querySelectorAll('details[open]').length"
    during = chrome.execute_script(f"window.dispatchEvent(new Event('beforeprint')); return {opened}")
    after = chrome.execute_script(f"window.dispatchEvent(new Event('afterprint')); return {opened}")
    assert during == chrome.execute_script("return document.querySelectorAll('details').length")
    assert after == 0


def test_everything_is_there_without_javascript(report_file: Path, tmp_path: Path) -> None:
    with open_browser(tmp_path / "profile", javascript=False) as chrome:
        chrome.get(report_file.as_uri())
        text = chrome.find_element("tag name", "main").text
        for expected in ("Do not ship", "RAG accuracy falls", "Flip ledger", "Fidelity certificate", "TTFT p95"):
            assert expected in text
        assert not chrome.find_element("id", "flip-filter").is_displayed()
        chrome.find_element("css selector", "#flips details:not([open]) summary").click()
        assert chrome.get_log("browser") == []
