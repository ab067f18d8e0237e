#!/usr/bin/python3
"""Help, version, exit codes, and output that can't be written."""
import json
import os
import subprocess
import unittest

from program import IDS_ONLY, KILIN, ROOT, FAILURE, SUCCESS, TIMEOUT_S, TINY, USAGE, ProgramTest, kilin

COMMANDS = ("generate", "chat", "tokenize", "logits", "trace", "lens", "quantize", "perplexity", "inspect", "verify", "synth", "bench",
            "info")


class Usage(ProgramTest):
    def test_help_names_every_command_and_each_has_its_own(self):
        text = self.output("--help")
        for command in COMMANDS:
            self.assertIn(command, text)
            own = self.output(command, "--help")
            self.assertIn(f"kilin {command}", own)
            self.assertIn("--help", own)
            self.assertNotIn("\n\n\n", own)
            self.assertNotIn("COMMAND --help", own)  # the program's own footer

    def test_the_version_is_the_projects(self):
        version = ROOT.joinpath("CMakeLists.txt").read_text().split("project(kilin VERSION ")[1].split()[0]
        self.assertEqual(self.output("--version"), f"kilin {version}\n")
        self.assertEqual(self.json("info", "--json")["version"], version)

    def test_info_shows_cpu_threads_memory_and_kernels(self):
        info = self.json("info", "--json")
        self.assertGreaterEqual(info["threads"], 1)
        self.assertGreater(info["memory"]["total_bytes"], 0)
        self.assertIn("matmul", info["kernels"])
        shown = self.output("info")
        for text in (info["cpu"]["name"], info["isa"], "matmul"):
            self.assertIn(text, shown)

    def test_the_environment_picks_kernels(self):
        info = self.json("info", "--json", env={**os.environ, "KILIN_ISA": "scalar", "KILIN_NAIVE": "all"})
        self.assertEqual(info["isa"], "scalar")
        self.assertEqual(set(info["kernels"].values()), {"naive"})
        self.refusal(USAGE, "info", env={**os.environ, "KILIN_ISA": "mmx"})

    def test_kernels_that_are_unknown_are_refused_before_anything_is_read(self):
        nowhere = "/nowhere/model"
        for command in (("verify",), ("generate", "-p", "x"), ("chat",), ("bench",), ("logits", "--ids", "1", "--out", "x"),
                        ("perplexity", "--file", "/nowhere/text"), ("lens", "--ids", "1", "-o", "-"),
                        ("trace", "--ids", "1", "--save", "logits=x")):
            for name, value in (("KILIN_ISA", "mmx"), ("KILIN_NAIVE", "nonsense")):
                message = self.refusal(USAGE, command[0], nowhere, *command[1:], env={**os.environ, name: value})
                self.assertIn(value, message, command)

    def test_unknown_commands_options_and_arguments_are_usage_errors(self):
        self.assertIn("'nonsense' is not a command; generate, chat,", self.refusal(USAGE, "nonsense"))
        self.refusal(USAGE, "")
        self.assertIn("'--two', 'three', '4'", self.refusal(USAGE, "generate", "one", "--two", "three", "4"))
        self.refusal(USAGE, "--nonsense")
        self.refusal(USAGE, "info", "surplus")
        for command in COMMANDS:
            self.refusal(USAGE, command, "--nonsense")
        self.refusal(USAGE, "generate", "-n")

    def test_the_program_alone_shows_its_help_and_fails(self):
        result = kilin()
        self.assertEqual((result.returncode, result.stderr), (USAGE, b""))
        self.assertEqual(result.stdout.decode(), self.output("--help"))

    def test_an_empty_value_is_refused_by_the_options_name(self):
        for command, options in {
            "generate": ("--ids", "--system", "--max-tokens", "--stop", "--ctx", "--temp", "--top-k", "--seed", "--threads",
                         "--kv-type", "--activations"),
            "chat": ("--system", "--ctx", "--temp"),
            "logits": ("--out", "--ids"),
            "tokenize": ("--ids", "--threads", "--kv-type"),
            "inspect": ("--layer", "--threads"),
            "verify": ("--max-tokens", "--threads"),
            "synth": ("--config", "--layers", "--dtype", "--shard-size", "--tokenizer"),
        }.items():
            for option in options:
                for form in ((f"{option}=",), (option, "")):
                    message = self.refusal(USAGE, command, *form, "--json" if command not in ("chat", "logits") else "--help")
                    self.assertRegex(message, rf"\Akilin: {option} is (empty|''); expected ", form)
            self.assertIn("MODEL is empty" if command != "synth" else "OUT is empty", self.refusal(USAGE, command, ""))
        self.refusal(USAGE, "generate", "--prompt=", "-n", "5")

    def test_a_short_option_with_an_equals_sign_is_explained(self):
        self.assertIn("expected -n 5 or --max-tokens=5", self.refusal(USAGE, "generate", "-n=5"))
        self.assertIn("expected -p x or --prompt=x", self.refusal(USAGE, "generate", "-p=x"))

    def test_messages_name_options_as_they_are_typed(self):
        for options, message in {
            ("--temp", "-1"): "--temp is -1; expected 0 or",
            ("--top-p", "0"): "--top-p is 0; expected",
            ("--min-p", "2"): "--min-p is 2; expected",
            ("--repetition-penalty", "0"): "--repetition-penalty is 0; expected",
            ("--prefill-chunk", "0"): "--prefill-chunk is 0; expected a whole number from 1 to 65536",
            ("--threads", "-1"): "--threads is '-1'; expected a whole number from 1 to 4096",
            ("--kv-type", "q9"): "--kv-type is 'q9'; expected f32, bf16 or q8",
            ("--ids", "5,,6"): "--ids is '5,,6', whose id 2 is empty",
        }.items():
            self.assertIn(message, self.refusal(USAGE, "generate", *options))
        self.assertIn("all picks the naive form", self.refusal(USAGE, "info", env={**os.environ, "KILIN_NAIVE": "1"}))

    def test_values_that_cannot_be_meant_are_usage_errors(self):
        for option, values in {
            "--temp": ("nan", "-1", "-0.1", "inf", "hot", "", "1e999"),
            "--top-k": ("-1", "1.5", "18446744073709551616"),
            "--top-p": ("0", "1.1", "nan"),
            "--min-p": ("-0.1", "1.1"),
            "--repetition-penalty": ("0", "-1", "nan"),
            "--seed": ("-1", "x", "18446744073709551616"),
            "-n": ("0", "-1", "many", "99999999999999999999"),
            "--ctx": ("0", "-5"),
            "--threads": ("0", "-1", "1000000"),
            "--prefill-chunk": ("0", "-1", "99999999999"),
            "--kv-type": ("q9", ""),
            "--quantize": ("q4_k", ""),
            "--pack-cache": ("",),
            "--activations": ("f64",),
            "--stop": ("",),
        }.items():
            for value in values:
                message = self.refusal(USAGE, "generate", IDS_ONLY, "--ids", "1", option, value)
                self.assertTrue(value in message or value in ("nan", "99999999999999999999"), message)
        for ids in ("1,,2", "", ",", "1,", "x", "1 2", "2147483648", "99999999999999999999"):
            self.refusal(USAGE, "generate", IDS_ONLY, "--ids", ids)

    def test_arguments_that_are_not_utf8_are_usage_errors(self):
        for args in (("generate", "-p", b"\xff"), ("tokenize", "-p", b"\xc3"), ("generate", "--stop", b"\xe2\x82", "-p", "x")):
            result = subprocess.run([KILIN, *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S)
            self.assertEqual(result.returncode, USAGE, args)
            self.assertIn(b"UTF-8", result.stderr)

    def test_a_model_that_is_not_right_is_a_failure(self):
        folder = self.temporary_folder()
        for command in (("generate",), ("logits", "--out", folder / "x.npy")):
            self.refusal(FAILURE, *command, folder / "nowhere", "--ids", "1")
            self.refusal(FAILURE, *command, folder, "--ids", "1")
        broken = self.ids_model(num_experts=17)
        self.refusal(FAILURE, "generate", broken, "--ids", "1")
        (broken / "config.json").write_text('{\n  "rms_norm_eps": 1e999\n}')
        self.assertIn("line 2, column 23", self.refusal(FAILURE, "generate", broken, "--ids", "1"))
        hot = self.ids_model()
        (hot / "generation_config.json").write_text(json.dumps({"temperature": -1}))
        self.assertIn("generation_config.json", self.refusal(FAILURE, "generate", hot, "--ids", "1"))

    def test_without_the_embedded_model_its_place_is_named(self):
        alone = self.temporary_folder() / "bin/kilin"
        alone.parent.mkdir()
        alone.symlink_to(KILIN)  # a link still finds the model beside the program itself
        args = [alone, "tokenize", "-p", "x"]
        self.assertEqual(subprocess.run(args, capture_output=True, timeout=TIMEOUT_S).returncode, SUCCESS)
        alone.unlink()
        try:
            os.link(KILIN, alone)
        except OSError:  # another file system
            alone.write_bytes(open(KILIN, "rb").read())
            alone.chmod(0o755)
        result = subprocess.run(args, capture_output=True, timeout=TIMEOUT_S)
        self.assertEqual(result.returncode, FAILURE)
        self.assertIn(b"share/kilin/models/tiny", result.stderr)

    def test_a_full_disk_is_a_failure(self):
        for args in (("--help",), ("info",), ("tokenize", "-p", "x"), ("generate", "-n", "2"),
                     ("generate", "-n", "2", "--json")):
            with open("/dev/full", "wb") as full:
                result = subprocess.run([KILIN, *args], stdout=full, stderr=subprocess.PIPE, timeout=TIMEOUT_S)
            self.assertEqual(result.returncode, FAILURE, args)
            self.assertIn(b"No space left", result.stderr, args)

    def test_a_reader_that_has_gone_ends_it_quietly(self):
        for args in (("info",), ("generate", "-n", "4", "--temp", "0")):
            reading, writing = os.pipe()
            os.close(reading)
            result = subprocess.run([KILIN, *args], stdout=writing, stderr=subprocess.PIPE, timeout=TIMEOUT_S)
            os.close(writing)
            self.assertEqual((result.returncode, result.stderr), (FAILURE, b""), args)

    def test_closed_streams_harm_nothing(self):
        out = self.temporary_folder() / "logits.npy"
        shell = f"exec '{KILIN}' logits '{IDS_ONLY}' --ids 1,2 --out '{out}' <&- >&- 2>&-"
        self.assertEqual(subprocess.run(["/bin/sh", "-c", shell], timeout=TIMEOUT_S).returncode, SUCCESS)
        self.assertEqual(out.read_bytes()[:6], b"\x93NUMPY")
        result = subprocess.run(["/bin/sh", "-c", f"exec '{KILIN}' info >&-"], stderr=subprocess.PIPE, timeout=TIMEOUT_S)
        self.assertEqual(result.returncode, FAILURE)
        self.assertIn(b"standard output", result.stderr)

    def test_nothing_but_text_when_there_is_no_terminal(self):
        result = kilin("generate", TINY, "-p", "The whale", "-n", "4", "--temp", "0")
        self.assertNotIn(b"\x1b", result.stdout + result.stderr)
        self.assertNotIn(b"\r", result.stdout + result.stderr)
        self.assertNotIn(b"The whale", result.stdout)


if __name__ == "__main__":
    unittest.main()
