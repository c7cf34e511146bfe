"""The report in a headless Chromium, which works it as a reader does."""

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lab.tests.report.corpus import IMAGE, LONG, SCRIPT, SOURCE, TARGET, write_corpus
from syncattn_fairseq.inference.answers import Alignment, Pair, Parse, Sentence, Translation
from syncattn_lab.cli import show, show_page
from syncattn_lab.report.overview import COLOURS

webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="no browser; on Debian: apt install chromium chromium-driver"
)


class Attentive:
    """A model that knows the attention of the third sentence and reads the others differently."""

    source_segmenter = target_segmenter = SimpleNamespace(describe_unknown=str, scheme="none")

    def align(self, sources: Sequence[str], targets: Sequence[str]) -> list[Alignment]:
        cross = np.array([[0, 0.25, 0, 0.6], [0.1, 0, 0, 0.9]])
        return [
            Alignment(self.read(source), self.read(target), cross)
            for source, target in zip(sources, targets, strict=True)
        ]

    def parse(self, sources: Sequence[str], targets: Sequence[str]) -> list[Pair[Parse]]:
        decoder = np.array([[0.75, 0], [0.3, 0.5]])
        parses = [Parse(self.read(target), decoder) for target in targets]
        return [Pair(Translation(parse.sentence), None, parse) for parse in parses]

    def read(self, text: str) -> Sentence:
        return Sentence(text.split() if text in (SOURCE[2], TARGET[2]) else [], "none")


