"""A server that speaks OpenAI's chat protocol and plays the lights; run as a program, it prints its port.

The first part of the path says how it behaves:

    good      answers with an action; in a tag where it is told to, as a call where it has functions
    moody     429, 500, silence, half an answer, no JSON and no choices, in turn; every seventh call is answered
    dead      500, always
    refusing  401, always
    spent     429, always: nothing is left to spend, in OpenAI's words
    newer     as good, where a limit of tokens has its newer name, which OpenAI's models that reason ask for
    short     400 after the first answer: the conversation is too long
    said-NUMBER-STATUS  as short, in the words of another server (see `TOO_LONG`)
    small     400 after the first answer, for another reason
    slow      as good, after a moment in which others can ask
    thinking  as good, with reasoning, and text beside a call
    empty     an answer without a word
    refused   a refusal
    versioned  as good, with names of what has answered that change
    odd       calls that are damaged, several at once
    drip      a space every tenth of a second, and never an end
    parts     as good, in parts
    half      an answer with half of a pair of surrogates, then as good
    moderated 403 after the first answer
    broken-NAME   what is no answer of the protocol (see `NO_ANSWERS`)
    ended-REASON  as good, with a reason for which the answer ended
    failing-REASON  as ended, and every second call as good
    counting-NAME  as good, with numbers of tokens that are none (see `NO_COUNTS`)
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CALLS = itertools.count()
_VLLM = "Please reduce the length of the messages or completion."
TOO_LONG: list[dict[str, Any]] = [
    {
        "error": {
            "code": 400,
            "message": "the request exceeds the available context size. try increasing the context size or enable "
            "context shift",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 1407,
            "n_ctx": 256,
        }
    },
    {
        "error": {
            "code": 400,
            "message": "request (1407 tokens) exceeds the available context size (256 tokens), try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 1407,
            "n_ctx": 256,
        }
    },
    {"error": {"code": 400, "message": "the request exceeds the available context size", "type": "server_error"}},
    {
        "object": "error",
        "message": "This model's maximum context length is 6048 tokens. However, you requested 6616 tokens (568 in the "
        f"messages, 6048 in the completion). {_VLLM}",
        "type": "BadRequestError",
        "param": None,
        "code": 400,
    },
    {
        "error": {
            "message": "max_tokens must be at least 1, got -186.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        }
    },
    {
        "object": "error",
        "message": "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
        "type": "BadRequestError",
        "param": None,
        "code": 400,
    },
    {
        "error": {
            "message": "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens "
            f"(122942 in the messages, 8192 in the completion). {_VLLM}",
            "type": "invalid_request_error",
            "param": None,
            "code": "invalid_request_error",
        }
    },
    {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "prompt is too long: 208310 tokens > 200000 maximum"},
    },
    {"error": {"message": "Requested tokens (516) exceed context window of 512", "type": "internal_server_error"}},
    {
        "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3000 `inputs` "
        "tokens and 20 `max_new_tokens`",
        "error_type": "validation",
    },
]
"""What servers answer to a conversation that is longer than their model's context: llama.cpp (three versions), vLLM
(two), SGLang, DeepSeek, Anthropic, llama-cpp-python, TGI."""

NO_ANSWERS: dict[str, bytes] = {
    "list": b"[]",
    "choices": b'{"choices": "press red"}',
    "choice": b'{"choices": ["press red"]}',
    "message": b'{"choices": [{"message": "press red"}]}',
    "content": b'{"choices": [{"message": {"content": 7}}]}',
    "part": b'{"choices": [{"message": {"content": [7]}}]}',
    "calls": b'{"choices": [{"message": {"content": "press red", "tool_calls": 5}}]}',
    "call": b'{"choices": [{"message": {"tool_calls": ["act"]}}]}',
    "name": b'{"choices": [{"message": {"tool_calls": [{"function": {"name": null, "arguments": null}}]}}]}',
    "deep": b"[" * 100_000,
}
NO_COUNTS: dict[str, Any] = {
    "text": {"prompt_tokens": "x", "completion_tokens": "y"},
    "negative": {"prompt_tokens": -5, "completion_tokens": -3},
    "infinite": {"prompt_tokens": float("nan"), "completion_tokens": float("inf")},
    "large": {"prompt_tokens": 10**400, "completion_tokens": 10**400},
    "list": [1, 2],
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        pass

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        mood = self.path.split("/")[1]
        if mood == "dead":
            return self.reply(500, {"error": {"message": "out of order"}})
        if mood == "refusing":
            return self.reply(401, {"error": {"message": "wrong key"}})
        if mood == "spent":
            text = "You exceeded your current quota, please check your plan and billing details."
            kind = "insufficient_quota"
            return self.reply(429, {"error": {"message": text, "type": kind, "param": None, "code": kind}})
        if mood == "newer" and asked.get("max_completion_tokens") != 7:
            text = (
                "Unsupported parameter: 'max_tokens' is not supported with this model. "
                "Use 'max_completion_tokens' instead."
            )
            return self.reply(400, {"error": {"message": text, "code": "unsupported_parameter"}})
        if mood == "short" and len(asked["messages"]) > 2:
            text = "This model's maximum context length is 100 tokens."
            return self.reply(400, {"error": {"message": text, "code": "context_length_exceeded"}})
        if mood.startswith("said-") and len(asked["messages"]) > 2:
            _, number, status = mood.split("-")
            return self.reply(int(status), TOO_LONG[int(number)])
        if mood == "small" and len(asked["messages"]) > 2:
            return self.reply(400, {"error": {"message": "The length of 'tools' must be 1 in this context."}})
        if mood == "moderated" and len(asked["messages"]) > 2:
            return self.reply(403, {"error": {"message": "flagged"}})
        if mood == "drip":
            return self.drip()
        if mood.startswith("broken-"):
            return self.send(NO_ANSWERS[mood.removeprefix("broken-")])
        if mood == "slow":
            time.sleep(0.05)
        if mood == "moody":
            turn = next(CALLS) % 7
            if turn == 0:
                return self.reply(429, {"error": {"message": "slow down"}}, {"Retry-After": "0.01"})
            if turn == 1:
                return self.reply(500, {"error": {"message": "oops"}}, {"Retry-After": "0"})
            if turn == 2:
                time.sleep(3)  # Longer than the client waits.
                self.close_connection = True
                return None
            if turn == 3:
                return self.send(json.dumps(completion({"content": "press red"})).encode()[:40], 400)
            if turn == 4:
                return self.send(b"<html>Bad gateway</html>")
            if turn == 5:
                return self.reply(200, {**completion({}), "choices": []})
        message = self.message(mood, asked)
        if mood == "thinking":
            message["reasoning_content"] = f"<b>{len(asked['messages'])}</b> messages, \ud83d\ude00\ud800 \x1b[2J"
            message["content"] = message["content"] or "I press it."
        if mood == "parts":
            action = message["content"]
            message["content"] = [{"type": "text", "text": action[:3]}, {"type": "image"}, {"text": action[3:]}]
        if mood == "half" and len(asked["messages"]) < 3:
            message["content"] = "press \ud800"
        answer = completion(message)
        if mood.startswith("counting-"):
            answer["usage"] = NO_COUNTS[mood.removeprefix("counting-")]
        if mood.startswith("ended-") or (mood.startswith("failing-") and next(CALLS) % 2):
            answer["choices"][0]["finish_reason"] = mood.partition("-")[2]
        if mood == "refused":
            answer["choices"][0]["message"] |= {"content": None, "refusal": "I will not press anything."}
        if mood == "versioned":
            answer |= {"model": f"m-{len(asked['messages']) // 4}", "system_fingerprint": "fp_1"}
        if mood == "uncounted":
            del answer["usage"]
        return self.reply(200, answer)

    def message(self, mood: str, asked: dict[str, Any]) -> dict[str, Any]:
        """What the model says."""
        if mood == "empty":
            return {"content": None}
        said = asked["messages"]
        shown = [str(each["content"]) for each in said if ": o" in str(each["content"])]
        light = re.search(r"(\w+): off", shown[-1] if shown else "")
        action = f"press {light[1]}" if light else "press black"
        if "tools" in asked:
            names = [tool["function"]["name"] for tool in asked["tools"]]
            arguments = "{" if mood == "odd" and len(said) < 4 else json.dumps({"action": action})
            call = {"id": f"c{len(said)}", "type": "function", "function": {"name": names[0], "arguments": arguments}}
            other = {**call, "id": "other", "function": {"name": "act", "arguments": '{"action": "press black"}'}}
            return {"content": None, "tool_calls": [call, other] if mood == "odd" else [call]}
        tagged = "<action>" in said[0]["content"]
        return {"content": f"It is dark. <action>{action}</action>" if tagged else action}

    def reply(self, status: int, values: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        self.send(json.dumps(values).encode(), status=status, headers=headers)

    def drip(self) -> None:
        """Send what never ends, until nobody listens."""
        self.send_response(200)
        self.send_header("Content-Length", str(10**6))
        self.end_headers()
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(b" ")
                time.sleep(0.1)

    def send(
        self, body: bytes, length: int | None = None, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        """Send a body; one that is shorter than it says is half an answer."""
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length or len(body)))
        self.end_headers()
        self.wfile.write(body)
        if length:
            self.close_connection = True


def completion(message: dict[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
    return {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}


if __name__ == "__main__":
    ThreadingHTTPServer.request_queue_size = 128  # More than are ever in flight: five would wait, and the others fail.
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
