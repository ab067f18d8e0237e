#!/usr/bin/python3
"""kilin inspect, verify and synth: what a model is made of, whether it is whole, and random ones of any shape."""
import json
import shutil
import subprocess
import unittest

from program import FAILURE, IDS_ONLY, KILIN, TIMEOUT_S, TINY, USAGE, ProgramTest, kilin

REAL = IDS_ONLY.parent / "real"  # config.json alone


class Inspect(ProgramTest):
    def test_the_real_configuration_tells_the_real_model(self):
        told = self.json("inspect", REAL, "--json")
        self.assertEqual((told["tensors"], told["parameters"], told["bytes"]), (20493, 49122681728, 98245528576))
        kinds = [layer["attention"] for layer in told["layers"]]
        self.assertEqual([i + 1 for i, kind in enumerate(kinds) if kind == "mla"], [4, 8, 12, 16, 20, 24, 27])

    def test_experts_are_one_line_and_all_shows_each(self):
        text = self.output("inspect", REAL)
        self.assertIn("0-255  x256", text)
        self.assertLess(len(text.splitlines()), 150)
        self.assertGreater(len(self.output("inspect", REAL, "--all").splitlines()), 20493)

    def test_the_embedded_model_fits(self):
        told = self.json("inspect", "--json")
        self.assertEqual(told["presence"]["stored"], told["tensors"])
        self.assertEqual({row["fit"] for row in told["memory"] if row["context_tokens"] == 4096}, {"fits"})

    def test_a_layer_is_read_and_its_values_are_told(self):
        told = self.json("inspect", TINY, "--layer", "3", "--json")
        self.assertEqual((told["attention"], told["feed_forward"], told["faults"]), ("mla", "moe", []))
        self.assertIn("experts.*.w1.weight  x8", self.output("inspect", TINY, "--layer", "3"))
        self.assertNotIn("experts.*", self.output("inspect", TINY, "--layer", "3", "--all"))

    def test_weights_that_are_not_whole_are_shown_and_fail(self):
        folder = self.ids_model()
        shard = sorted(folder.glob("*.safetensors"))[-1]
        shard.unlink()
        result = kilin("inspect", folder)
        self.assertEqual(result.returncode, FAILURE)
        self.assertIn(b"lm_head.weight", result.stdout)
        self.assertIn(b"context", result.stdout)
        self.assertRegex(result.stderr.decode(), r"\Akilin: [^\n]* unreadable\n\Z")
        result = kilin("inspect", folder, "--json")
        self.assertEqual(result.returncode, FAILURE)
        self.assertGreater(json.loads(result.stdout)["presence"]["unreadable"], 0)

    def test_the_memory_comes_before_the_tensors_and_a_summary_last(self):
        text = self.output("inspect", TINY)
        self.assertLess(text.index("kv-type"), text.index("lm_head"))
        self.assertRegex(text.splitlines()[-1], "fits here with a context of")

    def test_a_reader_who_leaves_early_ends_text_as_json(self):
        for command in (("inspect", TINY), ("info",)):
            for json_option in ((), ("--json",)):
                process = subprocess.Popen([KILIN, *command, *json_option], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                process.stdout.read(1)
                process.stdout.close()
                self.assertEqual(process.stderr.read(), b"")
                process.stderr.close()
                self.assertEqual(process.wait(timeout=TIMEOUT_S), 0, (command, json_option))

    def test_what_is_not_there_is_refused(self):
        self.refusal(USAGE, "inspect", TINY, "--layer", "6")
        self.refusal(USAGE, "inspect", TINY, "--threads", "0")
        self.refusal(FAILURE, "inspect", REAL, "--layer", "0")
        self.refusal(FAILURE, "inspect", self.temporary_folder())


class Verify(ProgramTest):
    def test_a_damaged_model_fails_with_a_line_a_check_and_code_1(self):
        folder = self.temporary_folder()
        for file in TINY.iterdir():
            if file.name != "model.safetensors":
                (folder / file.name).symlink_to(file)
        weights = bytearray((TINY / "model.safetensors").read_bytes())
        weights[-2:] = b"\xc0\x7f"  # a bf16 NaN
        (folder / "model.safetensors").write_bytes(weights)
        result = kilin("verify", folder)
        self.assertEqual(result.returncode, FAILURE)
        self.assertRegex(result.stdout.decode(), r"(?m)^FAILED +values +1 tensors")
        self.assertRegex(result.stdout.decode(), r"(?m)^ok +tensors ")
        self.assertRegex(result.stderr.decode(), r"\Akilin: [^\n]*: 1 of \d+ checks failed\n\Z")

        result = kilin("verify", folder, "--json")
        told = json.loads(result.stdout)
        self.assertEqual((result.returncode, told["ok"]), (FAILURE, False))
        self.assertEqual([check["name"] for check in told["checks"] if check["outcome"] == "failed"], ["values"])

    def test_a_git_lfs_pointer_in_place_of_a_file_is_called_one(self):
        for name in ("model.safetensors", "tiktoken.model", "config.json", "tokenizer_config.json"):
            folder = self.temporary_folder() / "m"
            shutil.copytree(TINY, folder)
            (folder / name).write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 9\n")
            message = self.refusal(FAILURE, "generate", folder, "-p", "x")
            self.assertIn(f"{folder / name}: is a Git LFS pointer", message)
            self.assertIn("is a Git LFS pointer", kilin("verify", folder, "--files-only").stdout.decode())

    def test_packed_weights_that_rotted_are_found_and_made_anew(self):
        packs = self.temporary_folder()
        load = ("generate", TINY, "--ids", "5,17", "-n", "3", "--temp", "0", "--quantize", "q8_0", "--pack-cache", packs)
        right = self.output(*load)
        verify = ("verify", TINY, "--files-only", "--pack-cache", packs)
        self.assertIn("ok       packed weights", self.output(*verify))
        [file] = packs.iterdir()
        good = file.read_bytes()
        for at in (len(good) // 2, len(good) - 1):
            file.write_bytes(good[:at] + bytes([good[at] ^ 64]) + good[at + 1:])
            result = kilin(*verify)
            self.assertEqual(result.returncode, FAILURE)
            self.assertRegex(result.stdout.decode(), r"FAILED +packed weights .*: 1 of \d+ matrices are not what was packed")
        self.assertEqual(self.output(*load, "--check-pack-cache"), right)
        self.assertEqual(file.read_bytes(), good)
        file.write_bytes(good[:-1])
        self.assertIn("the next load makes it anew", self.output(*verify))

    def test_files_alone_can_be_checked(self):
        told = self.json("verify", TINY, "--files-only", "--json")
        self.assertTrue(told["ok"])
        self.assertNotIn("answer", [check["name"] for check in told["checks"]])
        self.refusal(USAGE, "verify", TINY, "-n", "0")
        self.refusal(USAGE, "verify", TINY, "-n", "3", "--files-only")


class Synth(ProgramTest):
    def test_what_is_written_runs_and_the_seed_decides_its_bytes(self):
        folder = self.temporary_folder()
        shape = ("--config", IDS_ONLY / "config.json", "--layers", "2", "--experts", "4", "--shard-size", "300KB")
        told = self.json("synth", folder / "a", *shape, "--seed", "5", "--threads", "1", "--json")
        self.output("synth", folder / "b", *shape, "--seed", "5", "--threads", "3")
        self.output("synth", folder / "c", *shape, "--seed", "6")
        read = lambda name: {file.name: file.read_bytes() for file in (folder / name).iterdir()}
        self.assertEqual(read("a"), read("b"))
        self.assertNotEqual(read("a"), read("c"))
        self.assertEqual(self.json("inspect", folder / "a", "--json")["bytes"], told["bytes"])
        answer = self.json("generate", folder / "a", "--ids", "5,17,9", "-n", "4", "--temp", "0", "--ignore-eos", "--json")
        self.assertEqual(len(answer["ids"]), 4)

    def test_of_two_into_one_folder_at_once_one_wins(self):
        folder = self.temporary_folder()
        command = (KILIN, "synth", folder / "m", "--config", IDS_ONLY, "--threads", "1")
        processes = [subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) for _ in range(3)]
        messages = [process.communicate(timeout=TIMEOUT_S)[1].decode() for process in processes]
        lost = [message for process, message in zip(processes, messages) if process.returncode != 0]
        self.assertEqual(len(lost), 2, messages)
        for message in lost:
            self.assertRegex(message, r"another process is writing there|holds files already")
        self.output("synth", folder / "alone", "--config", IDS_ONLY)
        for file in (folder / "alone").iterdir():
            self.assertEqual((folder / "m" / file.name).read_bytes(), file.read_bytes())
        self.assertEqual(len(list((folder / "m").iterdir())), len(list((folder / "alone").iterdir())))

    def test_fewer_experts_than_a_token_goes_to_are_said(self):
        result = kilin("synth", self.temporary_folder() / "m", "--config", IDS_ONLY, "--layers", "2", "--experts", "1")
        self.assertEqual(result.returncode, 0)
        self.assertIn(b"num_experts_per_token is 1 instead of", result.stderr)

    def test_a_folder_in_use_is_left_alone_unless_forced(self):
        folder = self.temporary_folder()
        (folder / "notes.txt").write_text("mine")
        self.refusal(USAGE, "synth", folder, "--config", IDS_ONLY)
        self.assertEqual([file.name for file in folder.iterdir()], ["notes.txt"])
        self.output("synth", folder, "--config", IDS_ONLY, "--force")
        self.assertEqual(sorted(file.name for file in folder.iterdir()), ["config.json", "model.safetensors", "notes.txt"])

    def test_usage(self):
        out = self.temporary_folder() / "m"
        self.refusal(USAGE, "synth", out)
        for wrong in (("--layers", "9"), ("--layers", "0"), ("--experts", "0"), ("--experts", "17"), ("--dtype", "f16"), ("--shard-size", "5G"),
                      ("--seed", "-1")):
            self.assertIn(wrong[0], self.refusal(USAGE, "synth", out, "--config", IDS_ONLY, *wrong))
        self.refusal(FAILURE, "synth", out, "--config", out / "config.json")
        self.assertFalse(out.exists())


if __name__ == "__main__":
    unittest.main()
