#!/usr/bin/python3
"""Files that commands read and write: none is lost, broken ones that are not needed are no error, and names are bytes."""
import json
import os
import shutil
import unittest

from program import FAILURE, TINY, USAGE, ProgramTest, ids_text, kilin

IDS = ("--ids", "5,6")


class Files(ProgramTest):
    def model(self, folder=None):
        """The embedded model in a folder of its own."""
        folder = folder or self.temporary_folder()
        os.makedirs(folder, exist_ok=True)
        for file in TINY.iterdir():
            shutil.copy(file, folder)
        return folder

    def test_no_output_takes_the_place_of_an_input(self):
        folder = self.model()
        (folder / "text.txt").write_text("the whale and the sea")
        (folder / "ids").write_text("5,6")
        os.link(folder / "model.safetensors", folder / "hard")
        (folder / "soft").symlink_to("config.json")
        before = {file.name: file.read_bytes() for file in folder.iterdir()}
        for command in (("logits", "m", *IDS, "--out", "m/model.safetensors"), ("logits", "m", *IDS, "--out", "m/hard"),
                        ("logits", "m", *IDS, "--out", "m/soft"), ("logits", "m", "--ids", "@m/ids", "--out", "m/./ids"),
                        ("lens", "m", *IDS, "-o", "m/generation_config.json"),
                        ("trace", "m", *IDS, "--save", "logits=m/tiktoken.model"),
                        ("perplexity", "m", "--file", "m/text.txt", "--save-logits", "m/text.txt"),
                        ("quantize", "m", "m/config.json", "--type", "q8_0", "--force"),
                        ("synth", "m", "--config", "m", "--force"), ("synth", "m", "--config", "m/config.json", "--force")):
            command = [word.replace("m/", f"{folder}/") if word != "m" else folder for word in command]
            self.assertIn("which is read as", self.refusal(USAGE, *command), command)
        self.assertEqual(kilin("chat", folder, stdin=f"/save {folder}/config.json\n").returncode, FAILURE)
        with open(folder / "text.txt") as stdin:
            self.assertEqual(os.spawnv(os.P_WAIT, "/bin/sh", ["sh", "-c", f"'{os.environ.get('KILIN', 'kilin')}' logits '{folder}' "
                                                              f"-p - --out '{folder}/text.txt' < '{folder}/text.txt' 2>&-"]), USAGE)
            stdin.read()
        self.assertEqual({file.name: file.read_bytes() for file in folder.iterdir()}, before)

    def test_a_broken_file_is_a_warning_where_it_is_not_needed(self):
        out = self.temporary_folder() / "out"
        (text := self.temporary_folder() / "text").write_text("the whale and the sea")
        bench = ("--prompt", "8", "--depth", "none", "--batch", "none", "--repeat", "1")
        by_ids = (("logits", *IDS, "--out", out), ("lens", *IDS, "-o", out), ("bench", *bench),
                  ("trace", *IDS, "--save", f"logits={out}"), ("generate", *IDS, "-n", "2", "--temp", "0"))
        by_text = (("perplexity", "--file", text), ("logits", "-p", "hi", "--out", out), ("chat", "-n", "1", "--temp", "0"))
        for name, fine, wrong in (("generation_config.json", by_ids + by_text, (("generate", "-p", "hi"), ("chat",))),
                                  ("tokenizer_config.json", by_ids, by_text + (("generate", "-p", "hi"),)),
                                  ("tiktoken.model", by_ids, by_text)):
            folder = self.model()
            (folder / name).write_text('{"temperature": 0.6,}')
            for command, *options in fine:
                result = kilin(command, folder, *options)
                self.assertEqual(result.returncode, 0, (name, command, result.stderr))
                self.assertIn(name.encode(), result.stderr)
            for command, *options in wrong:
                self.assertIn(name, self.refusal(FAILURE, command, folder, *options))

    def test_file_names_are_bytes(self):
        outside = os.fsencode(self.temporary_folder())
        folder = self.model(os.fsdecode(outside + b"/caf\xe9"))
        out = os.fsdecode(outside + b"/\xff")
        with open(out + "t", "w") as text:
            text.write("the whale and the sea")
        generated = self.json("generate", folder, *IDS, "-n", "4", "--temp", "0", "--json")["ids"]
        self.assertEqual(generated, self.json("generate", TINY, *IDS, "-n", "4", "--temp", "0", "--json")["ids"])
        for command in (("inspect", folder), ("quantize", folder, out + ".gguf", "--type", "q8_0"), ("verify", folder),
                        ("trace", folder, *IDS, "--save", f"logits={out}.npy"), ("perplexity", folder, "--file", out + "t"),
                        ("bench", folder, "--prompt", "8", "--depth", "none", "--batch", "none", "--repeat", "1")):
            self.json(*command, "--json")
        for command in (("logits", folder, *IDS, "--out", out), ("lens", folder, *IDS, "-o", out), ("inspect", folder)):
            self.output(*command).encode()
        self.refusal(FAILURE, "inspect", folder + "/nowhere")

    def test_text_that_is_no_utf8_is_named_with_its_place(self):
        text = self.temporary_folder() / "text"
        text.write_bytes(b"caf\xe9")
        self.assertIn(f"{text} is not valid UTF-8: byte 0xe9 at offset 3", self.refusal(USAGE, "perplexity", "--file", text))
        for command in ("generate", "-p", "-"), ("tokenize",):
            self.assertIn("standard input is not valid UTF-8: byte 0xe9 at offset 3",
                          self.refusal(USAGE, *command, stdin=b"caf\xe9"))
        self.assertIn("--prompt is not valid UTF-8", self.refusal(USAGE, "generate", "-p", os.fsdecode(b"caf\xe9")))

    def test_ids_come_from_files_and_pipes_too(self):
        file, ids = self.temporary_folder() / "ids", list(range(5, 25))
        greedy = ("-n", "2", "--temp", "0", "--json")
        expected = self.json("generate", "--ids", ids_text(ids), *greedy)["ids"]
        for text in (ids_text(ids), json.dumps(ids) + "\n", "\r\n".join(map(str, ids)) + "\r\n", " ".join(map(str, ids))):
            file.write_bytes(text.encode())
            self.assertEqual(self.json("generate", "--ids", f"@{file}", *greedy)["ids"], expected)
            self.assertEqual(self.json("generate", "--ids", "-", *greedy, stdin=text)["ids"], expected)
            self.assertEqual(self.json("tokenize", "--decode", "--ids", f"@{file}", "--json")["ids"], ids)
        for text, what in (("5,,6", "id 2 is ',6'"), ("5 x", "id 2 is 'x'"), ("", "id 1 is missing"), ("[5", "expected ']'"),
                           ("5]", "']' stands after"), ("5,", "id 2 is missing"), ("5.5", "id 1 is '5.5'")):
            file.write_text(text)
            self.assertIn(what, self.refusal(USAGE, "generate", "--ids", f"@{file}"), text)
        self.refusal(FAILURE, "generate", "--ids", "@/nowhere")


if __name__ == "__main__":
    unittest.main()
