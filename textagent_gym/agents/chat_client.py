"""Calls of a server that speaks OpenAI's chat protocol: bounded in time, made again where they fail, and checked."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from textagent_gym.errors import AgentError, AgentFailedError, InvalidOptionError, MissingDependencyError
from textagent_gym.terminal import visible

if TYPE_CHECKING:
    import tenacity

_RETRIED = (408, 409, 425, 429)  # Statuses below 500 after which the same call may succeed.
_TOO_LONG = (
    ("context_length_exceeded",),  # OpenAI
    ("exceed_context_size_error",),  # llama.cpp
    ("exceeds the available context size",),  # llama.cpp, before it had a type for it
    ("maximum context length",),  # vLLM, DeepSeek, Mistral
    ("longer than", "context length"),  # SGLang
    ("longer than", "maximum model length"),  # vLLM
    ("max_tokens must be at least 1, got -",),  # vLLM: nothing is left of the context for an answer.
    ("prompt is too long",),  # Anthropic
    ("exceed context window",),  # llama-cpp-python
    ("`inputs` tokens + `max_new_tokens` must be",),  # TGI
    ("input token count", "exceeds the maximum number of tokens"),  # Gemini
)
"""Words, in small letters, by which servers say that a conversation is longer than the model's context."""
_LOG = logging.getLogger(__name__)
_QUIET_SECONDS = 60.0  # Between two words on calls that fail: of a server that is down, all do.
_LONGEST_PAUSE = 60.0  # Seconds between two calls: limits of rates are per minute.
_LONGEST_REASON = 300  # Characters of a server's message that are kept.
_LARGEST_BODY = 2**25  # Bytes of a server's answer that are read: 32 MiB hold the longest contexts many times.
_MOST_TOKENS = 10**9  # Tokens of a call that a server may count: a thousand times the longest contexts.
_OPENAI = "https://api.openai.com/v1/"  # Its client's own address.
_UNREACHABLE = ("ConnectError", "UnsupportedProtocol", "LocalProtocolError", "ProxyError")  # Of httpx and httpx2.
_FAILED = ("error", "abort", "network_error", "insufficient_system_resource")
"""Reasons by which servers end an answer that they could not finish: gateways, vLLM and SGLang, GLM, and DeepSeek."""
_LONGEST_NAME = 200  # Characters of a served model's name that are kept.
_EXHAUSTED = "insufficient_quota"  # OpenAI's word, with status 429, for an account that has nothing left to spend.
_GREETING = [{"role": "user", "content": "Hello."}]


class ContextError(Exception):
    """A conversation is longer than the model's context."""


