#!/usr/bin/python3
"""kilin trace: inner values in files, what is offered, and names that are refused."""
import unittest

from program import IDS_ONLY, TINY, FAILURE, USAGE, ProgramTest, ids_text, kilin, read_npy


class Trace(ProgramTest):
    def test_values_are_written_in_their_shapes(self):
        folder = self.temporary_folder()
        saves = {"layers.3.layer_output": (4, 128), "layers.3.self_attn.attention_probabilities": (4, 4, 4),
                 "layers.1.mlp.expert_indices": (4, 4), "layers.1.linear_attn.states": (4, 4, 32, 32), "input_ids": (4,),
                 "next_token_probs": (512,)}
        args = [part for i, name in enumerate(saves) for part in ("--save", f"{name}={folder / str(i)}.npy")]
        answer = self.json("trace", IDS_ONLY, "--ids", "5,17,9,3", *args, "--json")
        self.assertEqual(answer["ids"], [5, 17, 9, 3])
        self.assertEqual([(s["name"], tuple(s["shape"])) for s in answer["saved"]], list(saves.items()))
        arrays = [read_npy(s["file"]) for s in answer["saved"]]
        self.assertEqual([shape for shape, _ in arrays], list(saves.values()))
        self.assertEqual(arrays[4][1], (5, 17, 9, 3))
        for row in range(0, 64, 4):
            self.assertAlmostEqual(sum(arrays[1][1][row:row + 4]), 1, 5)
        self.assertAlmostEqual(sum(arrays[5][1]), 1, 5)

    def test_logits_are_those_of_kilin_logits(self):
        folder = self.temporary_folder()
        self.output("logits", "-p", "The whale", "--out", folder / "plain.npy")
        self.output("trace", "-p", "The whale", "--save", f"logits={folder / 'traced.npy'}")
        self.assertEqual((folder / "plain.npy").read_bytes(), (folder / "traced.npy").read_bytes())

    def test_a_step_of_generation_has_its_own_values(self):
        out = self.temporary_folder() / "ids.npy"
        answer = self.json("trace", TINY, "-p", "The whale", "-n", "3", "--step", "2", "--save", f"input_ids={out}", "--json")
        self.assertEqual(len(answer["output_ids"]), 3)
        self.assertEqual(read_npy(out), ((1,), (answer["output_ids"][1],)))
        generated = self.json("generate", TINY, "-p", "The whale", "-n", "3", "--temp", "0", "--ignore-eos", "--json")
        self.assertEqual(answer["output_ids"], generated["ids"])

    def test_the_list_needs_no_weights(self):
        folder = self.temporary_folder()
        (folder / "config.json").write_bytes((IDS_ONLY / "config.json").read_bytes())
        values = {v["name"]: v for v in self.json("trace", folder, "--list", "--json")["values"]}
        self.assertEqual(values["layers.3.self_attn.attention_scores"],
                         {"name": "layers.3.self_attn.attention_scores", "shape": "[num_attention_heads, S, K]", "writable": True,
                          "staged": True})
        self.assertNotIn("layers.0.self_attn.attention_scores", values)
        self.assertIn("layers.0.linear_attn.states", self.output("trace", folder, "--list"))

    def test_a_name_that_a_block_lacks_is_refused_before_anything_is_written(self):
        out = self.temporary_folder() / "out.npy"
        message = self.refusal(FAILURE, "trace", TINY, "--ids", "1", "--save", f"layers.0.self_attn.attention_scores={out}")
        self.assertIn("layers[0].self_attn.attention_scores is not available: block 0 is a KDA block", message)
        self.assertIn("layers.0.layer_output", self.refusal(FAILURE, "trace", "--ids", "1", "--save", f"layers.0.layeroutput={out}"))
        self.refusal(FAILURE, "trace", "--ids", "1", "--save", f"layers.0.linear_attn.state_input={out}")
        self.assertFalse(out.exists())

    def test_arguments_that_do_nothing_are_usage_errors(self):
        for args in (("--ids", "1"), ("--save", "logits=x.npy"), ("--list", "--ids", "1"), ("--ids", "1", "--save", "logits"),
                     ("--ids", "1", "--save", "=x"), ("--ids", "1", "--save", "logits="),
                     ("--ids", "1", "--save", "logits=x.npy", "--save", "norm=x.npy"),
                     ("--ids", "1", "--step", "1", "--save", "logits=x.npy"), ("--ids", "4096", "--save", "logits=x.npy")):
            self.refusal(USAGE, "trace", TINY, *args)

    def test_what_was_written_is_said_on_standard_error(self):
        out = self.temporary_folder() / "norm.npy"
        result = kilin("trace", IDS_ONLY, "--ids", ids_text([1, 2, 3]), "--save", f"norm={out}")
        self.assertEqual(result.stderr.decode(), f"{out}: float32 [3, 128]\n")


if __name__ == "__main__":
    unittest.main()
