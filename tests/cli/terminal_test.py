#!/usr/bin/python3
"""What a person at a terminal sees: the prompt, the ways out of a chat, Ctrl-C."""
import os
import pty
import select
import unittest

from program import KILIN, TIMEOUT_S, TINY, ProgramTest


class Terminal(ProgramTest):
    def start(self, *args, **environment):
        """Runs kilin on a terminal of its own, which also makes Ctrl-C of \\x03. None takes a variable away."""
        self.seen = ""
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            variables = {**os.environ, "TERM": "xterm", "NO_COLOR": None, **environment}
            os.execve(KILIN, [KILIN, *map(str, args)], {k: v for k, v in variables.items() if v is not None})
        self.addCleanup(os.close, self.terminal)

    def read(self):
        """What comes next; empty at the end."""
        ready, _, _ = select.select([self.terminal], [], [], TIMEOUT_S)
        self.assertTrue(ready, f"nothing comes after {self.seen!r}")
        try:
            return os.read(self.terminal, 65536).decode(errors="replace")
        except OSError:  # Linux says the end of a terminal so
            return ""

    def wait_for(self, text):
        """Reads until `text` has come, and forgets what came before."""
        while text not in self.seen:
            more = self.read()
            self.assertTrue(more, f"the end came before {text!r}: {self.seen!r}")
            self.seen += more
        self.seen = self.seen.split(text, 1)[1]

    def type(self, text):
        os.write(self.terminal, text.encode())

    def wait_for_end(self):
        while more := self.read():
            self.seen += more
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])

    def test_generate_shows_the_prompt_dimmed_before_the_text(self):
        self.start("generate", TINY, "-p", "The whale", "-n", "4", "--temp", "0")
        self.wait_for("\x1b[2mThe whale\x1b[0m")
        self.assertEqual(self.wait_for_end(), 0)
        self.assertIn("peak memory", self.seen)

    def test_a_terminal_without_escapes_gets_none(self):
        for environment in ({"TERM": "dumb"}, {"TERM": ""}, {"TERM": None}, {"NO_COLOR": "1"}):
            self.start("generate", TINY, "-p", "The whale", "-n", "4", "--temp", "0", **environment)
            self.assertEqual(self.wait_for_end(), 0)
            self.assertIn("The whale", self.seen)
            self.assertNotIn("\x1b", self.seen.replace("\x1b[K", "") if "NO_COLOR" in environment else self.seen)
            self.start("chat", TINY, "-n", "4", "--temp", "0", **environment)
            self.wait_for("/help lists commands; Ctrl-D ends.\r\n> ")
            self.type("one\\\rtwo\r")
            self.wait_for(". ")
            self.wait_for("> ")
            self.type("\x04")
            self.assertEqual(self.wait_for_end(), 0)
            self.assertNotIn("\x1b", self.seen)

    def test_no_bar_is_drawn_where_it_cannot_be_taken_back(self):
        prompt = ",".join(["7"] * 12000)  # more than is read before a bar shows
        self.start("generate", TINY, "--ids", prompt, "-n", "1", "--temp", "0", "--threads", "1", TERM="dumb")
        self.assertEqual(self.wait_for_end(), 0)
        self.assertNotIn("[", self.seen)
        self.assertNotIn("\x1b", self.seen)

    def test_json_is_alone_on_a_terminal_too(self):
        self.start("generate", TINY, "-p", "The whale", "-n", "4", "--temp", "0", "--json")
        self.assertEqual(self.wait_for_end(), 0)
        self.assertNotIn("\x1b[2m", self.seen)
        self.assertNotIn("peak memory", self.seen.replace("peak_memory_bytes", ""))

    def test_control_characters_of_a_prompt_do_nothing(self):
        self.start("generate", TINY, "-p", "The\x1b]0;title\x07whale", "-n", "1", "--temp", "0")
        self.assertEqual(self.wait_for_end(), 0)
        self.assertIn("The\ufffd]0;title\ufffdwhale", self.seen)

    def test_ctrl_d_ends_a_chat(self):
        self.start("chat", TINY, "--temp", "0", "-n", "4")
        self.wait_for("> ")
        self.type("Hello\n")
        self.wait_for("> ")
        self.type("\x04")
        self.assertEqual(self.wait_for_end(), 0)

    def test_ctrl_c_twice_at_the_prompt_ends_a_chat_and_once_does_not(self):
        self.start("chat", TINY, "--temp", "0", "-n", "4")
        self.wait_for("> ")
        self.type("\x03")
        self.wait_for("Ctrl-C again")
        self.wait_for("> ")
        self.type("Hello\n")  # what is between forgets the first one
        self.wait_for("> ")
        self.type("\x03")
        self.wait_for("Ctrl-C again")
        self.wait_for("> ")
        self.type("\x03")
        self.assertEqual(self.wait_for_end(), 0)

    def test_ctrl_c_stops_an_answer_and_the_chat_goes_on(self):
        file = self.temporary_folder() / "talk.json"
        self.start("chat", self.byte_model(), "--temp", "0", "-n", "1000000", "--ctx", "1000000")
        self.wait_for("> ")
        self.type("Hello\n")
        self.wait_for("Hello\r\n")  # the terminal's echo
        self.seen += self.read()  # the answer, which would go on for very long
        self.type("\x03")
        self.wait_for("stopped")
        self.wait_for("> ")
        self.type(f"/save {file}\n")
        self.wait_for("2 messages kept")
        self.type("/exit\n")
        self.assertEqual(self.wait_for_end(), 0)
        self.assertIn('"assistant"', file.read_text())

    def test_a_line_that_the_terminal_cut_is_not_sent(self):
        self.start("chat", self.byte_model(), "--temp", "0", "-n", "4", "--ctx", "100")
        self.wait_for("> \x1b[0m")
        self.type("x" * 5000 + "\n")
        self.wait_for("the terminal cuts a line at 4095 bytes")
        self.wait_for("> \x1b[0m")
        self.type("x" * 2000 + "\\\n" + "y" * 3000 + "\n")
        self.wait_for("the context holds 100")  # so the turn of 5,000 letters went on to the model
        self.type("\x04")
        self.wait_for_end()

    def test_ctrl_c_ends_a_text_on_a_line_of_its_own(self):
        self.start("generate", self.byte_model(), "-p", "Hello", "--temp", "0", "-n", "1000000", "--ignore-eos")
        self.wait_for("Hello")
        self.seen += self.read()
        self.type("\x03")
        self.assertEqual(self.wait_for_end(), 130)
        self.assertTrue(self.seen.endswith("\r\n"), self.seen[-20:])
        self.assertNotIn("kilin:", self.seen)

    def test_a_special_character_of_the_model_does_nothing_to_the_terminal(self):
        self.start("chat", self.byte_model(), "--temp", "0", "-n", "200")
        self.wait_for("> \x1b[0m")
        self.type("Hello\n")
        self.wait_for("Hello\r\n")
        self.wait_for("--max-tokens")
        self.type("\x04")
        self.assertEqual(self.wait_for_end(), 0)


if __name__ == "__main__":
    unittest.main()
