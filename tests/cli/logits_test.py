#!/usr/bin/python3
"""kilin logits: the golden logits of every position, in a file that is whole or not there."""
import unittest

from program import IDS_ONLY, TINY, FAILURE, USAGE, ProgramTest, ids_text, kilin, read_npy

GOLDEN = IDS_ONLY.parent / "tiny"


class Logits(ProgramTest):
    def test_every_position_has_the_golden_logits(self):
        out = self.temporary_folder() / "logits.npy"
        for prompt in ("T001", "T065"):
            _, ids = read_npy(GOLDEN / prompt / "ids.npy")
            expected_shape, expected = read_npy(GOLDEN / prompt / "logits.npy")
            for chunk in ("64", "7"):
                args = ("logits", IDS_ONLY, "--ids", ids_text(ids), "--out", out, "--prefill-chunk", chunk)
                self.assertEqual(self.output(*args), "")
                shape, logits = read_npy(out)
                self.assertEqual(shape, expected_shape)
                largest = max(map(abs, expected))
                self.assertLess(max(abs(a - b) for a, b in zip(logits, expected)) / largest, 1e-5, (prompt, chunk))

    def test_text_is_read_as_its_ids(self):
        folder = self.temporary_folder()
        self.output("logits", "-p", "The whale", "--out", folder / "text.npy")
        ids = self.json("tokenize", "-p", "The whale", "--json")["ids"]
        self.output("logits", TINY, "--ids", ids_text(ids), "--out", folder / "ids.npy", "--seed", "3", "--threads", "1")
        self.assertEqual((folder / "text.npy").read_bytes(), (folder / "ids.npy").read_bytes())
        self.assertEqual(read_npy(folder / "ids.npy")[0], (len(ids), 4096))

    def test_a_failure_leaves_no_file_and_an_old_one_alone(self):
        folder = self.temporary_folder()
        (folder / "old.npy").write_text("old")
        self.refusal(USAGE, "logits", IDS_ONLY, "--ids", "512", "--out", folder / "old.npy")
        self.refusal(FAILURE, "logits", folder, "--ids", "1", "--out", folder / "old.npy")
        self.assertEqual([file.name for file in folder.iterdir()], ["old.npy"])
        self.assertEqual((folder / "old.npy").read_text(), "old")
        self.refusal(FAILURE, "logits", IDS_ONLY, "--ids", "1", "--out", folder / "nowhere/logits.npy")

    def test_it_needs_a_prompt_and_a_place_for_the_file(self):
        self.refusal(USAGE, "logits", IDS_ONLY, "--ids", "1")
        self.refusal(USAGE, "logits", IDS_ONLY, "--out", "logits.npy")

    def test_what_was_written_is_said_on_standard_error(self):
        out = self.temporary_folder() / "logits.npy"
        result = kilin("logits", IDS_ONLY, "--ids", "1,2,3", "--out", out)
        self.assertEqual(result.stderr.decode(), f"{out}: float32 [3, 512]\n")


if __name__ == "__main__":
    unittest.main()
