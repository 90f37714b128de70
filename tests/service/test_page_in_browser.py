"""The desk in a real browser: look, answer, correct, two tabs, tokens, a service that goes and comes back.

The service runs as plain Python, so that nothing is compiled. They run with `make test-ci`. Without Chromium they are
skipped, unless ONEBIT_NEEDS_BROWSER is set.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

import onebit
from browser import NEEDS_BROWSER, SCRIPT, SECONDS, launched
from onebit.service.access import Tokens
from served import serving_here

pytestmark = NEEDS_BROWSER


class Server:
    """``onebit serve`` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, 0
        self.start()

    def start(self) -> None:
        """Start it, at the port where it was before."""
        command = [sys.executable, "-m", "onebit", "serve", str(self.folder), "--port", str(self.port)]
        environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        assert self._process.stderr is not None
        for line in self._process.stderr:
            found = re.search(r"listening on (http://\S+:(\d+))", json.loads(line)["says"])
            if found is not None:
                self.address, self.port = found[1], int(found[2])
                return

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()
        self._process.communicate()

    def stop(self) -> None:
        """End it as an operator would."""
        self._process.terminate()
        self._process.communicate()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as started:
        yield started


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(tmp_path_factory.mktemp("served"))
    yield started
    started.stop()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    opened = browser.new_context(reduced_motion="reduce", viewport={"width": 390, "height": 844})
    opened.set_default_timeout(1000 * SECONDS)
    asked: list[str] = []
    faults: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("weberror", lambda error: faults.append(str(error.error)))
    yield opened
    assert faults == []
    assert {re.match(r"\w+://[^:/]+", url)[0] for url in asked} <= {"http://127.0.0.1"}  # type: ignore[index]
    assert not [url for url in asked if "onebit_" in url], "no token in any address"
    assert opened.cookies() == []
    opened.close()


def fill(address: str, name: str, n: int, **told: Any) -> list[str]:
    """Make a decider with so many open tickets, and return their ids."""
    with onebit.Client(address) as client:
        desk = client.create(name, learner="UniformGuess", **told)
        return [desk.guess({"subject": f"{SCRIPT} {i}", SCRIPT: i}, key=f"{name} {SCRIPT} {i}").id for i in range(n)]


def server_events(server: Server, name: str, kind: str) -> list[Any]:
    with onebit.Client(server.address) as client:
        return [event for event in client.decider(name).events() if event["kind"] == kind]


def number(page: Page, name: str) -> Any:
    return page.locator("#numbers div", has=page.locator("dt", has_text=re.compile(f"^{name}$"))).locator("dd")


def is_unharmed(page: Page) -> None:
    assert "stolen" not in page.title()
    assert page.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_look_answer_correct_withdraw_and_reload(context: BrowserContext, server: Server) -> None:
    ids = fill(server.address, "shop/routing", 9, classes=["plain", SCRIPT])
    fill(server.address, "lab/empty", 0, classes=[1, 2])
    page = context.new_page()
    page.goto(server.address)
    row = page.locator("#deciders tbody tr", has_text="shop/routing")
    expect(row.locator("td").nth(2)).to_have_text("9")
    row.locator("a").focus()
    page.wait_for_timeout(2500)  # it has looked again
    assert page.evaluate("document.activeElement.textContent") == "shop/routing"
    page.keyboard.press("Enter")
    expect(page.locator("#open > li")).to_have_count(6)
    expect(page.locator("#open")).to_contain_text(f"{SCRIPT} 8")
    expect(page.locator("#classes")).to_contain_text(SCRIPT)
    # Answer the newest with one key; the next one has the focus.
    page.locator("#open > li").first.get_by_role("button", name="Right").focus()
    page.keyboard.down("Enter")
    expect(number(page, "answered")).to_have_text("1")
    assert page.evaluate("document.activeElement.ariaLabel").startswith("Right")
    for _ in range(3):
        page.keyboard.down("Enter")  # it is held down, and says no more than it said
    page.keyboard.up("Enter")
    page.wait_for_timeout(500)
    assert len(server_events(server, "shop/routing", "feedback")) == 1
    expect(page.locator("#live")).to_have_text("Told right.")
    expect(page.locator("#open > li .verdict")).to_have_count(0)  # read, and gone
    # The pages of the list.
    page.get_by_role("button", name="Older").click()
    expect(page.locator("#open > li")).to_have_count(2)
    page.get_by_role("button", name="Newer").click()
    expect(page.locator("#open > li")).to_have_count(6)
    # Look up by key, correct, withdraw; and what is not there.
    page.fill("#ticket-id", f"shop/routing {SCRIPT} 8")
    page.keyboard.press("Enter")
    expect(page.locator("#ticket .verdict")).to_have_text("✓ right")
    page.get_by_role("button", name="It was wrong").click()
    expect(page.locator("#ticket .verdict")).to_have_text("✗ wrong")
    expect(number(page, "mistakes")).to_have_text("1")
    page.get_by_role("button", name="Withdraw").click()
    expect(page.locator("#ticket .verdict")).to_have_text("its answer was withdrawn")
    expect(number(page, "mistakes")).to_have_text("0")
    page.fill("#ticket-id", SCRIPT)
    page.keyboard.press("Enter")
    expect(page.locator("#ticket")).to_contain_text("there is no ticket")
    # A ticket that is open is answered where it is shown.
    page.fill("#ticket-id", ids[0])
    page.keyboard.press("Enter")
    page.locator("#ticket").get_by_role("button", name="Wrong").click()
    expect(page.locator("#ticket .verdict")).to_have_text("✗ wrong")
    page.locator("#columns-details summary").click()
    expect(page.locator("#columns-table")).to_contain_text(SCRIPT)
    page.locator("#course-details summary").click()
    expect(page.locator("#course-table tbody tr")).not_to_have_count(0)
    page.check("#by-time")
    is_unharmed(page)
    page.reload()
    expect(number(page, "mistakes")).to_have_text("1")
    page.goto(f"{server.address}/desk/lab/empty")
    expect(page.locator("#open")).to_contain_text("No guess has come yet")
    page.goto(f"{server.address}/desk/lab/nothing")
    expect(page.locator("#problem")).to_contain_text("there is no decider lab/nothing")


