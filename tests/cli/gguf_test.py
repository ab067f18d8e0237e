#!/usr/bin/python3
"""Every command that takes a model takes a GGUF file: here one of two small layers, fp32, with a tokeniser of bytes."""
import unittest

from program import FAILURE, ROOT, USAGE, ProgramTest

MINI = ROOT / "fuzz/corpus/gguf_fuzz/mini.gguf"


class Gguf(ProgramTest):
    def test_inspect_tells_its_modules_and_reads_its_layers(self):
        told = self.json("inspect", MINI, "--json")
        self.assertEqual((told["model"], told["presence"]["stored"], told["surplus"]), (str(MINI), told["tensors"], []))
        self.assertEqual([layer["attention"] for layer in told["layers"]], ["kda", "mla"])
        self.assertIn("kv_b_proj", self.output("inspect", MINI, "--layer", "1"))

    def test_verify_finds_it_whole_and_runs_it(self):
        told = self.json("verify", MINI, "--json")
        self.assertTrue(told["ok"])
        self.assertEqual({check["name"]: check["outcome"] for check in told["checks"]}["answer"], "ok")

    def test_text_and_ids_go_in_and_out(self):
        self.assertEqual(self.json("tokenize", MINI, "cab", "--json")["ids"], [99, 256])
        self.output("generate", MINI, "--ids", "1,2,3", "-n", "4")
        out = self.temporary_folder() / "logits.npy"
        self.output("logits", MINI, "-p", "cab", "--out", out)
        self.assertTrue(out.exists())

    def test_its_name_does_not_matter_and_its_bytes_do(self):
        folder = self.temporary_folder()
        (folder / "model").symlink_to(MINI)
        self.output("verify", folder / "model", "--files-only")
        (folder / "other.gguf").write_text("something else")
        self.assertIn("neither a folder nor a GGUF file", self.refusal(FAILURE, "inspect", folder / "other.gguf"))
        self.assertIn("neither a folder nor a GGUF file", self.refusal(FAILURE, "generate", folder / "other.gguf", "-p", "x"))

    def test_a_folder_that_holds_it_names_it(self):
        folder = self.temporary_folder()
        (folder / "mini.gguf").write_bytes(MINI.read_bytes())
        message = self.refusal(FAILURE, "generate", folder, "-p", "x")
        self.assertIn(f"give {folder / 'mini.gguf'} itself", message)

    def test_a_torn_file_is_refused(self):
        torn = self.temporary_folder() / "torn.gguf"
        torn.write_bytes(MINI.read_bytes()[:-1000])
        self.assertIn("is it truncated", self.refusal(FAILURE, "logits", torn, "--ids", "1", "--out", torn.parent / "l.npy"))

    def test_an_id_beyond_its_vocabulary_is_refused(self):
        self.refusal(USAGE, "generate", MINI, "--ids", "260")


if __name__ == "__main__":
    unittest.main()
