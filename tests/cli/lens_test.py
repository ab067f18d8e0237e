#!/usr/bin/python3
"""kilin lens: the file, what its data says, and what it refuses. How the page looks and behaves is lens_page_test's affair."""
import json
import re
import struct
import unittest
from base64 import b64decode

from program import IDS_ONLY, SANITIZED, TINY, FAILURE, USAGE, ProgramTest, ids_text, kilin

HOSTILE = "</script><img src=x onerror=alert(1)><!-- \"'&amp; 🐳❤️ שלום \x01\x1b[31m\u202e\u2028\u00a0\r\n\t\\u0041 麒麟"


def data_of(page):
    """The JSON in a page."""
    return json.loads(re.search(r'<script type="application/json" id="data">([^<]*)</script>', page).group(1))


def numbers(text, kind):
    data = b64decode(text)
    return struct.unpack(f"<{len(data) // struct.calcsize(kind)}{kind}", data)


class Lens(ProgramTest):
    def page(self, *args, **options):
        """The page as text."""
        return self.output("lens", *args, "-o", "-", **options)

    def test_the_file_holds_what_the_pass_gave(self):
        folder = self.temporary_folder()
        out = folder / "page.html"
        result = kilin("lens", TINY, "-p", "The LORD is", "-o", out)
        self.assertEqual((result.returncode, result.stdout), (0, b""))
        self.assertRegex(result.stderr.decode(), rf"\A{out}: 3 tokens, 6 layers, [0-9.]+ KiB\n\Z")
        data = data_of(out.read_text())
        self.assertEqual((data["model"], data["ids"], data["texts"]["431"]), ("tiny", [1197, 431, 333], " LORD"))
        lens, (mla, _), kda, experts = data["logit_lens"], data["attention"]["layers"], data["kda"][0], data["experts"][0]
        generated = self.json("generate", TINY, "-p", "The LORD is", "-n", "1", "--temp", "0", "--json")
        self.assertEqual((lens["rows"], lens["guesses"]), (7, 5))
        self.assertEqual(numbers(lens["ids"], "i")[-5], generated["ids"][0])  # the last row is the model's own answer
        self.assertEqual(numbers(lens["actual_ranks"], "I")[2::3], (0,) * 7)
        patterns = numbers(mla["patterns"], "B")
        self.assertEqual((mla["layer"], mla["heads"], len(patterns)), (3, 4, 4 * 6))
        for head in range(4):
            self.assertAlmostEqual(sum((p / 255) ** 2 for p in patterns[6 * head + 3:6 * head + 6]), 1, 1)
        self.assertEqual([len(numbers(kda[k], t)) for k, t in (("half_lives", "H"), ("token_half_lives", "H"), ("betas", "B"))],
                         [4 * 64, 12, 12])
        self.assertEqual((experts["layer"], experts["chosen"], sum(experts["load"])), (1, 2, 6))

    def test_the_default_file_is_lens_html_here(self):
        folder = self.temporary_folder()
        self.output("lens", IDS_ONLY, "--ids", "5", cwd=folder)
        self.assertEqual([file.name for file in folder.iterdir()], ["lens.html"])

    def test_a_page_asks_for_nothing_from_elsewhere(self):
        page = self.page(TINY, "-p", "x")
        self.assertIn("default-src 'none'", page)
        self.assertNotRegex(page, r"https?://|\bsrc=|\bimport\b|@import|url\(|<link")

    def test_a_prompt_is_data(self):
        page = self.page(TINY, "-p", "-", stdin=HOSTILE)
        plain = self.page(TINY, "-p", "x")
        for tag in ("<script", "</script", "<img", "<!--"):  # what the page has anyway, and no more
            self.assertEqual(page.count(tag), plain.count(tag), tag)
        data = data_of(page)
        shown = "".join(data["texts"][str(i)] for i in data["ids"])
        self.assertIn("</script><img src=x onerror=alert(1)><!-- \"'&amp; ", shown)
        # The tokenizer knows what is not ASCII by its bytes alone.
        self.assertIn(r"\u0001\u001b[31m\xe2\x80\xae\xe2\x80\xa8\xc2\xa0\r\n\t\\u0041", shown)

    def test_pieces_of_characters_are_shown_by_byte(self):
        data = data_of(self.page(TINY, "-p", "麒"))
        self.assertEqual("".join(data["texts"][str(i)] for i in data["ids"]), r"\xe9\xba\x92")

    def test_without_a_tokenizer_there_are_ids(self):
        data = data_of(self.page(IDS_ONLY, "--ids", "5,17,9"))
        self.assertEqual((data["ids"], data["has_texts"], data["texts"]), ([5, 17, 9], False, {}))
        self.assertEqual([layer["experts"] for layer in data["experts"]], [16] * 7)

    def test_one_token_and_many(self):
        self.assertEqual(data_of(self.page(IDS_ONLY, "--ids", "5"))["ids"], [5])
        page = self.page(IDS_ONLY, "--ids", ids_text(range(200)))
        self.assertEqual(len(numbers(data_of(page)["attention"]["layers"][0]["patterns"], "B")), 4 * 200 * 201 // 2)

    @unittest.skipIf(SANITIZED, "takes long, and goes where shorter prompts go")
    def test_long_prompts_have_coarser_patterns_and_the_longest_are_refused(self):
        data = data_of(self.page(IDS_ONLY, "--ids", ids_text(i % 512 for i in range(1200))))
        self.assertEqual(data["attention"]["block"], 2)  # 8 heads of 1200 tokens would be 5,764,800 cells
        refusal = self.refusal(USAGE, "lens", self.ids_model(model_max_length=5000), "--ids", ids_text([1] * 4097))
        self.assertIn("4097 tokens; a lens shows at most 4096", refusal)

    def test_quantised_models_can_be_looked_at(self):
        data = data_of(self.page(TINY, "--ids", "5,17", "--quantize", "q8_0", "--kv-type", "q8", "--threads", "1"))
        self.assertEqual(len(data["kda"]), 4)
        if SANITIZED:
            return  # what is left has tests of its own
        gguf = self.temporary_folder() / "small.gguf"
        self.output("quantize", TINY, gguf, "--type", "q4_0")
        data = data_of(self.page(gguf, "-p", "The LORD"))
        self.assertEqual((data["model"], data["ids"]), ("small.gguf", [1197, 431]))

    def test_models_of_one_kind_of_block_lack_the_other(self):
        config = json.loads((IDS_ONLY / "config.json").read_text())
        linear, layers = config["linear_attn_config"], list(range(1, 9))
        for changes, found in (({"linear_attn_config": {**linear, "kda_layers": layers, "full_attn_layers": []}}, (8, 0, 7)),
                               ({"linear_attn_config": {**linear, "kda_layers": [], "full_attn_layers": layers}}, (0, 8, 7)),
                               ({"first_k_dense_replace": 8}, (6, 2, 0))):
            folder = self.temporary_folder()
            (folder / "config.json").write_text(json.dumps({**config, **changes}))
            self.output("synth", "--config", folder, folder / "model")
            data = data_of(self.page(folder / "model", "--ids", "1,2,3"))
            self.assertEqual((len(data["kda"]), len(data["attention"]["layers"]), len(data["experts"])), found)

    def test_special_tokens_are_such_only_if_asked_for(self):
        ids = data_of(self.page(TINY, "-p", "<|im_end|>", "--special"))["ids"]
        self.assertEqual(len(ids), 1)
        self.assertGreater(len(data_of(self.page(TINY, "-p", "<|im_end|>"))["ids"]), 1)

    def test_what_cannot_be_written_is_told_before_the_model_is_read(self):
        folder = self.temporary_folder()
        for out in (folder, folder / "nowhere/page.html"):
            message = self.refusal(USAGE if out == folder else FAILURE, "lens", IDS_ONLY, "--ids", "5", "-o", out)
            self.assertIn(str(folder), message)
        page = folder / "page.html"
        page.write_text("old")
        self.refusal(USAGE, "lens", IDS_ONLY, "--ids", "512", "-o", page)
        self.assertEqual(page.read_text(), "old")
        self.assertEqual(list(folder.iterdir()), [page])

    def test_arguments_that_cannot_be_meant_are_usage_errors(self):
        for args in ((), ("--ids", "1", "-p", "x"), ("-p", ""), ("--ids", "x"), ("--ids", "1", "-o", ""),
                     ("--ids", "1", "--json")):
            self.refusal(USAGE, "lens", TINY, *args)
        self.refusal(FAILURE, "lens", IDS_ONLY, "-p", "text without a tokenizer")


if __name__ == "__main__":
    unittest.main()