def test_two_tabs_and_an_alarm(context: BrowserContext, server: Server) -> None:
    ids = fill(server.address, "shop/two", 2, classes=["a", "b"])
    one, two = context.new_page(), context.new_page()
    for page in (one, two):
        page.goto(f"{server.address}/desk/shop/two")
        expect(page.locator("#open > li")).to_have_count(2)
    # Both press at the newest: the second is told that it is known otherwise.
    two.evaluate("document.querySelector('#open > li').dataset.until = String(Date.now() + 60000)")
    one.locator("#open > li").first.get_by_role("button", name="Right").click()
    expect(number(one, "answered")).to_have_text("1")
    two.locator("#open > li").first.get_by_role("button", name="Wrong").click()
    expect(two.locator("#problem")).to_contain_text("was told True before")
    expect(number(two, "answered")).to_have_text("1")
    with onebit.Client(server.address) as client:
        desk = client.decider("shop/two")
        desk.tell_many((ticket, False) for ticket in desk.guess_many([{"x": 1}] * 60))
        desk.correct_answer(ids[1], False)
    expect(one.locator("#alarms")).to_contain_text("all wrong")
    expect(one.locator("#alarms")).to_contain_text("Likely cause")


def test_a_token_is_asked_for_and_kept_in_the_tab(context: BrowserContext, tmp_path: Path) -> None:
    server = Server(tmp_path)
    try:
        fill(server.address, "shop/routing", 3, classes=["a", "b"])
        token = {name: Tokens(tmp_path).add(name, [name], ["shop"]) for name in ("read", "play", "admin")}
        page = context.new_page()
        page.goto(f"{server.address}/desk/shop/routing")

        def show(text: str) -> None:
            expect(page.locator("#token-text")).to_be_focused()
            expect(page.locator("#desk")).to_be_hidden()
            page.keyboard.type(text)
            page.keyboard.press("Enter")

        show("onebit_nonsense")
        expect(page.locator("#why-token")).to_contain_text("not known here")
        show(token["play"])
        expect(page.locator("#problem")).to_have_text("token 'play' has the role play; this needs read")
        page.get_by_role("button", name="Forget the token").click()
        show(token["read"])
        expect(page.locator("#open > li")).to_have_count(3)
        expect(page.locator("#may-not")).to_contain_text("answering needs the role play")
        for button in page.locator("#open .answers button").all():
            expect(button).to_be_disabled()
        page.reload()
        expect(page.locator("#caller")).to_have_text("read: read")
        other = context.new_page()
        other.goto(server.address)
        expect(other.locator("#token-text")).to_be_focused()  # another tab knows nothing of it
        page.get_by_role("button", name="Forget the token").click()
        show(token["admin"])
        page.locator("#open > li").first.get_by_role("button", name="Wrong").click()
        expect(number(page, "mistakes")).to_have_text("1")
        is_unharmed(page)
    finally:
        server.stop()