class EpisodeTimeError(Exception):
    """The time of the episode is over before the server has answered."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function that a model calls.

    Attributes:
        id: id that the answer to the call names.
        name: name of the function.
        arguments: arguments as the model wrote them, which need not be JSON.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """What a server answers to a conversation.

    Attributes:
        text: text of the message, or of a refusal; "" if there is none.
        reasoning: reasoning of the model; "" if it is not told.
        calls: functions that are called.
        read, written: number of tokens read and written; `None` if they are not counted.
        ended: why the answer is not whole: "length" where it is cut at a limit of tokens, "refusal" where the model
            has refused, "content_filter" where its server has withheld it; "" if it is whole, or nobody says so.
        model: model that has answered, as the server calls it, with the version of the server (the protocol's
            `system_fingerprint`); "" if it is not told.
    """

    text: str
    reasoning: str
    calls: tuple[FunctionCall, ...]
    read: int | None
    written: int | None
    ended: str = ""
    model: str = ""

    @classmethod
    def of(cls, values: Any) -> ChatAnswer:
        """The answer that JSON values hold.

        Raises:
            ValueError: they are not a chat completion, or one that the server says it could not finish.

        >>> answer = ChatAnswer.of({"choices": [{"message": {"content": "look"}, "finish_reason": "length"}]})
        >>> answer.text, answer.ended, answer.written
        ('look', 'length', None)
        """
        choices = _field(values, "choices", list)
        message = _field(choices[0] if choices else None, "message", dict)
        if message is None:
            raise ValueError("the server's answer holds no message")
        reason = choices[0].get("finish_reason")
        if reason in _FAILED:
            raise ValueError(f"the server could not finish its answer, and says {reason!r}")
        refusal = _field(message, "refusal", str) or ""
        usage = values.get("usage")
        counts = usage if isinstance(usage, dict) else {}
        text = _text(message.get("content")) or refusal
        ended = "refusal" if refusal else reason if reason in ("length", "content_filter") else ""
        model = " ".join(each for name in ("model", "system_fingerprint") if isinstance(each := values.get(name), str))
        calls = [_call(call) for call in _field(message, "tool_calls", list) or ()]
        return cls(
            text,
            _reasoning(message),
            tuple(call for call in calls if call is not None),
            _count(counts.get("prompt_tokens")),
            _count(counts.get("completion_tokens")),
            ended,
            model[:_LONGEST_NAME],
        )


class ChatClient:
    """Asks a model on a server. Any number of threads may ask at once.

    Args:
        model: name of the model on the server.
        base_url: address of the server; `None` is OpenAI's.
        key: key of the server.
        sampling: settings of the sampling, by the names of the protocol.
        call_seconds: time that a call may take, from its first byte to its last.
        retries: number of times that a failed call is made again, after growing pauses.

    Raises:
        MissingDependencyError: the package `openai` is not installed.
        InvalidOptionError: the address or the key cannot be one.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None,
        key: str,
        sampling: dict[str, Any],
        call_seconds: float,
        retries: int,
    ) -> None:
        try:
            import openai
            import tenacity
        except ImportError as error:
            raise MissingDependencyError(error.name or "openai", "chat") from error
        if not (key.isascii() and key.isprintable()):
            raise InvalidOptionError("the key of the server holds characters that no key has")
        self._model = model
        self._key = key
        self._sampling = sampling
        self._call_seconds = call_seconds
        self._takes_completion_tokens = False
        self._closed = threading.Event()
        self._running: set[Future[bytes]] = set()
        self._quiet_until = -math.inf
        headers, hooks = {"Accept-Encoding": "identity"}, {"response": [_bound]}
        self._client = openai.AsyncOpenAI(
            base_url=base_url,
            api_key=key,
            timeout=call_seconds,
            max_retries=0,
            default_headers=headers,
            http_client=openai.DefaultAsyncHttpxClient(event_hooks=hooks),
        )
        self._address = without_password(base_url or str(self._client.base_url))
        self._retrying = tenacity.Retrying(
            wait=_pause,
            stop=tenacity.stop_after_attempt(retries + 1),
            retry=tenacity.retry_if_exception(lambda error: not self._closed.is_set() and _may_pass(error)),
            sleep=tenacity.sleep_using_event(self._closed),
            before_sleep=self._tell,
            reraise=True,
        )

    def close(self) -> None:
        """End calls that are waiting."""
        self._closed.set()
        for call in tuple(self._running):
            call.cancel()

    def answer(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], *, until: float = math.inf
    ) -> ChatAnswer:
        """The server's answer to a conversation; failed calls are made again.

        Args:
            messages: conversation.
            tools: functions that the model may call.
            until: time of `time.monotonic` at which nobody waits for the answer any longer.

        Raises:
            ContextError: the conversation is longer than the model's context.
            EpisodeTimeError: a call has been waiting at `until`.
            AgentError: the server does not answer, however often it is asked.
            AgentFailedError: the server refuses every call, also one that only greets, or it cannot be reached.
        """
        asked = {**self._sampling, **({"tools": tools} if tools else {})}

        def is_late(state: tenacity.RetryCallState) -> bool:
            return time.monotonic() + state.upcoming_sleep >= until

        retrying = self._retrying.copy(stop=self._retrying.stop | is_late)  # type: ignore[operator]
        try:
            return retrying(self._ask, {**asked, "messages": messages}, until)
        except EpisodeTimeError:
            raise
        except Exception as error:  # Whatever a server or its client does, the evaluation continues.
            if _is_too_long(error):
                raise ContextError from error
            reason = self._worded(error)
            if _is_refused(error) and self._refuses({**asked, "messages": _GREETING}):
                raise AgentFailedError(
                    f"the server at {self._address} cannot be reached, or refuses every call; look at its address"
                    f"{self._hint(error)}, the key, the model and the options ({reason})"
                ) from error
            raise AgentError(f"the server at {self._address} gives no answer: {reason}") from error

    def _hint(self, error: BaseException) -> str:
        """What may be wrong with the address, to be said after it; "" if nothing is known."""
        if self._address == _OPENAI:
            return " (it is OpenAI's own, for want of --base-url)"
        is_missing = getattr(error, "status_code", None) == 404 and not self._address.rstrip("/").endswith("/v1")
        return " (it usually ends in /v1)" if is_missing else ""

    def _tell(self, state: tenacity.RetryCallState) -> None:
        """Say that a call has failed and is made again, now and then."""
        error, now = state.outcome.exception() if state.outcome is not None else None, time.monotonic()
        if error is not None and now >= self._quiet_until:
            self._quiet_until = now + _QUIET_SECONDS
            reason = visible(f"{self._address} has failed, and is made again: {self._worded(error)}")
            _LOG.warning("A call of the server at %s", reason)

    def _worded(self, error: BaseException) -> str:
        """What has failed, in a line without the key."""
        return " ".join(f"{type(error).__name__}: {error}".split()).replace(self._key, "...")[:_LONGEST_REASON]

    def _ask(self, asked: dict[str, Any], until: float = math.inf) -> ChatAnswer:
        """Call once; twice where the server calls a limit of tokens by its newer name.

        OpenAI's models that reason refuse `max_tokens`, and other servers do not know `max_completion_tokens`.
        """
        import openai

        if self._takes_completion_tokens and "max_tokens" in asked:
            asked = {**asked, "max_completion_tokens": asked["max_tokens"]}
            del asked["max_tokens"]
        seconds = min(self._call_seconds, until - time.monotonic())
        call = asyncio.run_coroutine_threadsafe(self._post(asked, seconds), _loop())
        self._running.add(call)
        try:
            if self._closed.is_set():
                call.cancel()
            text = call.result()
        except (TimeoutError, openai.APITimeoutError) as error:
            if time.monotonic() >= until:
                raise EpisodeTimeError from error
            raise TimeoutError(f"no whole answer within {self._call_seconds:g} seconds") from error
        except openai.BadRequestError as error:
            if "max_tokens" not in asked or "max_completion_tokens" not in _said(error):
                raise
            self._takes_completion_tokens = True
            return self._ask(asked, until)
        finally:
            call.cancel()  # Ctrl-C may end the wait; a call that has ended is not concerned.
            self._running.discard(call)
        try:
            values = json.loads(text)
        except ValueError:
            raise ValueError(f"the server's answer is no JSON (is its address right?): {text[:80]!r}") from None
        return ChatAnswer.of(values)

    async def _post(self, asked: dict[str, Any], seconds: float) -> bytes:
        """The body of the server's answer. A call that takes longer is cancelled, which closes its connection."""
        create = self._client.chat.completions.with_raw_response.create
        async with asyncio.timeout(seconds):
            return bytes((await create(model=self._model, **asked)).content)

    def _refuses(self, asked: dict[str, Any]) -> bool:
        """Whether the server refuses a call, or cannot be reached."""
        try:
            self._ask(asked)
        except Exception as error:  # noqa: BLE001 (whatever else a server does may pass)
            return _is_refused(error)
        return False


