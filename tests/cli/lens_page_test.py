#!/usr/bin/python3
"""The page of kilin lens in a headless Chromium: drawn without a complaint at every size and in both schemes, figures under the
pointer and by keys, pictures that are linked, prompts that are harmless. Skipped (77) where no Chromium runs."""
import json
import sys
import unittest
from base64 import b64encode

from browser import Browser, why_no_browser
from lens_test import data_of
from program import IDS_ONLY, ROOT, TINY, ProgramTest, ids_text

SKIPPED = 77
SECTIONS = ("prompt", "logit-lens", "attention", "memory", "betas", "experts")
HOSTILE_TOKENS = ("</script><img src=x onerror=alert(1)>", "<!--", "🐳", "שלום", "a\u202eb", "\u2028", "\n", "\0", "\x1b[31m",
                  "'\"`${x}", "麒麟", "x" * 300, "&lt;b&gt;", " ")
# What a person would miss: canvases that show nothing, and parts that stick out of the page.
FAULTS = """(() => {
  const faults = [];
  const copy = document.createElement("canvas");
  const reader = copy.getContext("2d", { willReadFrequently: true });
  for (const canvas of document.querySelectorAll("main canvas")) {
    [copy.width, copy.height] = [Math.min(canvas.width, 300), Math.min(canvas.height, 300)];  // enough of its pixels
    reader.imageSmoothingEnabled = false;
    reader.drawImage(canvas, 0, 0, copy.width, copy.height);
    const colors = new Set(new Uint32Array(reader.getImageData(0, 0, copy.width, copy.height).data.buffer));
    if (colors.size < (canvas.closest(".matrix") ? 3 : 1) || (colors.size === 1 && colors.has(0)))
      faults.push(`a blank canvas in ${canvas.closest("section").id}`);
  }
  const { clientWidth: wide, scrollWidth } = document.documentElement;
  if (scrollWidth > wide) faults.push(`the page is ${scrollWidth} wide of ${wide}`);
  for (const node of document.querySelectorAll("main section > *, .frame, .matrix, .strip, .tools"))
    if (node.getBoundingClientRect().right > wide) faults.push(`${node.className || node.tagName} sticks out`);
  if (document.documentElement.dataset.drawn !== "true") faults.push("not drawn to the end");
  if (document.documentElement.dataset.trouble) faults.push(document.documentElement.dataset.trouble);
  return faults;
})()"""


