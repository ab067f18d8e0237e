#!/usr/bin/python3
"""kilin tokenize: the reference's ids line by line, and readable output for people."""
import json
import shutil
import unittest

from program import IDS_ONLY, ROOT, TINY, FAILURE, USAGE, ProgramTest, ids_text, kilin

GOLDEN = ROOT / "tests/golden/tokenizer"  # holds tiktoken.model, and no tokenizer_config.json


class Tokenize(ProgramTest):
    def test_jsonl_gives_the_references_ids(self):
        cases = json.loads((GOLDEN / "cases.json").read_text())
        lines = "".join(json.dumps({"text": case["text"], "special": case["special"]}) + "\n" for case in cases)
        answers = self.output("tokenize", GOLDEN, "--jsonl", stdin=lines).splitlines()
        self.assertEqual(len(answers), len(cases))
        for case, answer in zip(cases, answers):
            self.assertEqual(json.loads(answer), {"ids": case["ids"]}, case["text"])

    def test_special_is_false_where_a_line_does_not_say(self):
        lines = '{"text": "<|im_end|>"}\n{"special": true, "text": "<|im_end|>"}'
        plain, special = map(json.loads, self.output("tokenize", "--jsonl", stdin=lines).splitlines())
        self.assertGreater(len(plain["ids"]), 1)
        self.assertEqual(special["ids"], [3842])
        self.assertEqual(self.output("tokenize", "--jsonl", stdin=""), "")

    def test_a_bad_line_is_named_after_those_before_it_were_answered(self):
        for bad in (b"", b"text", b"[]", b"{}", b'{"text": 1}', b'{"text": "a", "special": 1}',
                    b'{"text": "a", "specail": true}', b'{"text": "a", "text": "b"}', b'{"text": "\xff"}',
                    b'{"text": "\\ud800"}', b'{"text": "a"} x'):
            result = kilin("tokenize", "--jsonl", stdin=b'{"text": "a"}\n' + bad + b"\n")
            self.assertEqual(result.returncode, FAILURE, bad)
            self.assertEqual(result.stdout.count(b"\n"), 1, bad)
            self.assertIn(b"line 2", result.stderr, bad)

    def test_people_see_ids_and_pieces(self):
        shown = self.output("tokenize", GOLDEN, 'The "whale"')
        ids = self.json("tokenize", GOLDEN, 'The "whale"', "--json")["ids"]
        self.assertIn(ids_text(ids), shown)
        self.assertIn('"The"', shown)
        self.assertEqual(len(shown.splitlines()), len(ids) + 1)

    def test_text_comes_by_argument_option_or_standard_input(self):
        expected = self.json("tokenize", GOLDEN, "The whale", "--json")
        self.assertEqual(self.json("tokenize", "-p", "The whale", "--json"), expected)
        self.assertEqual(self.json("tokenize", "--json", stdin="The whale"), expected)
        self.assertEqual(self.json("tokenize", GOLDEN, "-", "--json", stdin="The whale"), expected)
        two = self.output("tokenize", "-p", "The", "-p", "whale", "--json").splitlines()
        self.assertEqual(["".join(json.loads(line)["pieces"]) for line in two], ["The", "whale"])

    def test_decoding_gives_the_text_back(self):
        text = "Ahab\u2019s \u5317\u4eac\n\U0001f40b"
        answer = self.json("tokenize", "--json", stdin=text)
        self.assertEqual(self.output("tokenize", "--decode", "--ids", ids_text(answer["ids"])), text + "\n")
        self.assertEqual(self.json("tokenize", "--decode", "--ids", ids_text(answer["ids"]), "--json")["text"], text)
        self.assertEqual(self.output("tokenize", "--decode", "--ids", "3842"), "<|im_end|>\n")

    def test_special_tokens_are_read_when_asked_for(self):
        self.assertEqual(self.json("tokenize", "-p", "<|im_end|>", "--special", "--json")["ids"], [3842])

    def test_a_token_beyond_the_embedding_is_refused_where_a_config_tells_its_size(self):
        folder = self.byte_model()  # 512 tokens
        self.assertEqual(self.json("tokenize", folder, "ab", "--json")["ids"], [97, 98])
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "vocab_size": 511, "pad_token_id": 0}))
        self.assertIn("vocab_size is 511", self.refusal(FAILURE, "tokenize", folder, "ab"))
        (folder / "config.json").unlink()
        self.assertEqual(self.json("tokenize", folder, "ab", "--json")["ids"], [97, 98])

    def test_a_vocabulary_that_was_cut_at_a_line_is_refused(self):
        folder = self.temporary_folder()
        for file in ("config.json", "tokenizer_config.json"):
            shutil.copy(TINY / file, folder)
        lines = (TINY / "tiktoken.model").read_text().splitlines(keepends=True)
        (folder / "tiktoken.model").write_text("".join(lines[:3000]))
        self.assertIn("'[BOS]' has id 3840", self.refusal(FAILURE, "tokenize", folder, "Hello"))
        (folder / "tokenizer_config.json").unlink()
        self.assertIn("is it cut short?", self.refusal(FAILURE, "tokenize", folder, "Hello"))
        (folder / "tiktoken.model").write_text("".join(lines))
        self.output("tokenize", folder, "Hello")

    def test_the_common_options_are_taken_and_change_nothing(self):
        common = ("--threads", "3", "--prefill-chunk", "64", "--kv-type", "bf16", "--activations", "bf16", "--seed", "5")
        lines = '{"text": "The whale"}'
        self.assertEqual(self.output("tokenize", "--jsonl", *common, stdin=lines), self.output("tokenize", "--jsonl", stdin=lines))
        self.refusal(USAGE, "tokenize", "--threads", "0", "-p", "x")

    def test_wrong_use_is_refused(self):
        self.assertIn("4096", self.refusal(USAGE, "tokenize", "--decode", "--ids", "4096"))
        self.refusal(USAGE, "tokenize", "--decode", "--ids", "-1")
        self.refusal(USAGE, "tokenize", "--decode")
        self.refusal(USAGE, "tokenize", "--ids", "1")
        self.refusal(USAGE, "tokenize", "--decode", "--ids", "1", "-p", "x")
        self.refusal(USAGE, "tokenize", "--jsonl", "-p", "x")
        self.refusal(USAGE, "tokenize", stdin=b"\xff")
        self.refusal(FAILURE, "tokenize", IDS_ONLY, "text")
        message = self.refusal(FAILURE, "tokenize", "text that is taken for a folder")
        self.assertIn("is neither a folder nor a GGUF file", message)
        self.assertIn("-p TEXT", message)


if __name__ == "__main__":
    unittest.main()