def without_password(url: str) -> str:
    """An address without the name and the password of a user, and without a query.

    >>> without_password("http://me:secret@host:8000/v1?key=secret")
    'http://host:8000/v1'
    """
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


async def _bound(response: Any) -> None:
    """Bound what is read of a response, whatever its status.

    A body that is compressed is refused: a few kilobytes may become gigabytes before anybody can count them.

    Args:
        response: response of httpx or httpx2, whose body has not been read.

    Raises:
        ValueError: it is compressed. Reading raises it where the body is too large.
    """
    if response.headers.get("content-encoding", "identity") != "identity":
        raise ValueError("the server compresses its answers, which it was asked not to")
    read = response.aiter_raw

    async def bounded(chunk_size: int | None = None) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in read(chunk_size):
            size += len(chunk)
            if size > _LARGEST_BODY:
                raise ValueError(f"the server's answer has more than {_LARGEST_BODY} bytes")
            yield chunk

    response.aiter_raw = bounded


_starting = threading.Lock()
_started: list[asyncio.AbstractEventLoop] = []


def _loop() -> asyncio.AbstractEventLoop:
    """The event loop in which all calls of this process are made: only there can one be cancelled at any byte."""
    with _starting:
        if not _started:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="chat calls", daemon=True).start()
            _started.append(loop)
        return _started[0]


