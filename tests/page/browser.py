"""browser: a headless Chromium, driven by its DevTools protocol over two pipes.

No package is needed. `find()` says where Chromium is, or None.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time


def find():
    """The path of a Chromium that starts, or None."""
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if path := shutil.which(name):
            return path
    return None


class Browser:
    """One page. Everything that it logs or refuses is in `messages`, and every
    address that it asks for in `requests`."""

    def __init__(self, path, work):
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        def place():
            # Chromium reads at 3 and writes at 4; the pipes may be there.
            source, target = os.dup(to_browser), os.dup(from_browser)
            high = [os.dup2(source, 60), os.dup2(target, 61)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu",
                 "--no-first-run", "--disable-extensions", "--hide-scrollbars",
                 "--disable-background-networking", "--mute-audio",
                 "--disable-dev-shm-usage", "--remote-debugging-pipe",
                 f"--user-data-dir={os.path.join(work, 'profile')}"]
        self._process = subprocess.Popen(
            [path, *flags], preexec_fn=place, close_fds=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self._rest = b""
        self._next = 0
        self._session = None
        self.messages, self.requests = [], []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target,
                                  flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(domain + ".enable")
        self.resize(1400, 1000)

    def close(self):
        """End it."""
        self._session = None
        try:
            self._ask("Browser.close")
        except (OSError, TimeoutError):
            pass
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def _receive(self, deadline):
        while b"\0" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._in], [], [], left)[0]:
                raise TimeoutError("Chromium does not answer")
            piece = os.read(self._in, 1 << 20)
            if not piece:
                raise OSError("Chromium has ended")
            self._rest += piece
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def _note(self, message):
        method, values = message.get("method"), message.get("params", {})
        if method == "Log.entryAdded":
            self.messages.append(values["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            details = values["exceptionDetails"]
            self.messages.append(details.get("exception", {}).get(
                "description", details["text"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])

    def _ask(self, method, **values):
        self._next += 1
        asked = {"id": self._next, "method": method, "params": values}
        if self._session:
            asked["sessionId"] = self._session
        os.write(self._out, json.dumps(asked).encode() + b"\0")
        deadline = time.monotonic() + 60
        while True:
            message = self._receive(deadline)
            if message.get("id") == self._next:
                if "error" in message:
                    raise OSError(f"{method}: {message['error']['message']}")
                return message["result"]
            self._note(message)

    def open(self, path, fragment="", script=True):
        """Show a file, and wait until its script has drawn it."""
        self._ask("Emulation.setScriptExecutionDisabled", value=not script)
        self._ask("Page.navigate", url="about:blank")
        self._ask("Page.navigate", url="file://" + path +
                  ("#" + fragment if fragment else ""))
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'"
                  + (" && document.documentElement.dataset.ready === 'yes'"
                     if script else ""))

    def run(self, script):
        """The value of an expression."""
        answer = self._ask("Runtime.evaluate", expression=script,
                           returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(
                f"{script}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def wait(self, script, seconds=20):
        """Until an expression is true."""
        end = time.monotonic() + seconds
        while not self.run(script):
            if time.monotonic() > end:
                raise AssertionError(f"not in {seconds} s: {script}; "
                                     f"messages: {self.messages}")
            time.sleep(0.02)

    def press(self, key):
        """A key of the keyboard, down and up."""
        text = {"text": key} if len(key) == 1 else {}
        self._ask("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self._ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    def click(self, selector):
        """In the middle of an element, as a reader would."""
        at = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "if (!e) return null; e.scrollIntoView({block: 'center'});"
            "const r = e.getClientRects()[0];"
            "return r ? [r.x + r.width / 2, r.y + r.height / 2] : null; })()")
        assert at, f"there is nothing to click on: {selector}"
        for kind in ("mousePressed", "mouseReleased"):
            self._ask("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1],
                      button="left", clickCount=1)

    def resize(self, width, height):
        """The window."""
        self._ask("Emulation.setDeviceMetricsOverride", width=width,
                  height=height, deviceScaleFactor=1, mobile=False)

    def set_media(self, media="", scheme="light"):
        """Paper or screen, light or dark."""
        self._ask("Emulation.setEmulatedMedia", media=media, features=[
            {"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path, selector=None):
        """A picture of what is shown, or of one element."""
        values = {"format": "png"}
        if selector:
            box = self.run(
                f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
                "const r = e.getBoundingClientRect();"
                "return [r.x + scrollX, r.y + scrollY, r.width, r.height]; })()")
            values |= {"captureBeyondViewport": True, "clip": {
                "x": box[0], "y": box[1], "width": box[2], "height": box[3],
                "scale": 1}}
        data = self._ask("Page.captureScreenshot", **values)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def pdf(self):
        """What a printer gets, as the bytes of a PDF."""
        return base64.b64decode(self._ask("Page.printToPDF")["data"])
