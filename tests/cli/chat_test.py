#!/usr/bin/python3
"""kilin chat by pipe: answers alone on standard output, earlier tokens kept, conversations kept in files."""
import json
import unittest

from program import IDS_ONLY, TINY, FAILURE, SUCCESS, USAGE, ProgramTest, ids_text, kilin

GREEDY = ("--temp", "0", "-n", "12")


class Chat(ProgramTest):
    def chat(self, *lines, model=(TINY,), code=SUCCESS, options=GREEDY):
        result = kilin("chat", *model, *options, stdin="".join(line + "\n" for line in lines))
        self.assertEqual(result.returncode, code, result.stderr.decode())
        return result.stdout.decode(errors="replace"), result.stderr.decode()

    def kept(self, *lines, **options):
        """The messages of a chat after these lines."""
        file = self.temporary_folder() / "talk.json"
        self.chat(*lines, f"/save {file}", **options)
        talk = json.loads(file.read_text())
        self.assertEqual(talk["format"], "kilin chat 1")
        return talk["messages"]

    def test_only_answers_go_to_standard_output(self):
        out, err = self.chat("Tell me a verse.", "", "Another one.")
        messages = self.kept("Tell me a verse.", "Another one.")
        answers = [message["text"] for message in messages if message["role"] == "assistant"]
        self.assertEqual(len(answers), 2)
        self.assertEqual(out, "".join(answer + "\n" for answer in answers))
        self.assertNotIn("\x1b", out + err)
        self.assertNotIn("> ", out)

    def test_an_answer_is_what_generate_gives_for_the_whole_history(self):
        messages = self.kept("Tell me a verse.", "Another one.", options=(*GREEDY, "--system", "You are a helpful assistant"))
        self.assertEqual([message["role"] for message in messages], ["system", "user", "assistant", "user", "assistant"])
        first = self.json("generate", "--chat", "--system", "You are a helpful assistant", "-p", "Tell me a verse.", *GREEDY,
                          "--json")
        header = first["prompt_ids"][-5:]
        header = header[header.index(3844):]  # from <|im_assistant|>
        self.assertEqual(messages[2]["ids"][: len(header)], header)
        self.assertEqual(messages[2]["ids"][len(header) :][: len(first["ids"])], first["ids"])

        history = sum((message["ids"] for message in messages[:4]), []) + header
        answer = self.json("generate", "--ids", ids_text(history), *GREEDY, "--json")
        self.assertEqual(messages[4]["ids"][len(header) : -1], [id for id in answer["ids"] if id != 3842])
        self.assertEqual(messages[4]["ids"][-1], 3842)
        self.assertEqual(messages[4]["text"], answer["text"])

    def test_a_kept_conversation_goes_on_as_if_it_had_not_ended(self):
        folder = self.temporary_folder()
        self.chat("Tell me a verse.", f"/save {folder}/one.json")
        loaded = self.kept(f"/load {folder}/one.json", "Another one.")
        self.assertEqual(loaded, self.kept("Tell me a verse.", "Another one."))
        self.assertEqual([file.name for file in folder.iterdir()], ["one.json"])

    def test_a_file_that_is_not_right_is_refused_and_the_chat_goes_on(self):
        folder = self.temporary_folder()
        self.chat("Hello", f"/save {folder}/talk.json")
        talk = json.loads((folder / "talk.json").read_text())
        talk["messages"][0]["text"] = "Goodbye"
        (folder / "bad.json").write_text(json.dumps(talk))
        out, err = self.chat(f"/load {folder}/bad.json", f"/load {folder}/none.json", "Hello", code=FAILURE)
        self.assertIn("bad.json: message 0", err)
        self.assertIn("none.json", err)
        self.assertEqual(out, talk["messages"][1]["text"] + "\n")

    def test_reset_forgets_and_system_begins_anew(self):
        once = self.kept("Hello")
        self.assertEqual(self.kept("Tell me a verse.", "/reset", "Hello"), once)
        with_system = self.kept("Hello", "/system Be brief.", "Hello")
        self.assertEqual(with_system, self.kept("Hello", options=(*GREEDY, "--system", "Be brief.")))
        self.assertEqual(self.kept("/system Be brief.", "/system", "Hello"), once)
        self.assertEqual([m["text"] for m in self.kept("/system Be brief.")], ["Be brief."])

    def test_special_tokens_in_a_message_are_text(self):
        message = self.kept("<|im_end|>")[0]
        self.assertEqual(message["text"], "<|im_end|>")
        self.assertEqual(message["ids"].count(3842), 1)

    def test_a_backslash_at_the_end_goes_on_to_the_next_line(self):
        self.assertEqual(self.kept("one\\", "two")[0]["text"], "one\ntwo")

    def test_lines_that_end_as_on_windows_are_the_same_lines(self):
        file = self.temporary_folder() / "talk.json"
        talks = []
        for end in ("\n", "\r\n"):
            lines = ("/system Be\\", "brief.", "one\\", "", "two", f"/save {file}")
            result = kilin("chat", TINY, *GREEDY, stdin="".join(line + end for line in lines))
            self.assertEqual(result.returncode, SUCCESS, result.stderr.decode())
            talks.append((result.stdout, json.loads(file.read_text())))
        self.assertEqual(talks[0], talks[1])
        self.assertEqual([m["text"] for m in talks[0][1]["messages"][:2]], ["Be\nbrief.", "one\n"])
        self.kept(f"/load {file}", "Hello")
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
        self.kept(f"/load {file}", "Hello")

    def test_exit_ends_it_and_nothing_after_is_read(self):
        self.assertEqual(self.chat("/exit", "Hello")[0], "")

    def test_help_and_unknown_commands(self):
        self.assertIn("/save FILE", self.chat("/help")[1])
        self.assertIn("/nonsense", self.chat("/nonsense", code=FAILURE)[1])
        self.chat("/save", code=FAILURE)

    def test_a_full_context_is_said_and_a_reset_helps(self):
        options = ("--temp", "0", "-n", "100", "--ctx", "100")
        lines = ("Hello", "again", "/reset", "x" * 200, "Hello")
        _, err = self.chat(*lines, model=(self.byte_model(),), code=FAILURE, options=options)
        self.assertIn("the context is full", err)
        self.assertEqual(err.count("/reset begins a new"), 3)
        self.assertIn("the context holds 100", err)

    def test_text_that_is_not_utf8_is_refused_and_the_chat_goes_on(self):
        result = kilin("chat", *GREEDY, stdin=b"\xff\nHello\n")
        self.assertEqual(result.returncode, FAILURE)
        self.assertIn(b"UTF-8", result.stderr)
        self.assertEqual(result.stdout.decode(), self.chat("Hello")[0])

    def test_a_model_that_was_not_made_to_chat_is_noticed(self):
        folder = self.byte_model()
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "eos_token_id": 257}))
        self.assertIn("base model", self.chat("Hello", model=(folder,), options=("-n", "1"))[1])
        self.assertNotIn("base model", self.chat("Hello")[1])
        result = kilin("generate", folder, "--chat", "-p", "Hello", "-n", "1")
        self.assertIn(b"base model", result.stderr)

    def test_a_tokeniser_that_cannot_chat_is_told_once(self):
        folder = self.byte_model()
        (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": {
            "256": {"content": "[BOS]", "special": True}}}))
        message = self.refusal(FAILURE, "chat", folder)
        self.assertEqual(message.count("kilin:"), 1, message)

    def test_without_a_tokenizer_there_is_no_chat(self):
        self.assertIn("tiktoken.model", self.refusal(FAILURE, "chat", IDS_ONLY))

    def test_wrong_options_are_refused(self):
        for options in (("--temp", "-1"), ("-n", "0"), ("--ctx", "0"), ("--json",)):
            self.refusal(USAGE, "chat", *options)


if __name__ == "__main__":
    unittest.main()
