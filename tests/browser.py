"""A Chromium without a window, driven over a pipe by its DevTools protocol: messages of JSON that end with a zero byte."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAM = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = ["--headless", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-default-browser-check", "--lang=en"]


class Browser:
    """One tab. |requests| are the addresses that it asked for, |problems| what its console said of errors and of its policy."""

    def __init__(self, width=1100, height=760):
        self.folder = tempfile.TemporaryDirectory()
        read, self.to_browser = os.pipe()
        self.from_browser, write = os.pipe()
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        # it reads descriptor 3 and writes descriptor 4
        command = ["bash", "-c", f'exec "$@" 3<&{read} 4>&{write}', "-", PROGRAM, *ARGUMENTS, *sandbox, f"--user-data-dir={self.folder.name}"]
        self.process = subprocess.Popen(command, pass_fds=(read, write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read)
        os.close(write)
        self.rest, self.number, self.session, self.answers = b"", 0, None, {}
        self.requests, self.problems, self.change_request = [], [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.resize(width, height)

    def close(self):
        try:
            session, self.session = self.session, None
            self.call("Browser.close")
        except (EOFError, OSError):
            self.process.kill()
        self.process.wait(30)
        os.close(self.to_browser)
        os.close(self.from_browser)
        self.folder.cleanup()

    # ---- the protocol ----

    def send(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_browser, data):]
        return self.number

    def call(self, method, timeout=60, **parameters):
        number, deadline = self.send(method, **parameters), time.monotonic() + timeout
        while number not in self.answers:
            self.listen(deadline - time.monotonic(), method)
        answer = self.answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def listen(self, timeout, what):
        if not select.select([self.from_browser], [], [], max(timeout, 0))[0]:
            raise TimeoutError(f"the browser does not answer {what}")
        data = os.read(self.from_browser, 1 << 16)
        if not data:
            raise EOFError("the browser ended")
        *messages, self.rest = (self.rest + data).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self.answers[message["id"]] = message
            else:
                self.notice(message["method"], message["params"])

    def notice(self, event, parameters):
        if event == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif event == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.problems.append(parameters["entry"]["text"])
        elif event == "Runtime.exceptionThrown":
            self.problems.append(parameters["exceptionDetails"].get("exception", {}).get("description", "an exception"))
        elif event == "Page.javascriptDialogOpening":
            self.send("Page.handleJavaScriptDialog", accept=True)
        elif event == "Fetch.requestPaused":
            self.continue_request(parameters["requestId"], parameters["request"])

    def continue_request(self, number, request):
        body = request.get("postData")
        if body is None or not self.change_request:
            self.send("Fetch.continueRequest", requestId=number)
        else:
            changed = json.dumps(self.change_request(json.loads(body))).encode()
            self.send("Fetch.continueRequest", requestId=number, postData=base64.b64encode(changed).decode())

    def change_requests(self, pattern, change):
        """From now on bodies sent to addresses of |pattern| are what |change| makes of them."""
        self.change_request = change
        self.call("Fetch.enable", patterns=[{"urlPattern": pattern}])

    # ---- what a person does ----

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def evaluate(self, expression):
        """The value of an expression, a promise's too."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True, userGesture=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", str(result)))
        return result["result"].get("value")

    def wait(self, condition, seconds=30):
        deadline = time.monotonic() + seconds
        while not self.evaluate(condition):
            if time.monotonic() > deadline:
                raise TimeoutError(f"never came true: {condition}; problems: {self.problems}; text: {self.evaluate('document.body.innerText')[-600:]}")
            time.sleep(0.02)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def press(self, key, **modifiers):
        """|key| is its name, such as Enter, Escape or KeyN."""
        bits = sum({"alt": 1, "ctrl": 2, "shift": 8}[name] for name in modifiers)
        code = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowUp": 38}.get(key, ord(key[-1]))
        name = key if len(key) != 4 or not key.startswith("Key") else key[3].lower()
        event = {"key": name, "code": key, "windowsVirtualKeyCode": code, "modifiers": bits}
        self.call("Input.dispatchKeyEvent", type="keyDown", **event, **({"text": "\r"} if key == "Enter" else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def click(self, selector, index=0):
        """With the mouse, in the middle of what |selector| finds, and only if nothing lies above it."""
        x, y = self.evaluate(f"""(() => {{
            const node = document.querySelectorAll({json.dumps(selector)})[{index}];
            node.scrollIntoView({{block: 'nearest'}});
            const box = node.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
            const hit = document.elementFromPoint(x, y);
            if (!node.contains(hit)) throw new Error('covered by ' + hit?.outerHTML.slice(0, 200));
            return [x, y];
        }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def resize(self, width, height, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