class LensPage(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.pages = cls()  # for its temporary folder
        cls.addClassCleanup(cls.pages.doCleanups)
        folder = cls.pages.temporary_folder()
        cls.folder = folder
        text = (TINY / "eval.txt").read_text()[:760]
        for name, args in {"one": ("--ids", "1197"), "twenty": ("-p", text[:70]), "many": ("-p", text)}.items():
            cls.pages.output("lens", TINY, *args, "-o", folder / f"{name}.html")
        (folder / "browser").mkdir()
        cls.browser = Browser(folder / "browser")
        cls.browser.__enter__()
        cls.addClassCleanup(cls.browser.__exit__)

    def runTest(self):  # an instance that is no test
        pass

    def open(self, name, width=1600, scheme="light", fragment=""):
        self.browser.window(width, 900, scheme)
        self.browser.open(self.folder / f"{name}.html", fragment)
        self.settle()

    def settle(self):
        """Waits until nothing has been due to be painted for some frames."""
        self.value("""new Promise(done => {
          let quiet = 0;
          const look = () => {
            quiet = redraws.size === 0 ? quiet + 1 : 0;
            quiet > 1 ? done(0) : requestAnimationFrame(look);
          };
          requestAnimationFrame(look);
        })""")

    def value(self, expression):
        return self.browser.evaluate(expression)

    def text(self, selector):
        return self.value(f"document.querySelector({json.dumps(selector)}).innerText")

    def tearDown(self):
        complaints, self.browser.complaints = self.browser.complaints, []
        self.assertEqual(complaints, [])

    def hover(self, selector, across, down):
        """Moves the pointer to a place of an element, given in parts of its size, and gives the tooltip's text."""
        self.value(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center', behavior: 'instant'}})")
        self.settle()
        x, y, width, height = self.value(f"""(() => {{
            const box = document.querySelector({json.dumps(selector)}).getBoundingClientRect();
            return [box.left, box.top, box.width, box.height];
        }})()""")
        self.browser.mouse("mouseMoved", x + width * across, y + height * down)
        self.settle()
        return None if self.value("document.getElementById('tooltip').hidden") else self.text("#tooltip")

    def click(self, selector):
        self.value(f"document.querySelector({json.dumps(selector)}).click()")
        self.settle()

    def test_it_is_drawn_at_every_size_in_both_schemes(self):
        for name in ("one", "many"):
            for width in (380, 1600):
                for scheme in ("light", "dark"):
                    with self.subTest(name=name, width=width, scheme=scheme):
                        self.open(name, width, scheme)
                        self.assertEqual(self.value(FAULTS), [])
                        for section in SECTIONS:
                            self.assertGreater(len(self.text(f"#{section}")), 100, section)

    def test_colours_can_be_read_and_run_one_way(self):
        for scheme in ("light", "dark"):
            self.open("one", scheme=scheme)
            self.assertGreaterEqual(self.value(
                "Math.min(...ramp.rgb.map((c, i) => contrast(luminance(c), ramp.ink[i] === '#000' ? 0 : 1)))"), 4.5)
            light = self.value("ramp.rgb.map(luminance)")
            self.assertEqual(light, sorted(light, reverse=scheme == "light"))
            self.assertGreaterEqual(self.value("""Math.min(...["ink", "muted", "accent"].map(name => {
                const rgb = color => color.match(/[0-9a-f]{2}/g).map(digits => parseInt(digits, 16));
                return contrast(luminance(rgb(inks[name])), luminance(rgb(inks.surface)));
            }))"""), 4.5)

    def test_the_pointer_shows_figures_in_every_picture(self):
        self.open("twenty")
        for section, places, words in (("logit-lens", 1, ("after layer", "%", "rank")),
                                       ("attention", 1, ("from token", "probability")), ("memory", 2, ("half-life",)),
                                       ("betas", 1, ("beta",)), ("experts", 2, ("expert", "layer 1"))):
            frames = self.value(f"document.querySelectorAll('#{section} .matrix').length")
            self.assertEqual(frames, places, section)
            for place in range(frames):
                self.value(f"document.querySelectorAll('#{section} .matrix')[{place}].id = 'now'")
                shown = self.hover("#now", 0.25, 0.6)
                self.value("document.getElementById('now').removeAttribute('id')")
                for word in words:
                    self.assertIn(word, shown or "", section)
        self.browser.mouse("mouseMoved", 2, 2)
        self.settle()
        self.assertTrue(self.value("document.getElementById('tooltip').hidden"))

    def test_the_logit_lens_says_what_the_data_says(self):
        self.open("twenty")
        data = data_of((self.folder / "twenty.html").read_text())
        self.value("document.querySelector('#logit-lens .matrix').focus()")
        for key in ("ArrowDown", "Home"):  # the first key comes to the last cell
            self.browser.press(key)
        self.settle()
        shown = self.text("#tooltip")
        self.assertIn(f"after layer {len(data['kda']) + len(data['attention']['layers']) - 1}", shown)
        self.assertEqual(shown.count("%"), 6)
        first = self.value("textOf(guesses.guessIds[(data.logit_lens.rows - 1) * tokens * guesses.guesses])")
        self.assertEqual([part for part in shown.split() if part][6], first)  # behind "token 0 And after layer 5"
        self.assertRegex(shown, r"Next is .*: rank [0-9,]+, ")
        self.browser.press("End")
        self.settle()
        self.assertIn("Nothing follows", self.text("#tooltip"))

    def test_a_chosen_token_is_marked_everywhere(self):
        self.open("twenty")
        before = self.value("document.querySelector('#betas .matrix canvas').toDataURL()")
        self.value("document.querySelector('#logit-lens .matrix').focus()")
        for key in ("ArrowUp", "Home", "ArrowRight", "Enter"):
            self.browser.press(key)
        self.settle()
        self.assertEqual(self.value("[...document.querySelectorAll('.chip')].findIndex(c => c.ariaPressed === 'true')"), 1)
        self.assertEqual(self.value("location.hash"), "#token=1")
        self.assertIn("token 1 of", self.text("#chosen"))
        self.assertNotEqual(self.value("document.querySelector('#betas .matrix canvas').toDataURL()"), before)
        self.click("#chosen button:last-child")
        self.assertTrue(self.value("document.getElementById('chosen').hidden"))
        self.open("twenty", fragment="#token=3")
        self.assertIn("token 3 of", self.text("#chosen"))
        self.open("many", 380, fragment="#token=150")
        self.assertGreater(self.value("document.querySelector('#logit-lens .matrix').scrollLeft"), 5000)  # in sight
        self.open("one", fragment="#token=3")  # which it has not
        self.assertTrue(self.value("document.getElementById('chosen').hidden"))

    def test_layers_and_heads_are_chosen_by_pointer_and_keys(self):
        self.open("twenty", 380)
        self.click("#attention .strip button:nth-child(2)")
        self.assertIn("Layer 5, head 0", self.text("#attention"))
        self.value("document.querySelector('#attention .heads button').focus()")
        self.browser.press("ArrowRight")
        self.settle()
        self.assertIn("Layer 5, head 1", self.text("#attention"))
        self.click("#memory .strip button:nth-child(3)")
        self.assertIn("Layer 2: along the prompt", self.text("#memory"))
        self.assertIn("Layer 2", self.text("#betas"))  # one choice for both
        self.click("#experts .option:nth-child(2)")
        self.click("#experts .strip button:last-child")
        self.assertIn("Layer 5: tokens by expert", self.text("#experts"))
        self.assertEqual(self.value(FAULTS), [])

    def test_a_long_prompt_scrolls_or_is_seen_whole(self):
        for width in (380, 1600):
            self.open("many", width)
            matrix = "document.querySelector('#logit-lens .matrix')"
            self.assertGreater(self.value(f"{matrix}.scrollWidth"), 5000)
            self.value(f"{matrix}.scrollTo(4000, 0)")
            self.settle()
            self.assertEqual(self.value(FAULTS), [])
            self.click("#logit-lens .zoom")
            self.assertLess(self.value(f"{matrix}.scrollWidth"), max(width, 520))
            self.assertEqual(self.value(FAULTS), [])

    def test_it_follows_the_scheme_while_it_is_open(self):
        self.open("twenty")
        picture = "document.querySelector('#memory .matrix canvas').toDataURL()"
        light = self.value(picture)
        self.browser.window(1600, 900, "dark")
        self.settle()
        dark = self.value(picture)
        self.assertNotEqual(dark, light)
        self.open("twenty", scheme="dark")
        self.assertEqual(self.value(picture), dark)
        self.assertEqual(self.value(FAULTS), [])

    def test_any_token_is_harmless_and_can_be_read(self):
        folder = self.temporary_folder()
        config = json.loads((IDS_ONLY / "config.json").read_text())
        (folder / "shape").mkdir()
        (folder / "shape/config.json").write_text(json.dumps({**config, "vocab_size": 600}))
        tokens = [bytes([byte]) for byte in range(256) if bytes([byte]).decode("latin1") not in HOSTILE_TOKENS]
        tokens += [token.encode() for token in HOSTILE_TOKENS]
        (folder / "shape/tiktoken.model").write_text("".join(f"{b64encode(t).decode()} {i}\n" for i, t in enumerate(tokens)))
        self.output("synth", "--config", folder / "shape", "--tokenizer", folder / "shape", folder / "model")
        first = len(tokens) - len(HOSTILE_TOKENS)
        ids = ids_text([0xe4, *range(first, len(tokens))])
        self.output("lens", folder / "model", "--ids", ids, "-o", self.folder / "hostile.html")
        for width in (380, 1600):
            self.open("hostile", width, fragment="#token=1")
            self.assertEqual(self.value(FAULTS), [])
        self.assertEqual(self.value("document.images.length + document.querySelectorAll('img, b b, iframe').length"), 0)
        shown = self.value("[...document.querySelectorAll('.chip')].map(chip => chip.textContent)")
        self.assertEqual(shown[1:7], ["</script><img·src=x·onerror=alert(1)>", "<!--", "🐳", "שלום", r"a\u202eb", r"\u2028"])
        self.assertEqual(shown[7:12], [r"\n", r"\u0000", r"\u001b[31m", "'\"`${x}", "麒麟"])
        self.assertEqual(shown[-2:], ["&lt;b&gt;", "·"])
        self.assertIn("<img", self.text("#chosen"))

    def test_what_a_model_has_not_is_said(self):
        page = (self.folder / "one.html").read_text()
        data = data_of(page)
        begin = page.index('id="data">') + len('id="data">')
        end = page.index("</script>", begin)
        for change, section, words in (({"attention": {"block": 1, "layers": []}}, "attention", "no MLA layers"),
                                       ({"kda": []}, "memory", "no KDA layers"),
                                       ({"experts": []}, "experts", "no mixture of experts")):
            changed = json.dumps({**data, **change}).replace("<", "\\u003c")
            (self.folder / "changed.html").write_text(page[:begin] + changed + page[end:])
            self.open("changed")
            self.assertIn(words, self.text(f"#{section}"))
            self.assertEqual(self.value(FAULTS), [])

    def test_trouble_is_told_on_the_page(self):
        page = (self.folder / "one.html").read_text()
        (self.folder / "broken.html").write_text(page.replace('"kda":[{', '"kda":[{"heads":null},{', 1))
        self.open("broken")
        self.assertIn("could not be drawn", self.text("#trouble"))
        self.assertNotEqual(self.value(FAULTS), [])


if __name__ == "__main__":
    if reason := why_no_browser():
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    unittest.main()
