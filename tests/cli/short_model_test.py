#!/usr/bin/python3
"""Models of few positions: no command asks for more than there are, unless its user does."""
import json
import shutil
import unittest

from program import TINY, USAGE, ProgramTest, ids_text

LENGTHS = (1, 2, 7, 8, 64)


class ShortModel(ProgramTest):
    def short_model(self, length, **files):
        """The embedded model with another model_max_length, in a folder of its own."""
        folder = self.temporary_folder()
        for file in TINY.iterdir():
            if file.name != "config.json":
                (folder / file.name).symlink_to(file)
        config = json.loads((TINY / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "model_max_length": length}))
        return folder

    def test_verify_asks_what_there_is_room_for(self):
        for length in LENGTHS:
            checks = {c["name"]: c for c in self.json("verify", self.short_model(length), "--json")["checks"]}
            self.assertEqual({checks[name]["outcome"] for name in ("logits", "answer", "expected answers", "expected logits")},
                             {"ok"})
            self.assertEqual(checks["expected perplexity"]["outcome"], "skipped")

    def test_rows_of_bench_that_nobody_asked_for_give_way(self):
        for length, prompt, depths, batches, generated in ((1, 1, [], [], 1), (8, 8, [0], [], 1), (64, 64, [0], [1, 8], 14)):
            report = self.json("bench", self.short_model(length), "--json")
            self.assertEqual([row["prompt_tokens"] for row in report["prompt"]], [prompt])
            rows = [(row["depth_tokens"], row["sequences"]) for row in report["generation"] + report["batch"]]
            self.assertEqual(rows, [(depth, 1) for depth in depths] + [(16, n) for n in batches], length)
            self.assertEqual(report["generated_tokens"], generated)

    def test_rows_of_bench_that_were_asked_for_are_run_or_refused(self):
        folder = self.short_model(64)
        rows = ("--depth", "none", "--batch", "none", "--repeat", "1")
        self.assertIn("prompt", self.output("bench", folder, "--prompt", "8", *rows))
        self.assertIn("expected at most 64", self.refusal(USAGE, "bench", folder, "--prompt", "65", *rows))
        self.assertIn("expected at most 64", self.refusal(USAGE, "bench", folder, "--generate", "100"))

    def test_the_window_of_perplexity_is_no_longer_than_the_model(self):
        text = self.temporary_folder() / "text.txt"
        text.write_text("the whale and the sea " * 8)
        for length in LENGTHS:
            self.assertEqual(self.json("perplexity", self.short_model(length), "--file", text, "--json")["window"], length)
        self.assertIn("--window is 65", self.refusal(USAGE, "perplexity", folder := self.short_model(64), "--file", text,
                                                     "--window", "65"), folder)

    def test_answers_and_traces_end_where_the_model_does(self):
        out = self.temporary_folder() / "out"
        for length in LENGTHS:
            folder, ids = self.short_model(length), ids_text(range(5, 5 + length))
            self.assertEqual(len(self.json("generate", folder, "--ids", ids, "--ignore-eos", "--json")["ids"]), 1)
            self.output("logits", folder, "--ids", ids, "--out", out)
            self.output("lens", folder, "--ids", ids, "-o", out)
            trace = ("trace", folder, "--save", f"logits={out}", "-n", "9", "--json", "--ids")
            self.assertEqual(len(self.json(*trace, ids)["output_ids"]), 1)
            self.assertIn(f"{length}", self.refusal(USAGE, *trace, ids + ",5"))
        self.assertEqual(len(self.json(*trace, ids_text(range(5, 66)))["output_ids"]), 4)  # the last one is not fed

    def test_a_chat_says_what_it_has_no_room_for(self):
        for length in (1, 2):
            result = self.refusal(1, "chat", self.short_model(length), stdin="Hello\n")
            self.assertIn(f"the context holds {length}", result)
        self.assertTrue(self.output("chat", self.short_model(64), "-n", "4", "--temp", "0", stdin="Hello\n"))


if __name__ == "__main__":
    unittest.main()
