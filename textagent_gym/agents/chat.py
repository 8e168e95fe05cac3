"""Agents behind a server that speaks OpenAI's chat protocol: OpenAI's own, vLLM, SGLang, llama.cpp, ..."""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any
from urllib.parse import urlsplit

import gymnasium
import tyro

from textagent_gym.agents.chat_client import ChatAnswer, ChatClient, ContextError, EpisodeTimeError, without_password
from textagent_gym.calls import FORMATS, Tool
from textagent_gym.calls.formats import ACT
from textagent_gym.core import TextEnv
from textagent_gym.errors import AgentError, InvalidOptionError

_PATIENCE = ("key_variable", "call_seconds", "retries")  # Settings that no answer depends on.
_SAMPLING = ("temperature", "top_p", "max_tokens", "reasoning_effort")  # Settings that are the protocol's own.

# As the command line shows what is left to the server.
_Text = Annotated[str | None, tyro.conf.arg(metavar="STR", help_behavior_hint="")]
_Number = Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")]
_Count = Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")]


@dataclass(frozen=True, kw_only=True)
class ChatSettings:
    """How a model is asked. What is `None` is left to the server.

    Everything is recorded that an answer can depend on, and the address and the prices; neither the key nor how
    patiently a server that does not answer is asked again.
    """

    base_url: _Text = None
    """Address of the server, such as http://localhost:8000/v1; by default OpenAI's."""
    key_variable: str = "OPENAI_API_KEY"
    """Environment variable that holds the key of the server. Servers that ask for none need none."""
    format: _Text = None
    """Format in which the model is told to answer: tag, last-line, react, agentgym, think, call, plan or
    reflect.
    By default, and as plain, its whole answer is the action."""
    tools: bool = False
    """Whether the model calls functions natively: the tools of the world, or `act` in worlds of commands."""
    hints: bool = False
    """Whether the model is told the actions that would do something now. Results show it."""
    temperature: _Number = None
    """Sampling temperature."""
    top_p: _Number = None
    """Share of the probability that tokens are sampled from."""
    max_tokens: _Count = None
    """Largest number of tokens per answer."""
    reasoning_effort: _Text = None
    """Effort of models that reason, in the server's own words."""
    call_seconds: float = 120.0
    """Time that a call may take, to its last byte, after which the server is asked again."""
    retries: int = 6
    """Number of times that a failed call is made again, after growing pauses."""
    episode_turns: _Count = None
    """Number of turns after which the agent stops, which loses the episode."""
    episode_tokens: _Count = None
    """Number of tokens written after which the agent stops, which loses the episode."""
    episode_seconds: _Number = None
    """Time after which the agent stops, which loses the episode."""
    price_input: _Number = None
    """Price of a million tokens read, in any currency. With --price-output, cost is counted."""
    price_output: _Number = None
    """Price of a million tokens written, in the same currency."""
    episode_cost: _Number = None
    """Cost after which the agent stops, which loses the episode; it needs both prices."""

    def __post_init__(self) -> None:
        if self.base_url is not None and not _is_address(self.base_url):
            raise InvalidOptionError("base_url must be an address such as http://localhost:8000/v1")
        if self.format == "plain":
            object.__setattr__(self, "format", None)
        if self.format is not None and self.format not in FORMATS:
            raise InvalidOptionError(f"format must be one of plain, {', '.join(FORMATS)}, got {self.format!r}")
        if self.format is not None and self.tools:
            raise InvalidOptionError("with tools, functions are called natively: leave out format")
        for name, low in (("retries", 0), ("max_tokens", 1), ("episode_turns", 1), ("episode_tokens", 1)):
            value = getattr(self, name)
            if value is not None and value < low:
                raise InvalidOptionError(f"{name} must be at least {low}, got {value}")
        for name in ("call_seconds", "episode_seconds", "episode_cost"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidOptionError(f"{name} must be more than 0, got {value}")
        for name in ("price_input", "price_output", "temperature"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise InvalidOptionError(f"{name} must be at least 0, got {value}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise InvalidOptionError(f"top_p must be more than 0 and at most 1, got {self.top_p}")
        if (self.price_input is None) != (self.price_output is None):
            raise InvalidOptionError("cost needs both price_input and price_output")
        if self.episode_cost is not None and self.price_input is None:
            raise InvalidOptionError("episode_cost needs price_input and price_output")

    def cost(self, read: int, written: int) -> float | None:
        """Price of some tokens, in the currency of the prices; `None` without prices.

        >>> ChatSettings(price_input=2.0, price_output=10.0).cost(read=1000, written=100)
        0.003
        """
        if self.price_input is None or self.price_output is None:
            return None
        return (read * self.price_input + written * self.price_output) / 1e6


class ChatAgents:
    """Makes agents of one model; called with an environment, it gives an agent for it.

    Args:
        model: name of the model on the server.
        settings: settings of the calls.

    Raises:
        MissingDependencyError: the package `openai` is not installed.
        InvalidOptionError: the key of the server cannot be one.
    """

    waits = True

    def __init__(self, model: str, settings: ChatSettings) -> None:
        self.name = f"openai:{model}"
        self.settings = settings
        recorded = asdict(replace(settings, base_url=settings.base_url and without_password(settings.base_url)))
        for name in _PATIENCE:
            del recorded[name]
        self.details: dict[str, Any] = {"model": model, **recorded}
        key = os.environ.get(settings.key_variable) or "none"  # The client insists on one.
        chosen = {name: getattr(settings, name) for name in _SAMPLING}
        sampling = {name: value for name, value in chosen.items() if value is not None}
        self._client = ChatClient(
            model,
            base_url=settings.base_url,
            key=key,
            sampling=sampling,
            call_seconds=settings.call_seconds,
            retries=settings.retries,
        )

    def __call__(self, env: gymnasium.Env[str, str]) -> ChatAgent:
        """An agent for an environment."""
        return ChatAgent(self, env)

    def close(self) -> None:
        """End calls that are waiting."""
        self._client.close()

    def answer(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], *, until: float = math.inf
    ) -> ChatAnswer:
        """The server's answer to a conversation; see `ChatClient.answer`."""
        return self._client.answer(messages, tools, until=until)


class ChatAgent:
    """A model that plays: the instructions are its system message, observations the user's, its answers its own.

    An answer that the server gives is the agent's, also one that is empty, cut off or a refusal. A call that fails is
    no answer: it is made again, and after that breaks the episode (`AgentError`).

    Args:
        agents: maker, with the client.
        env: environment that is played.

    Attributes:
        tokens, tokens_read: number of tokens written and read in this episode; `None` if the server does not count
            them.
        cost: price of all tokens read and written in this episode; `None` without prices, or if the server does not
            count them.
        stop_reason: "context", "turns", "tokens", "cost" or "time", once the agent has stopped.
        cut, refused: number of answers of this episode that ended at a limit of tokens, and of those that the model
            refused or its server's filter withheld, as the server says.
        served: models that answered in this episode, as the server calls them.
        remarks: what the model wrote beside its last action: `reasoning`, where the server tells it, `text` beside
            the call of a function, the `call` as it was written, and how the answer `ended` where it is not whole.
    """

    def __init__(self, agents: ChatAgents, env: gymnasium.Env[str, str]) -> None:
        base = env.unwrapped
        self.name, self.details = agents.name, agents.details
        self._agents = agents
        self._worlds_tools: tuple[Tool, ...] = base.tools if isinstance(base, TextEnv) else ()
        tools = (self._worlds_tools or (ACT,)) if agents.settings.tools else ()
        self._tools = [tool.schema for tool in tools]
        self.reset(0)

    def reset(self, seed: int) -> None:
        """A new episode begins. What the server samples does not follow from the seed."""
        self._messages: list[dict[str, Any]] = []
        self._call: str | None = None  # Id of the call that the next observation answers.
        self._turns = 0
        self._started = time.monotonic()
        self.tokens: int | None = 0
        self.tokens_read: int | None = 0
        self.cut = self.refused = 0
        self.served: list[str] = []
        self.cost = self._agents.settings.cost(0, 0)
        self.stop_reason = ""
        self.remarks: dict[str, str] = {}

    def act(self, observation: str, info: dict[str, Any]) -> str | None:
        """The model's answer, or the call of a function as `calls.render_function` writes it.

        Raises:
            AgentError: the server does not answer.
            AgentFailedError: the server refuses every call, or cannot be reached.
        """
        instructions = str(info.get("instructions", ""))
        if not self._messages and instructions and instructions not in observation:
            self._messages.append({"role": "system", "content": instructions})
        role = {"role": "user"} if self._call is None else {"role": "tool", "tool_call_id": self._call}
        self._messages.append({**role, "content": _sendable(observation)})
        self.stop_reason = self._limit()
        if self.stop_reason:
            return None
        seconds = self._agents.settings.episode_seconds
        until = math.inf if seconds is None else self._started + seconds
        try:
            answer = self._agents.answer(self._messages, self._tools, until=until)
        except (ContextError, EpisodeTimeError) as error:
            self.stop_reason = "context" if isinstance(error, ContextError) else "time"
            return None
        self._turns += 1
        self._count(answer)
        self.remarks = {"reasoning": answer.reasoning, "ended": answer.ended}
        text = _sendable(answer.text)
        if not self._tools or not answer.calls:
            self._call = None
            self._messages.append({"role": "assistant", "content": text})
            return answer.text
        self.remarks["text"] = answer.text
        call = answer.calls[0]  # One action per turn: whatever else is called was not done, and is not remembered.
        self._call = _sendable(call.id)
        function = {"name": _sendable(call.name), "arguments": _sendable(call.arguments)}
        self.remarks["call"] = json.dumps(function)
        called = {"id": self._call, "type": "function", "function": function}
        self._messages.append({"role": "assistant", "content": text or None, "tool_calls": [called]})
        return self._action(call.name, call.arguments)

    def _count(self, answer: ChatAnswer) -> None:
        """Add the tokens of an answer, what they cost, how it ended and who gave it.

        Raises:
            AgentError: a limit of cost cannot be kept, for the server does not count tokens.
        """
        settings, read, written = self._agents.settings, answer.read, answer.written
        self.tokens = None if written is None or self.tokens is None else self.tokens + written
        self.tokens_read = None if read is None or self.tokens_read is None else self.tokens_read + read
        self.cut += answer.ended == "length"
        self.refused += answer.ended in ("refusal", "content_filter")
        if answer.model and answer.model not in self.served:
            self.served.append(answer.model)
        if read is None or written is None:
            if settings.episode_cost is not None:
                raise AgentError("the server does not count tokens: episode_cost cannot be kept")
            self.cost = None
        elif self.cost is not None:
            self.cost += settings.cost(read, written) or 0.0

    def _action(self, name: str, arguments: str) -> str:
        """The action that a call makes; a call that is damaged is passed on for the world to say so."""
        try:
            values = json.loads(arguments or "{}")
            if not self._worlds_tools and name == ACT.name and isinstance(values, dict):
                return str(values.get("action", ""))
            return json.dumps({"name": name, "arguments": values})
        except (ValueError, RecursionError):  # What is nested deeply can be read where it cannot be written.
            return json.dumps({"name": name, "arguments": arguments})

    def _limit(self) -> str:
        """The limit of the episode that is reached; "" if there is none."""
        settings = self._agents.settings
        limits = (
            ("turns", self._turns, settings.episode_turns),
            ("tokens", self.tokens or 0, settings.episode_tokens),
            ("cost", self.cost or 0.0, settings.episode_cost),
            ("time", time.monotonic() - self._started, settings.episode_seconds),
        )
        return next((name for name, value, most in limits if most is not None and value >= most), "")


def _sendable(text: str) -> str:
    """A text without what cannot be sent: half of a pair of surrogates, which only JSON can write.

    >>> _sendable("take \\ud800 lamp")
    'take ? lamp'
    """
    return text.encode(errors="replace").decode()


def _is_address(url: str) -> bool:
    """Whether a text is the address of a server.

    >>> _is_address("http://localhost:8000/v1"), _is_address("localhost:8000/v1")
    (True, False)
    """
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # A port that is no number, brackets that do not close.
        return False
