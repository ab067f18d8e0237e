#!/usr/bin/python3
"""kilin bench: tables and JSON of the right shape, and refusals. Never how fast."""
import unittest

from program import IDS_ONLY, TINY, FAILURE, USAGE, ProgramTest

SHORT = ("--prompt", "70", "--depth", "0,100", "--batch", "2", "--generate", "2", "--repeat", "2")
PEAKS = {"read_bytes_per_s", "int8_operations_per_s", "fp32_operations_per_s", "bf16_operations_per_s"}
COSTS = {"weight_bytes", "state_bytes", "latent_bytes", "int8_operations", "bf16_operations", "fp32_operations", "experts"}


class Bench(ProgramTest):
    def test_the_report_holds_everything_with_units_in_its_keys(self):
        report = self.json("bench", TINY, *SHORT, "--json", "--past", "noise", "--seed", "7", "--threads", "2")
        for key in ("version", "cpu", "isa", "load_s", "start_to_first_token_s"):
            self.assertTrue(report[key], key)
        self.assertEqual([report[key] for key in ("threads", "activations", "kv_type", "repeats", "generated_tokens", "seed")],
                         [2, "f32", "f32", 2, 2, 7])
        self.assertGreater(report["start_to_first_token_s"], report["load_s"])
        self.assertGreater(report["memory"]["peak_bytes"], 0)
        self.assertGreater(report["memory"]["weight_bytes"], 20_000_000)
        (prompt,), (alone, deep), (batch,) = report["prompt"], report["generation"], report["batch"]
        self.assertEqual((prompt["prompt_tokens"], prompt["peak"]), (70, "fp32"))
        self.assertEqual([(row["sequences"], row["depth_tokens"], row["past_by"]) for row in (alone, deep, batch)],
                         [(1, 0, "nothing"), (1, 100, "noise"), (2, 16, "prompt")])
        for row in (prompt, alone, deep, batch):
            rate = row["tokens_per_s"]
            self.assertTrue(0 < rate["min"] <= rate["median"] <= rate["max"])
            self.assertEqual(len(row["repeat_seconds"]), 2)
            self.assertEqual(set(row["cost_per_step"]), COSTS)
            for peaks in (row["peaks_before"], row["peaks_after"]):
                self.assertEqual(set(peaks), PEAKS)
                self.assertGreater(peaks["read_bytes_per_s"], 0)
            self.assertNotIn("stages", row)
        for row in (alone, deep, batch):
            self.assertAlmostEqual(row["bound_share"], row["bound_seconds_per_step"] / row["seconds_per_step"])
        self.assertEqual(alone["experts_per_layer"], 2)
        self.assertTrue(2 <= batch["experts_per_layer"] <= 4)
        self.assertGreater(deep["cost_per_step"]["latent_bytes"], alone["cost_per_step"]["latent_bytes"])

    def test_stages_add_up_to_the_whole(self):
        report = self.json("bench", TINY, *SHORT, "--json", "--profile", "--quantize", "q8_0")
        for row in report["prompt"] + report["generation"] + report["batch"]:
            stages = {stage["stage"]: stage for stage in row["stages"]}
            self.assertLess({"embedding", "norms", "kda_recurrence", "mla_attention", "experts", "lm_head", "sampling", "other"},
                            set(stages))
            self.assertAlmostEqual(sum(stage["time_share"] for stage in row["stages"]), 1)
            for key in COSTS:
                self.assertAlmostEqual(sum(stage.get(key, 0) for stage in row["stages"]), row["cost_per_step"][key])
        self.assertGreater(stages["experts"]["int8_operations"], 0)
        self.assertEqual(report["prompt"][0]["peak"], "int8")

    def test_the_tables_are_for_people(self):
        text = self.output("bench", TINY, *SHORT, "--profile")
        for word in ("model ", "start ", "prompt ", "depth ", "sequences ", "tokens/s", "bandwidth", "bound", "share", "memory ",
                     "kda_recurrence", "other"):
            self.assertIn(word, text)
        self.assertEqual(text.count("tokens/s"), 3)
        self.assertEqual(text.count("\n  other "), 4)  # a row each

    def test_tables_can_be_left_out(self):
        report = self.json("bench", IDS_ONLY, "--prompt", "5", "--depth", "none", "--batch", "none", "--repeat", "1", "--json")
        self.assertEqual([len(report[table]) for table in ("prompt", "generation", "batch")], [1, 0, 0])
        self.assertNotIn("depth", self.output("bench", IDS_ONLY, "--prompt", "5", "--depth", "none", "--batch", "none"))

    def test_what_cannot_be_meant_is_a_usage_error(self):
        for option, values in {
            "--prompt": ("", "0", "-1", "512,", "1,,2", "x", "1.5", "99999999999"),
            "--depth": ("", "-1", "0,x"),
            "--batch": ("", "0", "5000"),
            "--generate": ("", "0", "-1", "99999999"),
            "--repeat": ("", "0", "1001"),
            "--past": ("", "file"),
            "--seed": ("-1",),
            "--threads": ("0",),
            "--kv-type": ("q9",),
        }.items():
            for value in values:
                self.assertIn(f"{option} is ", self.refusal(USAGE, "bench", TINY, option, value))
        self.assertIn("'512'", self.refusal(USAGE, "bench", TINY, "512"))

    def test_rows_that_do_not_fit_are_refused_beforehand(self):
        short = self.ids_model(model_max_length=200)
        self.assertIn("a depth of 4096 takes", self.refusal(USAGE, "bench", short, "--prompt", "5", "--depth", "0,4096"))
        long = self.ids_model(model_max_length=(1 << 31) - 1)
        message = self.refusal(FAILURE, "bench", long, "--prompt", "5", "--depth", str(1 << 30), "--kv-type", "f32")
        self.assertIn("a depth of 1073741824 needs", message)
        self.refusal(FAILURE, "bench", "nowhere")


if __name__ == "__main__":
    unittest.main()
