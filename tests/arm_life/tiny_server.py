"""A server in a few lines of Python, started as a process of its own, that behaves as its arguments say."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quantgate.arm_life.arm_server import ArmServer
from quantgate.arm_life.settings import LaunchSettings
from quantgate.targets.openai.settings import EndpointSettings
from quantgate_engine.clock import Clock, MonotonicClock

SOURCE = """
import os, signal, subprocess, sys, time
port, *flags = sys.argv[1:]
if "deaf" in flags:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "child" in flags:
    child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
    print("child", child.pid, flush=True)
from http.server import BaseHTTPRequestHandler, HTTPServer
print("loading with token", os.environ.get("TOKEN"), flush=True)
resets = 0
class Handler(BaseHTTPRequestHandler):
    def answer(self, status, text=""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
    def do_GET(self):
        if self.path == "/health":
            self.answer(503 if "loading" in flags else 401 if "key" in flags else 200)
        elif self.path == "/metrics":
            self.answer(200, f"# TYPE resets counter\\nresets_total {resets}\\n")
        else:
            self.answer(404)
    def do_POST(self):
        global resets
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/reset_prefix_cache":
            resets += 1
            self.answer(200)
        elif self.path == "/die":
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            self.answer(404)
    def log_message(self, *_):
        pass
HTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def command(*flags: str) -> list[str]:
    # Without site-packages it starts in a tenth of the time.
    return [sys.executable, "-I", "-S", "-c", SOURCE, "{port}", *flags]


def launch(*flags: str, grace_s: float = 20.0, timeout_s: float = 60.0, **changes: Any) -> LaunchSettings:
    return LaunchSettings.model_validate(
        {
            "command": command(*flags),
            "ready": {"timeout_s": timeout_s, "interval_s": 0.02},
            "stop": {"grace_s": grace_s},
            **changes,
        }
    )


def arm_server(
    launch_settings: LaunchSettings | None,
    *,
    port: int | None = None,
    log: Path | None = None,
    clock: Callable[[int], Clock] = lambda _port: MonotonicClock(),
) -> ArmServer:
    port = port or free_port()
    endpoint = EndpointSettings(url=f"http://127.0.0.1:{port}", read_timeout_s=5.0)
    environment = {"PATH": "/usr/bin:/bin", "SECRET": "sesame-open"}
    return ArmServer("int4", endpoint, launch_settings, clock=clock(port), log_path=log, environment=environment)


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class ClockOfAServerThatListens:
    """Stands still until a server listens at the port and has been looked at; then every deadline is over.

    However slow this machine is, the server gets as far as it ever will.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._readings_while_listening = 0

    def now_ns(self) -> int:
        self._readings_while_listening += is_listening(self._port)
        return 10**18 if self._readings_while_listening > 2 else 0
