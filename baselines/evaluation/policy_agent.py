"""A saved policy as an agent of `textagent_gym.evaluation`, and the proof that it was this policy which played.

What an episode samples follows from its seed: token by token, one number of the episode's own stream picks the token in
the cumulative distribution of the policy (see `rollout/transformers_backend.py`). So whoever has the policy can compute
whether it says what a result says that it said. `Recomputer` reads every conversation again, and compares each token
with the one that its number picks, and the log-probabilities with those that are recorded.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import torch
from transformers import DynamicCache, PreTrainedModel

from baselines.evaluation.saved_policy import STOPS, load_saved
from baselines.policy.chat import ChatFormat
from baselines.policy.models import room_before_action
from baselines.rollout.backend import Completion, Prompt, make_generator
from baselines.rollout.memory import Context, first_context, next_context
from baselines.rollout.trajectory import Turn
from baselines.rollout.transformers_backend import TransformersGenerator, depends_on_others, drawn
from baselines.settings.config import Precision
from textagent_gym.agents import PolicySettings
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation import EpisodeRecord, policy_digest

TOLERANCE = 0.01
"""Largest difference of log-probabilities.

Measured in 32 bits on a CPU: log-probabilities of what 1, 4 and 16 conversations of 12 turns sampled at once from a
continued cache differ from those of one reading of the whole conversation by at most 7e-6 (2 layers of width 32; 8,000
tokens) and 4e-5 (3 layers of width 128; 8,000 tokens); half of the tokens had logits eight times as large as those of a
fresh policy. They are recorded with four digits, which adds 5e-5. The policies of the tests that are refused differ by
more. Computed in 16 bits, the same policies differ from themselves by up to 0.07 and 0.53 (bfloat16), 0.01 and 0.09
(float16): up to 57% of the tokens of the larger one by more than this. A tolerance for that lets others pass.
"""
BOUNDARY = 5e-4
"""Largest distance of an episode's number from the cumulative probabilities of the token that is recorded, and of a
logit from the largest where nothing is drawn: ten times what was measured. A wider one would let whoever has the policy
choose among neighbours, one token in so many as it is wide, and one token may win a lost episode."""
_SHARE_OF_GPU = 0.8  # Of its memory, for vLLM's weights and cache; the policy itself lies there too.
_ROUNDED = 1 / 20
"""Largest share of episodes in which rounding may have exchanged a token for its neighbour, and so the largest gain of
whoever chooses among neighbours. It is no share of tokens: a policy that finds many of them equally likely could say as
many as it likes. None of the 8,715 tokens of the four tiny policies' results is exchanged, though they were sampled at
once with others, and here each by itself."""


class PolicyAgents:
    """Makes agents of one policy; called with an environment, it gives an agent for it.

    Agents in several threads speak together: whatever waits is read by the policy at once.

    Args:
        folder: folder of the policy.
        settings: settings of the sampling.
        slots: largest number of episodes at once.
        vllm: whether vLLM samples, on a GPU if there is one, and there in 16 bits. It picks tokens by numbers of its
            own, so that what it samples cannot be computed again.

    Raises:
        MissingDependencyError: vLLM is asked for, and not installed.
    """

    waits = True

    def __init__(self, folder: str, settings: PolicySettings, slots: int = 1, *, vllm: bool = False) -> None:
        policy = policy_digest(folder)
        model, self.chat, context = load_saved(folder)
        self.settings = settings
        self.name, self.details = _identity(policy, self.chat, settings)
        if vllm:
            self.details["backend"] = "vllm"
        self.room = room_before_action(context, settings.max_action_tokens)
        model.eval()
        generators: Callable[..., Any] = _VLLM if vllm else TransformersGenerator
        if slots > 1 and not vllm and depends_on_others(model):
            generators = _OneByOne
        self._generator = generators(
            model,
            self.chat.end_id,
            slots=slots,
            max_action_tokens=settings.max_action_tokens,
            temperature=settings.temperature,
        )
        self._free = set(range(slots))
        self._asking, self._speaking = threading.Lock(), threading.Lock()
        self._waiting: list[tuple[Prompt, Future[Completion]]] = []

    def __call__(self, env: gymnasium.Env[str, str]) -> PolicyAgent:
        """An agent for an environment."""
        return PolicyAgent(self)

    def slot_for(self, agent: PolicyAgent) -> int:
        """A slot of the generator, until the agent is gone.

        Raises:
            InvalidOptionError: more agents play at once than there are slots.
        """
        if not self._free:
            gc.collect()
        try:
            slot = self._free.pop()
        except KeyError:
            raise InvalidOptionError(
                f"{self._generator.slots} agents play already; make PolicyAgents with more slots"
            ) from None
        weakref.finalize(agent, self._free.add, slot)
        return slot

    def complete(self, prompt: Prompt) -> Completion:
        """What the policy says, together with whoever else waits."""
        answer: Future[Completion] = Future()
        with self._asking:
            self._waiting.append((prompt, answer))
        with self._speaking:
            if not answer.done():
                with self._asking:
                    asked, self._waiting = self._waiting, []
                self._speak(asked)
        return answer.result()

    def _speak(self, asked: Sequence[tuple[Prompt, Future[Completion]]]) -> None:
        try:
            completions = self._generator.generate([prompt for prompt, _ in asked])
        except BaseException as error:
            for _, answer in asked:
                answer.set_exception(error)
            raise
        for (_, answer), completion in zip(asked, completions, strict=True):
            answer.set_result(completion)


class _VLLM:
    """Samples from a policy with vLLM, which is made and asked in one thread: on a CPU it wants that thread's threads.

    The arguments are those of `make_generator`.
    """

    def __init__(self, model: PreTrainedModel, end_id: int, *, slots: int, **sampling: Any) -> None:
        self.slots = slots
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="vLLM")
        on_gpu = torch.cuda.is_available()
        precision: Precision = "bfloat16" if on_gpu else "float32"
        policy = model.to("cuda") if on_gpu else model
        make = partial(make_generator, "vllm", policy, end_id, slots=slots, memory=_SHARE_OF_GPU, precision=precision)
        self._generator = self._thread.submit(make, **sampling).result()

    def generate(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """See `Generator`."""
        return self._thread.submit(self._generator.generate, prompts).result()


class _OneByOne:
    """Samples from a policy that says something else where it reads other conversations at once.

    The arguments are those of `make_generator`.
    """

    def __init__(self, model: PreTrainedModel, end_id: int, *, slots: int, **sampling: Any) -> None:
        self.slots = slots
        self._generators = [TransformersGenerator(model, end_id, slots=1, **sampling) for _ in range(slots)]

    def generate(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """See `Generator`."""
        return [self._generators[each.slot].generate([replace(each, slot=0)])[0] for each in prompts]


class PolicyAgent:
    """A policy that plays.

    Args:
        agents: maker, with the policy.

    Attributes:
        tokens: number of tokens sampled in this episode.
        sampled: ids and log-probabilities of the last action's tokens.
        stop_reason: "context", once the conversation does not fit the policy's context.
    """

    def __init__(self, agents: PolicyAgents) -> None:
        self.name, self.details = agents.name, agents.details
        self._agents = agents
        self._slot: int | None = None
        self.reset(0)

    def reset(self, seed: int) -> None:
        """A new episode begins; what the policy samples follows from the seed."""
        self._seed = seed
        self._turns: list[Turn] = []
        self._context: Context | None = None
        self._instructions = ""
        self.tokens = 0
        self.sampled: dict[str, list[Any]] | None = None
        self.stop_reason = ""

    def act(self, observation: str, info: dict[str, Any]) -> str | None:
        """The policy's answer."""
        chat = self._agents.chat
        if self._context is None:
            instructions = str(info.get("instructions", ""))
            self._instructions = "" if instructions in observation else instructions
            self._context = first_context(chat, observation, self._instructions)
        else:
            self._context = next_context(
                chat,
                self._turns,
                observation,
                instructions=self._instructions,
                before=self._context,
                room=self._agents.room,
            )
        self.sampled = None
        if self._context.length > self._agents.room:
            self.stop_reason = "context"
            return None
        if self._slot is None:
            self._slot = self._agents.slot_for(self)
        seed = None if self._turns else self._seed
        completion = self._agents.complete(Prompt(self._slot, self._context.ids, self._context.fresh, seed))
        text = chat.text(list(completion.ids))
        turn = Turn(self._context.ids, completion.ids, completion.log_probs, 0.0, text, observation)
        self._turns.append(turn)
        self.tokens += len(completion.ids)
        log_probs = [round(value, 4) for value in completion.log_probs]
        self.sampled = {"ids": list(completion.ids), "log_probs": log_probs}
        return text


