#!/usr/bin/python3
"""Signals that ask the program to end: it does, and leaves nothing half-written behind."""
import os
import signal
import subprocess
import unittest

from program import FAILURE, KILIN, ROOT, TIMEOUT_S, ProgramTest, ids_text

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupt(ProgramTest):
    def start(self, *args):
        process = subprocess.Popen([KILIN, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(process.__exit__, None, None, None)
        self.addCleanup(process.kill)
        return process

    def end(self, process, number, message=b"kilin: interrupted\n"):
        """Asks for the end, once there is something to leave behind."""
        process.send_signal(number)
        process.stdout.read()
        err = process.stderr.read()
        process.wait(timeout=TIMEOUT_S)  # standard input stays open: its end would end a chat too
        self.assertEqual(process.returncode, 128 + number, err)
        self.assertEqual(err, message)

    def wait_for_file(self, process, folder, pattern):
        while not list(folder.rglob(pattern)):
            self.assertIsNone(process.poll(), f"it ended before there was a {pattern}")

    def test_logits_leave_no_part_of_a_file(self):
        for number in SIGNALS:
            folder = self.temporary_folder()
            (folder / "old.npy").write_text("old")
            # Small chunks make this far longer than a test has patience for.
            process = self.start("logits", self.ids_model(model_max_length=1 << 20), "--ids", ids_text([1] * 50000), "--out",
                                 folder / "old.npy", "--prefill-chunk", "1")
            self.wait_for_file(process, folder, "*.part-*")
            self.end(process, number)
            self.assertEqual([file.name for file in folder.iterdir()], ["old.npy"])
            self.assertEqual((folder / "old.npy").read_text(), "old")

    def test_synth_leaves_no_part_of_a_checkpoint(self):
        config = ROOT / "tests/golden/real/config.json"
        for number in SIGNALS:
            folder = self.temporary_folder()
            process = self.start("synth", folder / "new", "--config", config, "--layers", "2", "--experts", "8", "--threads", "1")
            self.wait_for_file(process, folder, "*.safetensors*")
            self.end(process, number)
            self.assertEqual(list(folder.iterdir()), [])

    def test_generate_ends_without_a_word(self):
        for number in SIGNALS:
            process = self.start("generate", self.byte_model(), "-p", "Hello", "-n", "1000000", "--ignore-eos", "--temp", "0")
            process.stdout.read(1)  # it writes
            self.end(process, number, b"")

    def test_weights_that_are_shortened_while_it_runs_are_named(self):
        folder = self.byte_model()
        weights = sorted(folder.glob("*.safetensors"))
        for file in weights:
            data = file.read_bytes()
            file.unlink()
            file.write_bytes(data)
        process = self.start("chat", folder, "-n", "8", "--temp", "0")
        process.stdin.write(b"/reset x\n")
        process.stdin.flush()
        self.assertIn(b"stands alone", process.stderr.readline())  # so it is loaded
        for file in weights:
            os.truncate(file, 0)
        process.stdin.write(b"Hello\n")
        process.stdin.flush()
        process.wait(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, FAILURE)
        self.assertRegex(process.stderr.read().decode(), r"kilin: .*safetensors: bytes of the file are gone")

    def test_a_chat_ends_at_the_prompt_and_in_an_answer(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            process = self.start("chat", self.byte_model(), "-n", "1000000", "--ctx", "1000000", "--temp", "0")
            process.stdin.write(b"/reset x\n")
            process.stdin.flush()
            self.assertIn(b"stands alone", process.stderr.readline())  # so it waits for a line now
            self.end(process, number)
            process = self.start("chat", self.byte_model(), "-n", "1000000", "--ctx", "1000000", "--temp", "0")
            process.stdin.write(b"Hello\n")
            process.stdin.flush()
            process.stdout.read(1)
            self.end(process, number)


if __name__ == "__main__":
    unittest.main()
