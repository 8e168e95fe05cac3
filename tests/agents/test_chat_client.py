"""What is read of a chat server's answers, and how it is named where it cannot be asked."""

from __future__ import annotations

import contextlib
import gzip
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from textagent_gym.errors import AgentError, AgentFailedError

pytest.importorskip("openai", reason='needs: pip install "textagent-gym[chat]"')
pytest.importorskip("tenacity", reason='needs: pip install "textagent-gym[chat]"')

from textagent_gym.agents.chat_client import ChatClient

GREETING = [{"role": "user", "content": "Hello."}]
ANSWER = json.dumps({"choices": [{"message": {"content": "look"}}]}).encode()


class Handler(BaseHTTPRequestHandler):
    """Behaves as the path says: /STATUS/endless, /STATUS/packed; it knows no other address."""

    def log_message(self, *arguments: object) -> None:
        """Nothing."""

    def do_POST(self) -> None:
        """Answer."""
        self.rfile.read(int(self.headers["Content-Length"]))
        status, _, mood = self.path.removesuffix("/chat/completions").strip("/").partition("/")
        is_known = mood in ("endless", "packed")
        self.send_response(int(status) if is_known else 404)
        if mood == "packed":
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        with contextlib.suppress(OSError):
            while mood == "endless":
                self.wfile.write(b" " * 2**20)
            self.wfile.write(gzip.compress(ANSWER) if mood == "packed" else b"not found")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Address of the server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textagent_gym.agents.chat_client._LONGEST_PAUSE", 0.05)


def client(address: str | None, retries: int = 0) -> ChatClient:
    return ChatClient("m", base_url=address, key="none", sampling={}, call_seconds=20.0, retries=retries)


@pytest.mark.parametrize(
    ("mood", "reason"),
    [
        ("200/endless", "the server's answer has more than 33554432 bytes"),
        ("400/endless", "the server's answer has more than 33554432 bytes"),
        ("200/packed", "the server compresses its answers, which it was asked not to"),
    ],
)
def test_what_is_read_of_an_answer_is_bounded(
    server: str, mood: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    address = f"{server}/{mood}"
    with pytest.raises(AgentError, match=f"the server at {address} gives no answer: ValueError: {reason}"):
        client(address, retries=1).answer(GREETING, [])
    assert f"A call of the server at {address} has failed, and is made again: ValueError: {reason}" in caplog.messages


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://me:secret@127.0.0.1:9/v1", "the server at http://127.0.0.1:9/v1 cannot be reached, or refuses every"),
        ("SERVER", "the server at SERVER cannot be reached, or refuses every call; look at its address (it usually"),
        ("SERVER/v1", "the server at SERVER/v1 cannot be reached, or refuses every call; look at its address, the key"),
    ],
)
def test_a_server_that_cannot_be_asked_is_named_by_its_address(
    server: str, address: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(AgentFailedError) as failed:
        client(address.replace("SERVER", server), retries=1).answer(GREETING, [])
    assert said.replace("SERVER", server) in str(failed.value)
    assert "secret" not in f"{failed.value} {caplog.text}"


def test_without_an_address_it_is_said_to_be_openais(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server}/mine")
    with pytest.raises(AgentFailedError, match=f"the server at {server}/mine/ cannot be reached"):
        client(None).answer(GREETING, [])
    monkeypatch.setattr("textagent_gym.agents.chat_client._OPENAI", f"{server}/mine/")  # No test calls OpenAI.
    with pytest.raises(AgentFailedError, match=r"its address \(it is OpenAI's own, for want of --base-url\), the key"):
        client(None).answer(GREETING, [])


def test_openais_address_is_that_of_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    made = client(None)
    assert made._hint(AgentError()) == " (it is OpenAI's own, for want of --base-url)"
