#!/usr/bin/python3
"""kilin generate: the reference's texts, ids in and out, and every way to give a prompt."""
import json
import unittest

from program import IDS_ONLY, SANITIZED, TINY, FAILURE, USAGE, ProgramTest, ids_text, kilin, read_npy

EXPECTED = json.loads((TINY / "expected.json").read_text())["greedy"]
GREEDY = ("--temp", "0", "--ignore-eos", "--json")


class Generate(ProgramTest):
    @unittest.skipIf(SANITIZED, "minutes of what shorter texts reach")
    def test_greedy_texts_are_the_references(self):
        for case in EXPECTED:
            with self.subTest(prompt=case["prompt"]):
                answer = self.json("generate", TINY, "--special", "-p", case["prompt"], "-n", len(case["ids"]), *GREEDY)
                self.assertEqual(answer["prompt_ids"], case["prompt_ids"])
                self.assertEqual(answer["ids"], case["ids"])
                self.assertEqual(answer["text"], case["text"])
                self.assertEqual(answer["finish_reason"], "length")

    def test_ids_go_in_and_out_without_a_tokenizer(self):
        answer = self.json("generate", IDS_ONLY, "--ids", "5,17,9", "-n", "16", *GREEDY)
        self.assertEqual(answer["prompt_ids"], [5, 17, 9])
        self.assertEqual(len(answer["ids"]), 16)
        self.assertIsNone(answer["text"])
        shown = self.output("generate", IDS_ONLY, "--ids", "5,17,9", "-n", "16", "--temp", "0", "--ignore-eos")
        self.assertEqual(shown, ids_text(answer["ids"]) + "\n")

    def test_greedy_ids_are_the_golden_ones(self):
        for tokens in ("T001", "T003", "T008", "T065"):
            with self.subTest(prompt=tokens):
                ids, greedy = (read_npy(IDS_ONLY.parent / "tiny" / tokens / file)[1] for file in ("ids.npy", "greedy_ids.npy"))
                answer = self.json("generate", IDS_ONLY, "--ids", ids_text(ids), "-n", len(greedy), *GREEDY)
                self.assertEqual(answer["ids"], list(greedy))

    def test_json_holds_the_measured_figures(self):
        answer = self.json("generate", IDS_ONLY, "--ids", "1,2,3", "-n", "4", *GREEDY)
        self.assertEqual(set(answer), {"prompt_ids", "ids", "text", "finish_reason", "seed", "timings", "planned_memory_bytes",
                                       "peak_memory_bytes"})
        timings = answer["timings"]
        self.assertEqual(timings["prompt_tokens"], 3)
        self.assertEqual(timings["decode_tokens"], 3)  # the first of the four comes with the prompt
        for figure in ("load_s", "prompt_s", "decode_s", "prompt_tokens_per_s", "decode_tokens_per_s"):
            self.assertGreater(timings[figure], 0)
            self.assertEqual(timings[figure], round(timings[figure], 6))
        self.assertGreater(answer["peak_memory_bytes"], 7_622_848)  # the weights

    @unittest.skipIf(SANITIZED, "a sanitiser keeps memory of its own")
    def test_memory_is_the_files_the_plan_and_64_mb(self):
        prompt = ids_text([*range(1, 501), *range(1, 101)])  # longer than two chunks
        for model in (TINY, IDS_ONLY):
            files = sum(file.stat().st_size for file in model.glob("*.safetensors"))
            planned = None  # for the usual context: room for a longer one that nobody used costs nothing
            for options in ((), ("--activations", "bf16"), ("--ctx", "4096")):
                with self.subTest(model=model.name, options=options):
                    answer = self.json("generate", model, "--ids", prompt, "-n", "4", "--prefill-chunk", "256", *GREEDY, *options)
                    self.assertEqual(answer["timings"]["prompt_tokens"], 600)
                    self.assertGreater(answer["planned_memory_bytes"], 0)
                    planned = planned or answer["planned_memory_bytes"]
                    self.assertLessEqual(answer["peak_memory_bytes"], files + planned + 64_000_000)

    def test_a_prompt_can_come_by_standard_input_as_it_is(self):
        by_argument = self.json("generate", "-p", "The whale\n", "-n", "3", *GREEDY)
        by_input = self.json("generate", "-p", "-", "-n", "3", *GREEDY, stdin="The whale\n")
        self.assertEqual(by_input["prompt_ids"], by_argument["prompt_ids"])
        self.assertEqual(by_input["ids"], by_argument["ids"])

    def test_special_tokens_in_a_text_are_text_unless_asked_for(self):
        plain = self.json("generate", "-p", "<|im_end|>", "-n", "1", *GREEDY)
        special = self.json("generate", "-p", "<|im_end|>", "--special", "-n", "1", *GREEDY)
        self.assertGreater(len(plain["prompt_ids"]), 1)
        self.assertEqual(special["prompt_ids"], [3842])

    def test_text_in_brackets_stays_whole(self):
        answer = self.json("generate", "-p", "[a,b]", "-n", "1", *GREEDY)
        decoded = self.output("tokenize", "--decode", "--ids", ids_text(answer["prompt_ids"]))
        self.assertEqual(decoded, "[a,b]\n")

    def test_a_chat_turn_is_the_chat_formats(self):
        case = EXPECTED[5]  # a system message and a user's
        answer = self.json("generate", "--chat", "--system", "You are a helpful assistant", "-p", "Tell me a verse.", "-n", "8",
                           *GREEDY)
        self.assertEqual(answer["prompt_ids"], case["prompt_ids"])
        self.assertEqual(answer["ids"], case["ids"][:8])

    def test_a_stop_string_ends_the_text_before_it(self):
        case = EXPECTED[0]
        answer = self.json("generate", "-p", case["prompt"], "-n", "48", "--stop", "never there", "--stop", "strength", *GREEDY)
        self.assertEqual(answer["finish_reason"], "stop")
        self.assertEqual(answer["text"], case["text"].split("strength")[0])

    def test_an_answer_ends_at_a_stop_token_unless_told_otherwise(self):
        prompt = ("--chat", "-p", "What is love?", "--temp", "0", "--json", "-n")
        answer = self.json("generate", *prompt, 200)
        self.assertEqual(answer["finish_reason"], "stop")
        self.assertIn(answer["ids"][-1], (3841, 3842, 3849))
        self.assertNotIn("<|", answer["text"])
        longer = self.json("generate", *prompt, len(answer["ids"]) + 3, "--ignore-eos")
        self.assertEqual(longer["ids"][: len(answer["ids"])], answer["ids"])
        self.assertEqual(longer["finish_reason"], "length")

    def test_a_checkpoint_that_does_not_sample_is_greedy_unless_a_temperature_is_given(self):
        folder = self.byte_model()
        prompt = ("generate", folder, "-p", "Hello", "-n", "24", "--ignore-eos", "--json")
        greedy = self.json(*prompt, "--temp", "0")["ids"]
        (folder / "generation_config.json").write_text(json.dumps({"do_sample": False, "temperature": 1.5}))
        self.assertEqual(self.json(*prompt)["ids"], greedy)
        self.assertNotEqual(self.json(*prompt, "--temp", "1.5", "--seed", "1")["ids"], greedy)
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [1, 512]}))
        self.assertIn("eos_token_id holds 512", self.refusal(FAILURE, *prompt))

    def test_a_context_beyond_the_models_is_a_usage_error(self):
        model = self.ids_model(model_max_length=100)
        for ctx in (101, 2**40, 2**64 - 1):
            message = self.refusal(USAGE, "generate", model, "--ids", "1", "-n", "1", "--ctx", ctx)
            self.assertIn(f"--ctx is {ctx}; expected 1 to 100, the model_max_length of", message)
        self.assertIn("--ctx is 1048577", self.refusal(USAGE, "chat", self.byte_model(), "--ctx", 2**20 + 1))
        self.json("generate", model, "--ids", "1", "-n", "1", "--ctx", "100", "--json")

    def test_a_single_token_has_no_rate(self):
        result = kilin("generate", IDS_ONLY, "--ids", "1", "-n", "1", "--temp", "0")
        self.assertRegex(result.stderr.decode(), r"\Aprompt 1 token; generated 1 token; peak memory \d+ MiB\n\Z")

    def test_the_same_seed_gives_the_same_text_and_is_reported(self):
        args = ("generate", "-p", "The whale", "-n", "12", "--temp", "1.5", "--json")
        first = self.json(*args)
        again = self.json(*args, "--seed", first["seed"])
        self.assertEqual(again["ids"], first["ids"])
        self.assertEqual(again["seed"], first["seed"])
        texts = {tuple(self.json(*args, "--seed", seed)["ids"]) for seed in range(4)}
        self.assertGreater(len(texts), 1)

    def test_threads_and_chunks_change_nothing_that_is_chosen(self):
        prompt = ("generate", IDS_ONLY, "--ids", ids_text(range(1, 131)), "-n", "4", *GREEDY)
        expected = self.json(*prompt)["ids"]
        for options in (("--threads", "1"), ("--threads", "3"), ("--prefill-chunk", "64"), ("--ctx", "500"), ("--seed", "5"),
                        ("--kv-type", "f32"), ("--activations", "f32")):
            self.assertEqual(self.json(*prompt, *options)["ids"], expected, options)
        self.json(*prompt, "--kv-type", "bf16", "--activations", "bf16")

    def test_the_answer_ends_where_the_context_does(self):
        answer = self.json("generate", IDS_ONLY, "--ids", "1,2,3", "--ctx", "8", "-n", "100", *GREEDY)
        self.assertEqual(answer["finish_reason"], "length")
        self.assertEqual(len(answer["ids"]), 6)  # the last one needs no place
        short = self.ids_model(model_max_length=16)
        whole = self.json("generate", short, "--ids", ids_text([1] * 14), "-n", 2**64 - 1, *GREEDY)
        self.assertEqual(len(whole["ids"]), 3)
        self.assertIn("16", self.refusal(USAGE, "generate", short, "--ids", ids_text([1] * 17), "-n", 2**64 - 1))

    def test_without_model_and_prompt_it_tells_of_captain_ahab(self):
        result = kilin("generate", "-n", "8", "--seed", "1")
        self.assertEqual(result.returncode, 0)
        self.assertGreater(len(result.stdout.decode().split()), 2)
        self.assertRegex(result.stderr.decode(), r"\Aprompt \d+ tokens, [\d.]+ tokens/s; "
                                                 r"generated \d+ tokens, [\d.]+ tokens/s; peak memory \d+ MiB\n\Z")

    def test_text_without_a_tokenizer_is_a_clear_failure(self):
        self.assertIn("tiktoken.model", self.refusal(FAILURE, "generate", IDS_ONLY, "-p", "The whale"))
        self.assertIn("tiktoken.model", self.refusal(FAILURE, "generate", IDS_ONLY, "--ids", "1", "--stop", "x"))
        self.assertIn("tiktoken.model", self.refusal(FAILURE, "generate", IDS_ONLY, "--chat", "-p", "x"))

    def test_prompts_that_cannot_be_meant_are_usage_errors(self):
        self.refusal(USAGE, "generate", TINY)  # a model of one's own needs a prompt
        self.refusal(USAGE, "generate", "-p", "")
        self.refusal(USAGE, "generate", "-p", "-", stdin="")
        self.refusal(USAGE, "generate", "-p", "-", stdin=b"\xff")
        self.refusal(USAGE, "generate", "-p", "x", "--ids", "1")
        self.refusal(USAGE, "generate", "--system", "x", "-p", "x")
        self.refusal(USAGE, "generate", "--chat", "--ids", "1")
        self.refusal(USAGE, "generate", "--special", "--ids", "1")
        self.refusal(USAGE, "generate", "--chat", "--special", "-p", "x")
        self.assertIn("4096", self.refusal(USAGE, "generate", "--ids", "4096"))
        self.refusal(USAGE, "generate", "--ids", "-1")
        self.refusal(USAGE, "generate", "--ids", "1,2,3", "--ctx", "2")


if __name__ == "__main__":
    unittest.main()
