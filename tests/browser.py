"""Chromium without a window, driven through its debugging pipe: standard library only.

apt-get install chromium fonts-noto-cjk
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from base64 import b64decode
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)

ON_PIPE = """
import fcntl, os, sys
pipe = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for place, end in zip((3, 4), pipe):  # where the browser looks for its pipe
    os.dup2(end, place)
    os.close(end)
os.execv(sys.argv[3], sys.argv[3:])
"""

KEYS = {"Tab": 9, "Enter": 13, " ": 32, "ArrowRight": 39, "ArrowLeft": 37}


class Browser:
    """One page of one browser; `events` are what the page reported."""

    def __init__(self, profile: Path, timeout: float = 30) -> None:
        assert CHROMIUM, "chromium is not installed"
        self.timeout, self.events, self._number = timeout, [], 0
        self._unread = b""
        their_input, self._to = os.pipe()
        self._from, their_output = os.pipe()
        words = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        ends = (str(their_input), str(their_output))
        self.process = subprocess.Popen(
            [sys.executable, "-c", ON_PIPE, *ends, *words],
            pass_fds=(their_input, their_output),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(their_input)
        os.close(their_output)
        self._session: str | None = None
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self.send(
            "Target.attachToTarget", targetId=page["targetId"], flatten=True
        )
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.send("Page.setLifecycleEventsEnabled", enabled=True)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(self.timeout)
        os.close(self._to)
        os.close(self._from)

    def send(self, method: str, **params: Any) -> Any:
        """Send one command and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            found = self._read()
            if found.get("id") == self._number:
                assert "error" not in found, found["error"]
                return found["result"]
            self.events.append(found)

    def open(self, path: Path, fragment: str = "") -> None:
        """Open a file from disk and wait until it is loaded."""
        self._load("about:blank")  # a new fragment alone would not load anything
        self.events.clear()
        self._load(path.resolve().as_uri() + fragment)

    def _load(self, url: str) -> None:
        loader = self.send("Page.navigate", url=url)["loaderId"]
        done = {"name": "load", "loaderId": loader}
        while not any(
            event.get("method") == "Page.lifecycleEvent"
            and done.items() <= event["params"].items()
            for event in self.events
        ):
            self.events.append(self._read())

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        found = self.send(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def click(self, selector: str) -> None:
        """Click with the mouse in the middle of the first element that is shown."""
        box = self.evaluate(
            f"""(() => {{
                const found = [...document.querySelectorAll({json.dumps(selector)})];
                const shown = found.find((element) => element.checkVisibility());
                shown.scrollIntoView({{block: "center", behavior: "instant"}});
                return shown.getBoundingClientRect().toJSON();
            }})()"""
        )
        place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        for kind in ("mousePressed", "mouseReleased"):
            self.send(
                "Input.dispatchMouseEvent",
                type=kind,
                button="left",
                clickCount=1,
                **place,
            )
        time.sleep(0.05)  # for what the page does after the click

    def press(self, key: str) -> None:
        """Press one key."""
        text = {"Enter": "\r", " ": " "}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code="Space" if key == " " else key,
                windowsVirtualKeyCode=KEYS[key],
                text=text if kind == "keyDown" else "",
            )

    def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the size of the window and the colours that the reader prefers."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        colours = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[colours])

    def screenshot(self, path: Path) -> None:
        """Write what the window shows as PNG."""
        data = self.send("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(b64decode(data))

    def requests(self) -> list[str]:
        """Return the addresses that the page asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """Return the errors, violations, dialogs and console lines of the page."""
        noisy = (
            "Log.entryAdded",
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
            "Page.javascriptDialogOpening",
        )
        return [json.dumps(e) for e in self.events if e.get("method") in noisy]

    def _read(self) -> Any:
        deadline = time.monotonic() + self.timeout
        while b"\0" not in self._unread:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._from], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            chunk = os.read(self._from, 1 << 20)
            if not chunk:
                raise EOFError(f"the browser ended with {self.process.poll()}")
            self._unread += chunk
        message, _, self._unread = self._unread.partition(b"\0")
        return json.loads(message)
