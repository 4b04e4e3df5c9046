"""A small OpenAI-compatible server that dies after so many streamed answers: python mortal_server.py PORT ANSWERS.

With `never` for ANSWERS it knows no streams, and answers every request with whole JSON.
"""

from __future__ import annotations

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORDS = ["one ", "two ", "three"]


class Handler(BaseHTTPRequestHandler):
    answers_left = 0
    streams = True

    def log_message(self, *_: Any) -> None:
        """Says nothing: what it says is kept with the run."""

    def do_GET(self) -> None:
        known = {"/health": {"status": "ok"}, "/v1/models": {"object": "list", "data": [{"id": "mortal"}]}}
        self._answer(200 if self.path in known else 404, known.get(self.path, {"error": {"message": "not found"}}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions":
            self._answer(404, {"error": {"message": "not found"}})
        elif body.get("stream") and Handler.streams:
            self._stream()
        else:
            message = {"role": "assistant", "content": "".join(WORDS)}
            usage = {"prompt_tokens": 5, "completion_tokens": len(WORDS), "total_tokens": 5 + len(WORDS)}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._answer(200, {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage})

    def _answer(self, status: int, document: Any) -> None:
        payload = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def _stream(self) -> None:
        if Handler.answers_left <= 0:
            print("out of memory, dying", flush=True)
            os._exit(9)
        Handler.answers_left -= 1
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for place, word in enumerate(WORDS, start=1):
            reason = "stop" if place == len(WORDS) else None
            choice = {"index": 0, "delta": {"content": word}, "finish_reason": reason}
            self.wfile.write(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")


if __name__ == "__main__":
    Handler.streams = sys.argv[2] != "never"
    Handler.answers_left = int(sys.argv[2]) if Handler.streams else 0
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
