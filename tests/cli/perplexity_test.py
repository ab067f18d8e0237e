#!/usr/bin/python3
"""kilin perplexity: the reference's perplexity, and the distance between two forms of a model."""
import unittest

from program import IDS_ONLY, TINY, FAILURE, USAGE, ProgramTest, read_npy


class Perplexity(ProgramTest):
    def setUp(self):
        self.folder = self.temporary_folder()
        self.text = self.folder / "text.txt"
        self.text.write_text((TINY / "eval.txt").read_text()[:4000])

    def measure(self, *args):
        return self.json("perplexity", TINY, "--file", self.text, "--json", *args)

    def test_a_model_does_not_differ_from_itself(self):
        base = self.folder / "base.npy"
        alone = self.measure("--save-logits", base)
        self.assertNotIn("kl", alone)
        self.assertEqual(read_npy(base)[0], (alone["predictions"], 4096))
        again = self.measure("--kl-base", base)
        self.assertEqual(again["perplexity"], alone["perplexity"])
        self.assertEqual(again["kl"]["base_perplexity"], alone["perplexity"])
        self.assertEqual([again["kl"][key] for key in ("mean", "p99", "max", "top1_agreement")], [0, 0, 0, 1])

    def test_rounded_activations_differ_a_little(self):
        base = self.folder / "base.npy"
        self.measure("--save-logits", base, "--window", "100")
        kl = self.measure("--kl-base", base, "--window", "100", "--activations", "bf16")["kl"]
        self.assertGreater(kl["mean"], 0)
        self.assertLess(kl["mean"], 0.01)
        self.assertLessEqual(kl["mean"], kl["max"])
        self.assertLessEqual(kl["p99"], kl["max"])
        self.assertGreater(kl["top1_agreement"], 0.9)

    def test_the_window_bounds_what_a_prediction_sees(self):
        self.assertGreater(self.measure("--window", "8")["perplexity"], self.measure("--window", "256")["perplexity"])

    def test_a_reader_gets_lines(self):
        out = self.output("perplexity", "--file", self.text)
        self.assertRegex(out, r"\Aperplexity +\d+\.\d{4} \+- \d+\.\d{4} .*\nspeed +\d+ tokens/s\n\Z")

    def test_what_does_not_fit_is_refused(self):
        base = self.folder / "base.npy"
        self.measure("--save-logits", base)
        other = self.folder / "other.txt"
        other.write_text("Another text")
        self.assertIn(str(base), self.refusal(USAGE, "perplexity", TINY, "--file", other, "--kl-base", base))
        self.assertIn("--window 512", self.refusal(USAGE, "perplexity", TINY, "--file", self.text, "--kl-base", base, "--window", "100"))
        swapped = self.folder / "swapped.txt"  # as many tokens
        text = self.text.read_text()
        swapped.write_text(text.replace(" and ", " but ", 1))
        self.assertIn("another text", self.refusal(USAGE, "perplexity", TINY, "--file", swapped, "--kl-base", base))
        (self.folder / "one.txt").write_text("a")
        self.refusal(USAGE, "perplexity", TINY, "--file", self.folder / "one.txt")
        self.refusal(USAGE, "perplexity", TINY, "--file", self.text, "--window", "99999999")
        self.refusal(USAGE, "perplexity", TINY)
        self.refusal(FAILURE, "perplexity", TINY, "--file", self.folder / "nowhere")
        self.refusal(FAILURE, "perplexity", IDS_ONLY, "--file", self.text)
        (self.folder / "torn.npy").write_bytes(base.read_bytes()[:-4])
        self.refusal(FAILURE, "perplexity", TINY, "--file", self.text, "--kl-base", self.folder / "torn.npy")

    def test_a_failure_leaves_no_logits(self):
        self.refusal(USAGE, "perplexity", TINY, "--file", self.text, "--window", "99999999", "--save-logits", self.folder / "x.npy")
        self.assertFalse((self.folder / "x.npy").exists())


if __name__ == "__main__":
    unittest.main()