def test_a_service_that_dies_and_comes_back(context: BrowserContext, tmp_path: Path) -> None:
    server = Server(tmp_path)
    fill(server.address, "shop/routing", 2, classes=["a", "b"])
    page = context.new_page()
    page.goto(f"{server.address}/desk/shop/routing")
    expect(page.locator("#open > li")).to_have_count(2)
    server.kill()
    expect(page.locator("#connection")).to_contain_text("does not answer")
    page.locator("#open > li").first.get_by_role("button", name="Right").click()
    expect(page.locator("#open > li").first.get_by_role("button", name="Right")).to_be_enabled()
    server.start()
    try:
        expect(page.locator("#connection")).to_be_empty(timeout=60_000)
        page.locator("#open > li").first.get_by_role("button", name="Right").click()
        expect(number(page, "answered")).to_have_text("1")
    finally:
        server.stop()


def test_a_proxy_keeps_the_service_under_a_path(context: BrowserContext, tmp_path: Path) -> None:
    with serving_here(tmp_path, under="/tools/onebit") as address:
        fill(address, "shop/routing", 3, classes=["a", "b"])
        token = Tokens(tmp_path).add("all", ["admin"], ["*"])
        time.sleep(1.1)  # the service looks again
        page = context.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{address}/")
        expect(page.locator("#token-text")).to_be_focused()
        page.keyboard.type(token)
        page.keyboard.press("Enter")
        page.locator("#deciders a", has_text="shop/routing").click()
        expect(page).to_have_url(f"{address}/desk/shop/routing")
        page.locator("#open > li").first.get_by_role("button", name="Wrong").click()
        expect(number(page, "mistakes")).to_have_text("1")
        page.locator("#home").click()
        expect(page).to_have_url(f"{address}/")
        expect(page.locator("#deciders")).to_contain_text("shop/routing")
        page.locator("footer a").click()
        page.locator("a").click()
        assert page.evaluate("JSON.parse(document.body.textContent).info.title") == "onebit"
        assert [url for url in asked if not url.startswith(f"{address}/")] == []


def test_nothing_moves_under_the_pointer(context: BrowserContext, server: Server) -> None:
    """New tickets come first in the list; a press meant for one must not reach another."""
    newest = fill(server.address, "shop/still", 3, classes=["a", "b"])[-1]
    page = context.new_page()
    page.goto(f"{server.address}/desk/shop/still")
    first = page.locator("#open > li").first
    expect(first).to_have_attribute("data-id", newest)
    first.get_by_role("button", name="Right").hover()
    with onebit.Client(server.address) as client:
        later = client.decider("shop/still").guess({"subject": "later"}).id
    expect(number(page, "open")).to_contain_text("4oldest")  # it has looked again
    page.wait_for_timeout(300)
    expect(first).to_have_attribute("data-id", newest)
    page.mouse.move(1, 1)
    expect(first).to_have_attribute("data-id", later)


def test_a_queue_of_questions_is_answered_by_keys_and_clicks(context: BrowserContext, server: Server) -> None:
    ids = fill(server.address, "shop/asking", 5, classes=["plain", SCRIPT, "other"], wrong_at_most=0.02)
    page = context.new_page()
    page.goto(f"{server.address}/desk/shop/asking")
    expect(page.locator("#asked-count")).to_have_text("5 waiting")
    expect(page.locator("#asked-says")).to_contain_text("At most 2.0 %")
    page.select_option("#asked-order", "oldest")
    page.wait_for_timeout(2500)  # it has looked again
    card = page.locator("#asked .shown")
    expect(card).to_have_attribute("data-id", ids[0])
    expect(card).to_contain_text(f"{SCRIPT} 0")
    ranking = card.locator(".labels button").all_inner_texts()
    page.locator("h1").click()  # keys count wherever the focus is
    page.keyboard.press("2")
    expect(card).to_have_attribute("data-id", ids[1])
    page.keyboard.press("0")  # later
    expect(card).to_have_attribute("data-id", ids[2])
    card.get_by_role("button", name=ranking[2].split(maxsplit=1)[1]).click()
    expect(card).to_have_attribute("data-id", ids[3])
    expect(page.locator("#asked-count")).to_have_text("3 waiting")
    # Digits that are typed into a field are no labels.
    page.fill("#ticket-id", "")
    page.locator("#ticket-id").press_sequentially("123")
    page.wait_for_timeout(500)
    events = server_events(server, "shop/asking", "feedback")
    assert [(each["ticket"], each["body"]["label"]) for each in events] == [
        (ids[0], ranking[1].split(maxsplit=1)[1]),
        (ids[2], ranking[2].split(maxsplit=1)[1]),
    ]
    # Somebody else answers the one in front: it goes, and the next comes.
    with onebit.Client(server.address) as client:
        client.decider("shop/asking").label(ids[3], "plain")
    expect(card).to_have_attribute("data-id", re.compile(f"{ids[1]}|{ids[4]}"))
    expect(page.locator("#asked-count")).to_have_text("2 waiting")
    page.locator("#limits-details summary").click()
    expect(page.locator("#limit-says")).to_contain_text("too few")
    page.locator("#sureness-details summary").click()
    expect(page.locator("#sureness-says")).to_contain_text("too few")
    expect(number(page, "asked")).to_contain_text("100 %")
    expect(number(page, "answered")).to_contain_text("and 3 that were asked")
    expect(number(page, "share wrong|wrong of those decided alone")).to_have_text("–limit 2.0 %")
    is_unharmed(page)


