"""A headless Chromium that a test drives by the DevTools protocol over two pipes: no port, and no package but Debian's own.

    with Browser(folder) as browser:
        browser.window(width=380, height=800, scheme="dark")
        browser.open(file)
        browser.evaluate("document.title")
"""
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome-stable")
TIMEOUT_S = 60  # for one answer, on a machine that is busy with other things


def find_chromium():
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def why_no_browser():
    """What keeps a page from being looked at here: no Chromium, or one that does not start; None where nothing does."""
    if find_chromium() is None:
        return "there is no Chromium; tools/packages.txt names the package"
    with tempfile.TemporaryDirectory() as folder:
        try:
            with Browser(folder):
                return None
        except (EOFError, TimeoutError, BrokenPipeError) as error:
            return f"{find_chromium()} does not start here: {error}"


class Browser:
    """One page. `complaints` collects exceptions, errors on the console, and whatever the page asked for beside itself."""

    def __init__(self, folder):
        """:param folder: where it may write its own files"""
        self.folder, self.complaints, self.next_id, self.received, self.loaded = folder, [], 0, b"", False

    def __enter__(self):
        own_reads, its_writes = os.pipe()
        its_reads, own_writes = os.pipe()
        self.reads, self.writes = own_reads, own_writes
        # Chromium reads from descriptor 3 and writes to 4, and nothing of ours may stand there yet.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (its_reads, its_writes)]

        def take_places():
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        args = [find_chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-extensions",
                "--remote-debugging-pipe", f"--user-data-dir={self.folder}", "about:blank"]
        self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        pass_fds=(3, 4), preexec_fn=take_places)
        for end in (its_reads, its_writes, *ends):
            os.close(end)
        self.session = None
        try:
            self.attach()
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        return self

    def attach(self):
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __exit__(self, *_):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, EOFError, TimeoutError, subprocess.TimeoutExpired):
            pass
        finally:
            self.process.kill()
            self.process.wait()
            os.close(self.reads)
            os.close(self.writes)

    def call(self, method, **params):
        """The result of a command; events that come before it are noted."""
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.writes, data):]
        while True:
            answer = self.receive()
            if answer.get("id") == self.next_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def receive(self):
        """The next message."""
        end = time.monotonic() + TIMEOUT_S
        while b"\0" not in self.received:
            ready, _, _ = select.select([self.reads], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.reads, 1 << 20)
            if not part:
                raise EOFError("the browser has ended")
            self.received += part
        text, self.received = self.received.split(b"\0", 1)
        message = json.loads(text)
        self.note(message.get("method"), message.get("params", {}))
        return message

    def note(self, method, params):
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(str([a.get("value", a.get("description")) for a in params["args"]]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(("file://", "about:")):
            self.complaints.append(f"asked for {params['request']['url'][:200]}")
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append(f"asked with a dialog: {params['message'][:200]}")
        elif method == "Page.loadEventFired":
            self.loaded = True

    def window(self, width, height, scheme="light"):
        """:param scheme: light or dark, what prefers-color-scheme says"""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, file, fragment=""):
        """Opens a file and waits until it has loaded."""
        for url in ("about:blank", Path(file).resolve().as_uri() + fragment):  # the same file with another fragment loads too
            self.loaded = False
            self.call("Page.navigate", url=url)
            while not self.loaded:
                self.receive()

    def evaluate(self, expression):
        """The value of a JavaScript expression, or of what its promise comes to."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def mouse(self, kind, x, y):
        """:param kind: mouseMoved, mousePressed or mouseReleased"""
        button = "none" if kind == "mouseMoved" else "left"
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=0 if button == "none" else 1)

    def press(self, key):
        """A key by its name: ArrowLeft, Enter, Tab."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
                 "ArrowDown": 40}
        text = {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=codes[key], **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=codes[key])

    def screenshot(self, file, whole=False):
        """Writes a PNG of the window, or of the whole page."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(file, "wb") as out:
            out.write(base64.b64decode(shot["data"]))