def _field(values: Any, name: str, kind: type) -> Any:
    """A field of JSON values; `None` if it is not there or null.

    Raises:
        ValueError: it is something else.
    """
    if not isinstance(values, dict):
        raise ValueError("the server's answer is no chat completion")
    value = values.get(name)
    if value is not None and not isinstance(value, kind):
        raise ValueError(f"the server's answer holds {value!r:.100} as {name!r}")
    return value


def _text(content: Any) -> str:
    """The text of a message, which may come in parts.

    Raises:
        ValueError: it is no text.

    >>> _text([{"type": "text", "text": "take "}, {"type": "text", "text": "lamp"}])
    'take lamp'
    """
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise ValueError(f"the server's answer holds {content!r:.100} as 'content'")
    return "".join(part if isinstance(part, str) else _field(part, "text", str) or "" for part in content)


def _call(values: Any) -> FunctionCall | None:
    """A call among those of a message; `None` if it is not that of a function.

    Raises:
        ValueError: it is no call.
    """
    function = _field(values, "function", dict)
    if function is None:
        return None
    name, arguments = _field(function, "name", str), function.get("arguments")
    if name is None:
        raise ValueError("the server's answer calls a function without a name")
    if not isinstance(arguments, str | None):  # Some servers have read the model's text already.
        arguments = json.dumps(arguments)
    return FunctionCall(str(values.get("id") or "call"), name, arguments or "")


def _reasoning(message: dict[str, Any]) -> str:
    """The reasoning of an answer, as servers call it: DeepSeek, SGLang and llama.cpp, or vLLM and OpenRouter; "" if it
    is not told."""
    texts = (message.get(name) for name in ("reasoning_content", "reasoning"))
    return next((text for text in texts if isinstance(text, str) and text), "")


def _count(value: Any) -> int | None:
    """A number of tokens; `None` for what cannot be one."""
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def _may_pass(error: BaseException) -> bool:
    """Whether the same call may succeed later: not if the server has refused it for what it is."""
    status = getattr(error, "status_code", None)
    if _is_too_long(error) or _is_exhausted(error) or isinstance(error, EpisodeTimeError):
        return False
    return isinstance(error, Exception) and (status is None or status >= 500 or status in _RETRIED)


def _is_refused(error: BaseException) -> bool:
    """Whether a server has refused a call for good, or could not be reached."""
    status = getattr(error, "status_code", None)
    if status is not None:
        refused = 400 <= status < 500 and status not in _RETRIED and not _is_too_long(error)
        return refused or _is_exhausted(error)
    return type(error.__cause__).__name__ in _UNREACHABLE


def _is_exhausted(error: BaseException) -> bool:
    """Whether a server has refused a call because its user may not spend more, which does not pass by itself."""
    return getattr(error, "status_code", None) == 429 and _EXHAUSTED in _said(error)


def _said(error: BaseException) -> str:
    """A server's message in small letters. The client's own leaves out a body whose "error" is a text."""
    return f"{error} {getattr(error, 'body', '')}".lower()


def _is_too_long(error: BaseException) -> bool:
    """Whether a server has refused a conversation because it does not fit into the model's context.

    llama.cpp has said so with status 500 at first.
    """
    if getattr(error, "status_code", None) not in (400, 413, 422, 500):
        return False
    text = _said(error)
    return any(all(word in text for word in words) for words in _TOO_LONG)


def _pause(state: tenacity.RetryCallState) -> float:
    """Seconds before the next call: what the server asks for, or else growing ones with a random share."""
    import tenacity

    error = state.outcome.exception() if state.outcome is not None else None
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        asked = float(headers.get("retry-after", ""))
    except ValueError:
        asked = -1.0
    if 0 <= asked <= _LONGEST_PAUSE:
        return asked
    return tenacity.wait_random_exponential(multiplier=1, max=_LONGEST_PAUSE)(state)