class Reader:
    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def wait(self, condition: Callable[[], Any]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, self.text("body")
            time.sleep(0.05)

    def find(self, selector: str) -> list[Any]:
        found: list[Any] = self.driver.find_elements("css selector", selector)
        return found

    def text(self, selector: str) -> str:
        return "\n".join(element.text for element in self.find(selector))

    def numbers(self) -> list[str]:
        return [element.text for element in self.find("#list .n:first-child")]

    def captions(self) -> list[str]:
        return [element.text for element in self.find("#sentence figcaption b")]

    def places(self, words: str) -> list[float]:
        """Return where words stand in the first picture of the sentence, from the left."""
        script = """
            const places = {};
            for (const text of document.querySelector("#sentence figure svg.marks")
                .querySelectorAll(".mark-text text"))
                places[text.textContent] = text.getBoundingClientRect().left;
            return arguments[0].map((word) => places[word]);"""
        found: list[float] = self.driver.execute_script(script, words.split())
        return found

    def choose(self, selector: str, value: str) -> None:
        script = """
            const element = document.querySelector(arguments[0]);
            element.value = arguments[1];
            element.dispatchEvent(new Event("input", { bubbles: true }));"""
        self.driver.execute_script(script, selector, value)

    def open(self, number: int) -> None:
        self.driver.execute_script(f"location.hash = '#{number}'")
        self.wait(lambda: self.text("#list [aria-current] .n:first-child") == str(number))
        self.wait(
            lambda: len(self.find("#sentence figure")) == len(self.find("#sentence svg.marks"))
        )


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in (
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
        *("--disable-dev-shm-usage", "--no-first-run", "--window-size=1400,1000"),
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=DRIVER)
    browser = webdriver.Chrome(options=options, service=service)
    yield browser
    browser.quit()


@pytest.fixture(scope="module")
def reader(driver: Any, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    folder = tmp_path_factory.mktemp("report")
    named = write_corpus(folder)
    log = "x | INFO | train_inner | epoch 001: 5 / 9 loss=2.5, num_updates=5, lr=1\n"
    log += "x | INFO | valid | epoch 001 | loss 2.4 | num_updates 5\n"
    (folder / "log").write_text(log)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(show_page, "load_model", lambda *_, **__: Attentive())
        options = ["--log", "LPSI", "log", "--attention", "LPSI", "model"]
        assert show.main([*named, *options, "--html", "r.html"]) == 0
    driver.get((folder / "r.html").as_uri())
    page = Reader(driver)
    page.wait(lambda: page.find("html[data-ready]"))
    page.wait(lambda: len(page.find(".overview")) == len(page.find(".overview svg.marks")) > 0)
    return page


def test_search_and_filters(reader):
    assert reader.text("#examples dd").startswith(SOURCE[3]), "where a system loses most"
    reader.find("#tab-browser")[0].click()
    assert reader.text("#list [aria-current] .n").split() == ["4", "−100.0"]
    assert reader.numbers() == list("41235")
    reader.choose("#order", "corpus")
    assert reader.numbers() == ["1", "2", "3", "4", "5"]
    assert reader.text("#found") == "5 of 5 sentences"
    reader.find("#search")[0].send_keys("BARK")
    assert reader.numbers() == ["1"]
    reader.choose("#search", "読")
    assert reader.numbers() == ["3"]
    reader.choose("#search", "")
    reader.choose("#longest", "4")
    assert reader.numbers() == ["1", "2", "3", "4"]
    reader.choose("#shortest", "4")
    assert reader.numbers() == ["3"]
    reader.choose("#shortest", "")
    reader.choose("#longest", "")
    for which, numbers in (
        ("translations", "14"),
        ("trees", ""),
        ("missing", "34"),
        ("untranslated", ""),
    ):
        reader.choose("#which", which)
        assert reader.numbers() == list(numbers), which
    assert reader.text("#found") == "0 of 5 sentences; choose other filters"
    assert not reader.find("#head")[0].is_displayed()
    off = [option.get_attribute("value") for option in reader.find("#which option[disabled]")]
    assert off == ["untranslated", "parses", "alignments", "trees"]
    reader.choose("#which", "missing")
    reader.choose("#search", "昨日")
    assert reader.text("#found") == "1 of 5 sentences; the one shown is not among them"
    reader.choose("#search", "")
    reader.choose("#which", "")
    assert reader.text("#found") == "5 of 5 sentences"


def test_orders(reader):
    """Each order is of any system, or of one."""
    for order, numbers in (
        *(("long", "53124"), ("short", "12435"), ("loss", "41235"), ("worst", "34125")),
        *(("missing", "43125"), ("added", "34125"), ("moved", "12345")),
    ):
        reader.choose("#order", order)
        assert reader.numbers() == list(numbers), order
    assert reader.text("#unit") == "words"
    shown = [item.text for item in reader.find("#list .n:last-child")]
    assert shown == ["2", "0", "0", "0", "0"], "what they are sorted by"
    reader.choose("#order", "missing")
    reader.choose("#of", "0")
    assert reader.numbers() == list("31245"), "the first system translates the fourth"
    reader.choose("#which", "missing")
    assert reader.numbers() == ["3"]
    reader.choose("#which", "")
    reader.choose("#of", "")
    reader.choose("#order", "corpus")


def test_marks(reader):
    reader.open(1)
    second = reader.find("#sentence dd")[3]
    assert second.text == "bellte Hund der", "arrows are no text"
    moved = second.find_elements("css selector", ".moved")
    assert [(word.text, word.get_attribute("class")) for word in moved] == [
        *(("bellte", "moved right"), ("Hund", "moved right"))
    ]
    reader.open(4)
    of_third = reader.find("#sentence dd")[4]
    kinds = [(word.tag_name, word.text) for word in of_third.find_elements("css selector", "*")]
    assert kinds == [("del", "the boy reads"), ("ins", "x")]
    note = of_third.find_element("css selector", "del").get_attribute("title")
    assert note == "in the reference, but not here; source: הילד קורא"
    assert not reader.find("#sentence dd")[2].find_elements("css selector", "ins, del, .moved")


def test_systems_side_by_side(reader):
    reader.open(1)
    headings = [element.text.split("\n")[0] for element in reader.find("#sentence h2")]
    assert headings == [
        *("Sentence 1", "Parse of the source", "Parse of the reference"),
        "Alignment of the source with the reference",
        *("Tree of the source", "Tree of the reference", "Distances and gates of LPSI"),
    ]
    parser = f"P {SCRIPT}"
    gates = ["Source: distance before each subword", "Source: gates of layer 1, for τ = 1"]
    gates += [title.replace("Source", "Reference") for title in gates]
    all_captions = [*(parser, parser, "Plain", parser, "LPSI", "gold", "LPSI", "LPSI"), *gates]
    assert reader.captions() == all_captions
    shares = [text for text in reader.text("#sentence figcaption").split("\n") if "%" in text]
    # One head of three is right; of the target, one of the two that a decoder can look at.
    shown = [text.split("\n")[0].removeprefix(parser) for text in shares]
    assert shown == [" 33 % (1 of 3)", " 50 % (1 of 2)"]
    assert reader.find("#sentence dd .moved"), "where the translation is not the reference"
    switch = reader.find("#switches button")[1]
    switch.click()
    assert switch.get_attribute("aria-pressed") == "false"
    # The gold parses take the place of those of the only parser.
    shown = ["gold", "gold", "Plain", "LPSI", "gold", "LPSI", "LPSI", *gates]
    assert reader.captions() == shown
    assert not reader.find("#sentence dd .moved")
    switch.click()
    assert reader.captions() == all_captions
    layers = reader.find("#sentence select")[0].text.split("\n")
    assert [layer.strip() for layer in layers] == [
        *("alignment head", "layer 1", "layer 2", "layer 10")
    ]
    reader.choose("#sentence select", "1")
    reader.find("#sentence select")[0].find_elements("css selector", "option")[1].click()
    reader.wait(lambda: reader.find("#sentence select")[0].get_attribute("value") == "1")


def test_charts_have_names_and_one_stop_of_the_tab_key(reader):
    reader.find("#tab-summary")[0].click()
    menus = reader.find("#summary .vega-embed summary")
    names = [menu.get_attribute("aria-label") for menu in menus]
    assert names[:2] == [
        "Save: By label of the source word",
        "Save: By arc from the source word to its parent",
    ]
    assert len({*names}) == len(names) == 10
    menus[0].send_keys("\ue014")  # the right arrow
    assert [menu.get_attribute("tabindex") for menu in menus] == ["-1", "0", *["-1"] * 8]
    assert reader.driver.switch_to.active_element == menus[1]


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_all_text_is_legible(reader, mode):
    """It looks at the contrast of text and its ground; charts apart, and what is turned over."""
    media = {"features": [{"name": "prefers-color-scheme", "value": mode}]}
    reader.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    for number in (1, 4):
        reader.open(number)
        pairs = reader.driver.execute_script(
            """
            const pairs = [];
            for (const element of document.querySelectorAll("body *")) {
                const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
                if (!own || !element.checkVisibility() || element.closest(arguments[0])) continue;
                let under = element;
                const ground = (e) => getComputedStyle(e).backgroundColor;
                while (ground(under) === "rgba(0, 0, 0, 0)") under = under.parentElement;
                pairs.push([getComputedStyle(element).color, ground(under), element.textContent]);
            }
            return pairs;""",
            "svg" if mode == "light" else "svg, i, #switches button",
        )
        assert len(pairs) > 20
        for text, ground, content in pairs:
            light, dim = sorted(map(luminance, (text, ground)), reverse=True)
            assert (light + 0.05) / (dim + 0.05) >= 4.5, (text, ground, content)


def luminance(colour: str) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (int(number) / 255 for number in re.findall(r"\d+", colour)[:3])
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_markup_in_the_data_is_text(reader):
    reader.open(2)
    assert reader.text("#sentence dd").startswith(f"{SCRIPT} {IMAGE}")
    assert SCRIPT in reader.text("#sentence svg.marks"), "as a word and as a label"
    assert SCRIPT in reader.text("#switches")
    assert not reader.find("img")
    kinds = [element.get_attribute("type") for element in reader.find("script")]
    assert kinds == ["text/plain", "", ""]


def test_scripts_that_run_from_right_to_left(reader):
    reader.open(4)
    places = reader.places("הילד קורא ספר")
    assert places == sorted(places, reverse=True) and len(set(places)) == 3
    reader.open(3)
    places = reader.places("昨日 本 を 読んだ")
    assert places == sorted(places) and len(set(places)) == 4


def test_attention_is_shown_between_words_with_rings_for_gold(reader):
    reader.open(3)
    assert "Attention of LPSI" in reader.text("#sentence h2")
    cross, decoder = reader.find("#sentence .systems")[-2].find_elements("css selector", "figure")
    assert [figure.text[:2] for figure in (cross, decoder)] == ["C:", "D:"]

    def shown(figure: Any, kind: str) -> list[str]:
        marks = figure.find_elements("css selector", f".mark-{kind} path")
        return [mark.get_attribute("aria-label") for mark in marks]

    assert "left: 19; top: 0; right: 38; bottom: 19; weight: 0.25; text: I – 本: 25 %" in shown(
        cross, "rect"
    )
    texts = [label.split("text: ")[1] for label in shown(decoder, "rect")]
    assert texts == ["I – I: 75 %", "read – I: 30 %", "read – read: 50 %"]
    assert shown(cross, "symbol") == [
        *("middle_x: 66.5; middle_y: 9.5", "middle_x: 66.5; middle_y: 28.5")
    ]
    assert shown(decoder, "symbol") == [
        *("middle_x: 9.5; middle_y: 9.5", "middle_x: 9.5; middle_y: 28.5")
    ]


def test_long_sentences_and_missing_parses(reader):
    reader.open(5)
    assert "no gold parse" in reader.text("#sentence figcaption")
    assert "there is no gold parse" in reader.text("#sentence .key")
    count = "return document.querySelector('#sentence svg.marks').textContent.length"
    assert reader.driver.execute_script(count) == LONG, "each word is a letter"


def test_nothing_was_fetched_and_nothing_went_wrong(reader):
    """It looks back at all that the others did with the page."""
    reader.driver.execute_script("return 1")  # would fail if an alert were open
    assert reader.driver.get_log("browser") == []
    messages = [json.loads(e["message"])["message"] for e in reader.driver.get_log("performance")]
    asked = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert asked, "the page itself"
    assert {Path(url).name for url in asked if not url.startswith(("data:", "blob:"))} == {"r.html"}


def test_two_parsers_are_under_one_row_of_words(driver, tmp_path):
    named = write_corpus(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        forced = Path("parser.forced").read_text(encoding="utf-8")
        other = forced.replace('"heads": [0, 0, 0]', '"heads": [0, 1, 0]')
        Path("other.forced").write_text(other, encoding="utf-8")
        second = ["--system", "Other", "parser.beam", "other.forced"]
        assert show.main([*named, *second, "--html", "two.html"]) == 0
    driver.get((tmp_path / "two.html").as_uri())
    page = Reader(driver)
    page.wait(lambda: page.find("html[data-ready]"))
    page.open(1)
    text = page.text("#sentence .key").split("\n")
    assert text[1].endswith(
        f"■ P {SCRIPT} 33 % (1 of 3), ◆ Other 67 % (2 of 3). Solid: right. Dashed: wrong."
    )
    assert text[2].endswith("since the gold head is to the right, where the decoder cannot look.")
    script = """
        const figure = document.querySelector("#sentence figure");
        const marks = (kind) => figure.querySelectorAll(`.mark-${kind} path, .mark-${kind} line`);
        return [...marks("line"), ...marks("rule")].map((mark) => mark.getAttribute("stroke"));"""
    colours = set(driver.execute_script(script))
    # Two arcs are the same, and of the second word's, one is another system's.
    assert {"#868e96", COLOURS[1], COLOURS[3]} <= colours
    assert "#1c5fb8" not in colours, "blue says that something is right"