def test_what_was_put_off_comes_last_and_the_ticket_in_front_stays(context: BrowserContext, server: Server) -> None:
    ids = fill(server.address, "shop/later", 4, classes=["a", "b"], wrong_at_most=0.02)
    page = context.new_page()
    page.goto(f"{server.address}/desk/shop/later")
    card = page.locator("#asked .shown")
    expect(card).to_have_attribute("data-id", ids[0])
    for following in ids[1:3]:
        page.keyboard.press("0")  # later
        expect(card).to_have_attribute("data-id", following)
    page.wait_for_timeout(2500)  # it has looked again
    page.keyboard.press("1")
    expect(card).to_have_attribute("data-id", ids[3])
    page.keyboard.press("1")
    expect(card).to_have_attribute("data-id", ids[0])


def test_a_press_for_a_ticket_that_was_answered_elsewhere_labels_no_other(
    context: BrowserContext, server: Server
) -> None:
    ids = fill(server.address, "shop/shared", 3, classes=["a", "b"], wrong_at_most=0.02)
    page = context.new_page()
    page.goto(f"{server.address}/desk/shop/shared")
    card = page.locator("#asked .shown")
    expect(card).to_have_attribute("data-id", ids[0])
    # The press comes at the moment when the next ticket does, as from a person who is about to answer.
    page.evaluate(
        """() => new MutationObserver(() => {
            document.dispatchEvent(new KeyboardEvent("keydown", {key: "1"}));
            document.querySelector("#asked .labels button")?.click();
        }).observe(document.getElementById("asked"), {childList: true})"""
    )
    with onebit.Client(server.address) as client:
        client.decider("shop/shared").label(ids[0], "a")
    expect(card).to_have_attribute("data-id", ids[1])
    expect(card).to_contain_text("answered elsewhere")
    page.wait_for_timeout(1000)
    expect(card).to_have_attribute("data-id", ids[1])
    assert len(server_events(server, "shop/shared", "feedback")) == 1


def test_the_ticket_in_front_stays_when_many_wait(context: BrowserContext, server: Server) -> None:
    """The page lists the first 30 alone; when others come before, the one in front is looked for by itself."""
    ids = fill(server.address, "shop/many", 3, classes=["a", "b"], wrong_at_most=0.02)
    page = context.new_page()
    # As if 30 others were less sure.
    is_first = [True]
    page.route("**/shop/many/asked?*", lambda route: others_first(route, ids[0], is_first[0]))
    page.goto(f"{server.address}/desk/shop/many")
    card = page.locator("#asked .shown")
    expect(card).to_have_attribute("data-id", ids[0])
    is_first[0] = False
    page.wait_for_timeout(3000)  # it has looked again
    expect(card).to_have_attribute("data-id", ids[0])
    with onebit.Client(server.address) as client:
        client.decider("shop/many").label(ids[0], "a")
    expect(card).to_have_attribute("data-id", ids[1])


def others_first(route: Route, id: str, is_listed: bool) -> None:
    """Answer a look at the queue without a ticket, as if there were more."""
    response = route.fetch()
    found = response.json()
    if not is_listed:
        found = {"tickets": [each for each in found["tickets"] if each["id"] != id], "has_more": True}
    route.fulfill(response=response, json=found)
