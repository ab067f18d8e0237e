#!/usr/bin/python3
"""kilin quantize: a GGUF file that says what the model said, or no file."""
import signal
import subprocess
import time
import unittest

from program import IDS_ONLY, KILIN, SANITIZED, TINY, FAILURE, USAGE, ProgramTest, read_npy

IDS = "1197,431,333,443,670,112,357,100,59"


class Quantize(ProgramTest):
    def setUp(self):
        self.folder = self.temporary_folder()
        self.out = self.folder / "out.gguf"

    def logits(self, model, *args):
        file = self.folder / "logits.npy"
        self.output("logits", model, "--ids", IDS, "--out", file, *args)
        return read_npy(file)[1]

    def difference(self, model):
        """Mean distance to the logits of models/tiny."""
        got, want = self.logits(model, "--activations", "f32"), self.logits(TINY)
        return sum(abs(a - b) for a, b in zip(got, want)) / len(want)

    def test_unquantised_it_says_the_same(self):
        report = self.json("quantize", TINY, self.out, "--type", "bf16", "--json")
        self.assertEqual(report["file"], str(self.out))
        self.assertEqual(report["bytes"], self.out.stat().st_size)
        self.assertLess(self.difference(self.out), 1e-5)

    @unittest.skipIf(SANITIZED, "minutes of what one type reaches")
    def test_coarser_types_are_smaller_and_err_more(self):
        sizes, errors = [], []
        for kind in ("q8_0", "q4_k_m"):
            self.output("quantize", TINY, self.out, "--type", kind, "--force")
            sizes.append(self.out.stat().st_size)
            errors.append(self.difference(self.out))
        self.assertGreater(sizes[0], 1.4 * sizes[1])
        self.assertGreater(errors[1], errors[0])
        self.assertGreater(errors[0], 0)
        self.assertLess(errors[1], 0.5)

    def test_a_model_that_llama_cpp_would_run_wrongly_is_written_for_kilin_only(self):
        model = self.ids_model(moe_renormalize=False)
        message = self.refusal(FAILURE, "quantize", model, self.out, "--type", "q8_0", "--force")
        self.assertIn("moe_renormalize is false", message)
        self.assertFalse(self.out.exists())
        self.output("quantize", model, self.out, "--type", "q8_0", "--kilin-only")
        self.output("verify", self.out, "--files-only")

    def test_a_file_can_be_quantised_again(self):
        again = self.folder / "again.gguf"
        self.output("quantize", TINY, self.out, "--type", "bf16")
        self.output("quantize", self.out, again, "--type", "q8_0")
        self.output("quantize", TINY, self.out, "--type", "q8_0", "--force", "--name", "out")
        self.assertEqual(self.logits(again), self.logits(self.out))

    def test_it_writes_text_like_any_model(self):
        self.output("quantize", TINY, self.out, "--type", "q8_0")
        text = self.output("generate", self.out, "-p", "Blessed is the man", "-n", "8", "--temp", "0")
        self.assertEqual(text, self.output("generate", TINY, "-p", "Blessed is the man", "-n", "8", "--temp", "0"))

    def test_without_a_tokenizer_ids_go_in_and_out(self):
        self.output("quantize", IDS_ONLY, self.out, "--type", "q8_0")
        self.assertEqual(len(self.json("generate", self.out, "--ids", "1,2,3", "-n", "4", "--json")["ids"]), 4)
        self.refusal(FAILURE, "generate", self.out, "-p", "text")

    def test_what_is_there_stays_unless_forced(self):
        self.out.write_text("old")
        self.assertIn("--force", self.refusal(USAGE, "quantize", TINY, self.out, "--type", "q8_0"))
        self.assertEqual(self.out.read_text(), "old")

    def test_a_file_is_not_its_own_source(self):
        self.output("quantize", TINY, self.out, "--type", "bf16")
        self.refusal(USAGE, "quantize", self.out, self.out, "--type", "q8_0", "--force")
        link = self.folder / "link.gguf"
        link.symlink_to(self.out)
        self.refusal(USAGE, "quantize", self.out, link, "--type", "q8_0", "--force")

    def test_wrong_usage_is_explained(self):
        self.assertIn("q4_k_m", self.refusal(USAGE, "quantize", TINY, self.out, "--type", "q9"))
        self.refusal(USAGE, "quantize", TINY, self.out)
        self.refusal(USAGE, "quantize", TINY, "--type", "q8_0")
        self.refusal(FAILURE, "quantize", self.folder / "nowhere", self.out, "--type", "q8_0")
        self.refusal(FAILURE, "quantize", TINY, self.folder / "nowhere/out.gguf", "--type", "q8_0")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_killed_run_leaves_nothing_that_loads(self):
        process = subprocess.Popen([KILIN, "quantize", TINY, self.out, "--type", "q6_k", "--threads", "1"], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if any(file.stat().st_size > 2_000_000 for file in self.folder.iterdir()):
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.001)
        process.wait()
        if process.returncode == 0:
            self.skipTest("the run was done before it could be killed")
        self.assertFalse(self.out.exists())
        left = list(self.folder.iterdir())
        self.assertEqual(len(left), 1)
        left[0].rename(self.folder / "renamed.gguf")
        self.refusal(FAILURE, "inspect", self.folder / "renamed.gguf")


if __name__ == "__main__":
    unittest.main()
