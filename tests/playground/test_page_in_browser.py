"""The playground in a real browser: play, draw, answer, reload, two tabs, and names that are script.

The server runs as plain Python, as it does for people, so that nothing is compiled. They run with `make test-ci`.
Without Chromium they are skipped, unless ONEBIT_NEEDS_BROWSER is set.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from browser import NEEDS_BROWSER, SCRIPT, SECONDS, launched

pytestmark = NEEDS_BROWSER


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    command = [sys.executable, "-m", "onebit", "playground", "--no-browser", "--port", "0"]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found is not None
        yield found[0]
        server.terminate()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as started:
        yield started


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    context = browser.new_context(reduced_motion="reduce", viewport={"width": 360, "height": 740})
    context.set_default_timeout(1000 * SECONDS)
    asked: list[str] = []
    faults: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    opened = context.new_page()
    opened.on("pageerror", lambda error: faults.append(str(error)))
    # A table that is refused is no fault of the page; where the machine is busy it waits and asks again.
    fine = (200, 201, 204, 422, 503)
    context.on(
        "response", lambda reply: faults.append(f"{reply.status} {reply.url}") if reply.status not in fine else None
    )
    opened.goto(address)
    opened.wait_for_selector("#play:enabled")
    opened.wait_for_function("document.activeElement.id === 'play'")
    yield opened
    context.close()
    assert faults == []
    assert [url for url in asked if not url.startswith(address)] == []  # nothing leaves the machine


def choose_light_learners(page: Page) -> None:
    page.locator("#settings").evaluate("details => { details.open = true }")
    page.check("#learners input[value=chance]")
    page.uncheck("#learners input[value=svm]")
    expect(page.locator("#pictures figure")).to_have_count(2)


def the_round(page: Page) -> int:
    found = re.match(r"round (\S+) of", page.inner_text("#round"))
    assert found is not None
    return int(re.sub(r"\D", "", found[1]))


def wait_for_round(page: Page, least: int) -> None:
    page.wait_for_function(
        "least => Number(document.querySelector('#round').textContent.split(' of ')[0].replace(/\\D/g, '')) >= least",
        arg=least,
    )


def test_play_look_reload_and_two_tabs(page: Page, address: str) -> None:
    page.keyboard.press("Enter")  # one key, for the button has the focus, and BanditSVM plays
    wait_for_round(page, 3)
    page.click("#play")
    stopped = the_round(page)
    page.locator("#sentence").click()
    page.keyboard.press("ArrowRight")
    wait_for_round(page, stopped + 1)
    expect(page.locator("#live")).to_contain_text("Mistakes: BanditSVM")
    # Who says what, by mouse and by keyboard.
    page.hover("#pictures canvas >> nth=0", position={"x": 40, "y": 40})
    expect(page.locator("#voices tbody tr")).to_have_count(6)
    expect(page.locator("#voices")).to_contain_text("Gaussian")
    page.locator("#pictures canvas").nth(1).focus()
    page.keyboard.press("ArrowUp")
    expect(page.locator("#voices .said")).to_contain_text("BanditPerceptron says")
    page.check("#promises")
    expect(page.locator("#score")).to_contain_text("strongly separable")
    # A reload goes on where it was; another tab has a session of its own.
    reached = the_round(page)
    page.reload()
    wait_for_round(page, reached)
    assert the_round(page) == reached
    other = page.context.new_page()
    other.goto(address)
    other.wait_for_selector("#play:enabled")
    assert the_round(other) == 0
    other.wait_for_selector("#step:enabled")
    other.click("#step")
    wait_for_round(other, 1)
    assert the_round(page) == reached
    # No part of the page is wider than the phone.
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_draw_and_a_table_whose_names_are_script(page: Page, tmp_path: Path) -> None:
    page.click("#tab-draw")
    choose_light_learners(page)
    page.click("#play")
    expect(page.locator("#problem")).to_contain_text("Draw a few points first")
    square = page.locator("#pictures canvas").first
    for colour, x in (("blue", 30), ("green", 120)):
        page.check(f"#colours input[value={colour}]")
        square.click(position={"x": x, "y": 60})
    wait_for_round(page, 2)
    expect(page.locator("#voices .said")).to_be_visible()
    with page.expect_response("**/opinions?*"):  # the pointer rests, and what is said there has changed
        page.evaluate("document.querySelector('#step').click()")
    page.keyboard.press("Escape")
    square.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    wait_for_round(page, 3)
    page.click("#play")
    wait_for_round(page, 6)
    page.click("#play")
    # What is drawn stays, however quickly other things are changed.
    learners = page.locator("#learners")
    learners.evaluate("box => ['banditron', 'told'].forEach(key => box.querySelector(`[value=${key}]`).click())")
    expect(page.locator("#pictures figure")).to_have_count(4)
    page.click("#step")
    wait_for_round(page, 1)
    # A table of one's own.
    page.click("#tab-watch")
    choose_light_learners(page)
    page.select_option("#stream", "csv")
    expect(page.locator("#sentence")).to_contain_text("Choose a table")
    expect(page.locator("#pictures figure")).to_have_count(0)
    table = tmp_path / "<b>flowers<b>.csv"
    lines = [f"{i % 5},{i % 3},{SCRIPT if i % 2 else 'plain'}" for i in range(30)]
    table.write_text("\n".join(["size,age,class", *lines]))
    page.set_input_files("#file", table)
    expect(page.locator("#key")).to_contain_text(SCRIPT[:20])
    page.click("#step")
    wait_for_round(page, 1)
    expect(page.locator("#rounds")).not_to_contain_text("none yet")
    # However quickly streams are chosen, the last one is shown.
    for stream in ("wedges", "iris", "paper_strong"):
        page.select_option("#stream", stream)
    expect(page.locator("#sentence")).to_contain_text("on a circle")
    expect(page.locator("#problem")).to_be_hidden()
    page.select_option("#stream", "csv")
    broken = tmp_path / "broken.csv"
    broken.write_text("a,class\n1,only\n2,only\n")
    with page.expect_response(lambda response: response.status == 422):
        page.set_input_files("#file", broken)
    expect(page.locator("#problem")).to_contain_text("broken.csv")
    assert page.title() == "onebit playground"
    assert page.locator("img").count() == 0


def test_it_asks_and_is_answered_by_keys_and_clicks(page: Page) -> None:
    page.click("#tab-asker")
    asked = page.locator("#asker-numbers dd").nth(1)
    for answered, key in enumerate(("Enter", "7", "")):
        expect(page.locator("#asker-says")).to_contain_text("Which digit")
        expect(asked).to_contain_text(str(answered))
        if answered:  # at first the tab has the focus
            page.locator("#asker-says").click()
        if key:
            page.keyboard.press(key)
        else:
            page.click("#asker-labels .main-button")
    expect(asked).to_contain_text("3")
    expect(page.locator("#asker-latest li")).to_have_count(3)
    page.reload()
    expect(asked).to_contain_text("3")
    page.select_option("#asker-limit", "0.02")
    expect(asked).to_contain_text("0")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_be_the_oracle_of_names_that_are_script(page: Page, address: str) -> None:
    page.goto(f"{address}?learner=perceptron")
    page.wait_for_selector("#play:enabled")
    page.click("#tab-oracle")
    page.fill("#names", f"odd, {SCRIPT[:40]}")
    page.keyboard.press("Enter")
    expect(page.locator("#guess")).not_to_be_empty()
    for answered, key in enumerate(("y", "n", "ArrowRight", "ArrowLeft"), start=1):
        page.keyboard.press(key)
        expect(page.locator("#oracle-score")).to_contain_text(f"of {answered} right")
    page.click("#wrong")
    expect(page.locator("#oracle-score")).to_contain_text("2 of 5 right")
    expect(page.locator("#piles .pile")).to_have_count(2)
    expect(page.locator("#piles")).to_contain_text(SCRIPT[:20])
    # A key that is held is one answer.
    held = "new KeyboardEvent('keydown', { key: 'y', bubbles: true, repeat: true })"
    page.evaluate(f"document.body.dispatchEvent({held})")
    page.reload()
    expect(page.locator("#oracle-score")).to_contain_text("2 of 5 right")
    assert page.title() == "onebit playground"
    assert page.locator("img").count() == 0