def _identity(policy: str, chat: ChatFormat, settings: PolicySettings) -> tuple[str, dict[str, Any]]:
    """Name of a policy in results, and the facts about it that are recorded; no path is among them."""
    dialogue = asdict(chat.dialogue)
    format = None if dialogue["format"] == "plain" else dialogue["format"]
    facts = {"policy": policy, "system": chat.system, "instructed": chat.instructed}
    sampling = {name: value for name, value in asdict(settings).items() if name != "hints" or value}
    return f"model:{policy[:12]}", {**facts, **sampling, **dialogue, "format": format}


def distance(cumulative: torch.Tensor, token: int, number: float) -> float:
    """Distance of a number of 0 to 1 from the interval in which it picks a token; 0 where it picks this token, and at
    the interval's edges.

    Args:
        cumulative: cumulative probabilities of all tokens, shape (tokens,).
        token: token.
        number: number that picks.

    >>> distance(torch.tensor([0.25, 0.5, 1.0]), 1, 0.375), distance(torch.tensor([0.25, 0.5, 1.0]), 0, 0.375)
    (0.0, 0.125)
    """
    low = float(cumulative[token - 1]) if token else 0.0
    return max(low - number, number - float(cumulative[token]), 0.0)


class Recomputer:
    """Reads what a policy is said to have sampled, and computes whether it would have.

    Args:
        folder: folder of the policy.
        settings: settings of the sampling, as recorded.

    Attributes:
        name, details: those of the policy's agents.
        episodes: number of episodes that were computed.
        exchanged: number of these with a token that is within the boundary, and not the one that is sampled here.
    """

    def __init__(self, folder: str, settings: PolicySettings) -> None:
        policy = policy_digest(folder)
        model, self._chat, context = load_saved(folder)
        self._model = model.eval()
        self._settings = settings
        self._room = room_before_action(context, settings.max_action_tokens)
        self.name, self.details = _identity(policy, self._chat, settings)
        self.episodes = self.exchanged = 0

    @property
    def doubt(self) -> str:
        """Why all episodes together are not what the policy samples, in words; "" if nothing speaks against it.

        The boundary for each token is not enough: any token is within it where a policy finds all equally likely.
        """
        if self.exchanged <= _ROUNDED * self.episodes:
            return ""
        return (
            f"{self.exchanged} of {self.episodes} episodes hold tokens that are not those which are sampled here, but "
            f"neighbours that are as good as equal: rounding may make at most {_ROUNDED:.0%}"
        )

    def difference(self, conversation: list[dict[str, Any]], record: EpisodeRecord) -> str:
        """What the policy would not have said, or why it cannot be asked, in words; "" if nothing.

        Args:
            conversation: messages of the episode, whose texts a replay has checked: instructions, then observations and
                answers in turn, an observation last. Answers hold `ids` and `log_probs` of their tokens.
            record: record of the episode.
        """
        try:
            return self._difference(conversation, record)
        except STOPS:
            raise
        except BaseException as error:  # noqa: BLE001 (a stranger's template or tokenizer raises what it likes)
            return f"the policy cannot be asked: {type(error).__name__}: {error}"

    def _difference(self, conversation: list[dict[str, Any]], record: EpisodeRecord) -> str:
        """See `difference`."""
        system = [message["content"] for message in conversation if message["role"] == "system"]
        rest = [message for message in conversation if message["role"] != "system"]
        instructions = system[0] if system else ""
        stream = np.random.default_rng(record.seed)
        turns: list[Turn] = []
        context: Context | None = None
        cache = DynamicCache()  # Of what was read before, so that each token is read once.
        unread: list[int] = []
        self.episodes += 1
        exchanged = False
        for number, (asked, answer) in enumerate(zip(rest[::2], rest[1::2], strict=False), start=1):
            ids, recorded, text = answer.get("ids"), answer.get("log_probs"), answer["content"]
            if not self._are_tokens(ids, recorded):
                return f"action {number} has no tokens with log-probabilities"
            assert ids is not None
            assert recorded is not None
            if self._chat.text(ids) != text:
                return f"the tokens of action {number} say {self._chat.text(ids)!r:.100}, and {text!r:.100} is recorded"
            context = self._context(context, turns, asked["content"], instructions)
            if context.length > self._room:
                return f"the policy cannot read as far as action {number}"
            if context.fresh:
                cache, unread = DynamicCache(), []
            uniform = stream.random(self._settings.max_action_tokens)
            what, is_exchanged = self._wrong_token(cache, [*unread, *context.ids], ids, recorded, uniform)
            unread = ids[-1:]
            if what:
                return f"{what} of action {number} (computed in 32 bits, as --agent model:FOLDER does)"
            exchanged = exchanged or is_exchanged
            turns.append(Turn(context.ids, tuple(ids), tuple(recorded), 0.0, text, asked["content"]))
        if record.stopped:
            context = self._context(context, turns, rest[-1]["content"], instructions)
            if record.stopped != "context" or context.length <= self._room:
                return f"the policy had not stopped ({record.stopped!r:.100} is recorded): it can read on"
        self.exchanged += exchanged
        return ""

    def _context(self, before: Context | None, turns: list[Turn], observation: str, instructions: str) -> Context:
        """What the policy reads before its next action."""
        if before is None:
            return first_context(self._chat, observation, instructions)
        return next_context(self._chat, turns, observation, instructions=instructions, before=before, room=self._room)

    def _are_tokens(self, ids: Any, log_probs: Any) -> bool:
        """Whether values are the tokens of one action and their log-probabilities."""
        if not isinstance(ids, list) or not isinstance(log_probs, list) or not ids or len(ids) != len(log_probs):
            return False
        vocabulary = self._model.get_input_embeddings().num_embeddings
        most, end = self._settings.max_action_tokens, self._chat.end_id
        right = all(isinstance(token, int) and 0 <= token < vocabulary for token in ids)
        return right and len(ids) <= most and end not in ids[:-1] and (ids[-1] == end or len(ids) == most)

    @torch.inference_mode()
    def _wrong_token(
        self, cache: DynamicCache, unread: list[int], ids: list[int], recorded: list[float], uniform: Any
    ) -> tuple[str, bool]:
        """The first token that the policy would not have sampled, in words, "" if there is none; and whether a token is
        the neighbour of the one that is sampled here.

        Each token is read by itself, as it was when it was sampled: what follows must not be known to a policy, and one
        that attends to both sides would repeat whatever is recorded. What is read is added to the cache.

        Args:
            cache: what has been read before.
            unread: ids that are read before the action: the last one of the action before, and what followed.
            ids, recorded: tokens of the action, and their log-probabilities.
            uniform: number of each token, of 0 to 1.
        """
        temperature, exchanged = self._settings.temperature, False
        for place, token in enumerate(ids):
            read = torch.tensor([unread], device=self._model.device)
            logits = self._model(input_ids=read, past_key_values=cache, logits_to_keep=1).logits[0, -1:].float()
            unread = [token]
            picked, log_probs, cumulative, heights = drawn(logits, temperature or 1.0, [float(uniform[place])])
            there, here = recorded[place], float(log_probs[0, token])
            if not abs(there - here) <= TOLERANCE:
                return (
                    f"the log-probability of token {place + 1} is {here:.4f}, and {there:.4f} is recorded: that",
                    False,
                )
            if temperature == 0.0:
                likely = float(logits[0, token]) >= float(logits.max()) - BOUNDARY
                same = token == int(logits.argmax())
            else:
                # A number at the edge of a token has no distance from its neighbour, which is not what it picks.
                likely, same = distance(cumulative[0], token, float(heights)) <= BOUNDARY, token == int(picked)
            if not likely:
                what = f"token {place + 1} is not the one that the policy samples with the seed of the episode: that"
                return what, False
            exchanged = exchanged or not same
        return "", exchanged
