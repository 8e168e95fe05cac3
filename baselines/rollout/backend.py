"""What a generation back end does: continue the conversations of numbered slots."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from baselines.settings.config import GeneratorKind, Precision
from textagent_gym.errors import MissingDependencyError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True)
class Prompt:
    """Continue one conversation.

    Attributes:
        slot: number of the conversation, from 0 to the number of slots less 1.
        ids: token ids that are added to the conversation before the model speaks.
        fresh: whether what the slot held is forgotten; a new context begins.
        seed: seed of what is sampled in the slot from now on, so that an episode depends neither on the slot nor on
            the others; `None` continues the slot's random numbers, also in a new context of the same episode.
    """

    slot: int
    ids: tuple[int, ...]
    fresh: bool
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model sampled: ids up to and with the end token, if it came in time, and their log-probabilities."""

    ids: tuple[int, ...]
    log_probs: tuple[float, ...]


class Generator(Protocol):
    """A back end. Each slot keeps its conversation, sampled tokens included, from call to call."""

    slots: int
    context_length: int
    max_action_tokens: int

    def generate(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Complete the conversations of some slots, each at most once, in the order of the prompts."""
        ...

    def take_weights(self, model: Any) -> None:
        """Speak with the weights of `model` from now on; every conversation is forgotten."""
        ...

    def forget(self) -> None:
        """Forget every conversation, which frees the memory that they take."""
        ...

    def close(self) -> None:
        """Free what the back end holds; again does nothing."""
        ...


@runtime_checkable
class ContinuousGenerator(Generator, Protocol):
    """A back end whose actions end one by one: the next prompts join those that are still being completed.

    Attributes:
        speaking: slots whose conversations are being completed.
    """

    @property
    def speaking(self) -> Collection[int]: ...

    def submit(self, prompts: Sequence[Prompt]) -> None:
        """Begin to complete the conversations of some slots, of which none is being completed."""
        ...

    def advance(self) -> list[tuple[int, Completion]]:
        """Continue what was submitted for a moment; the slots whose actions have ended meanwhile, perhaps none."""
        ...

    def abandon(self) -> None:
        """Leave what is still being completed; afterwards those conversations may only begin afresh."""
        ...


def check_installed(kind: GeneratorKind) -> None:
    """Refuse a back end that cannot be imported.

    Raises:
        MissingDependencyError: it is not installed.
    """
    if kind == "vllm" and find_spec("vllm") is None:
        raise MissingDependencyError("vllm", "train,vllm")


def check_server(kind: GeneratorKind, server_url: str) -> None:
    """Refuse a server that cannot be used, where there is to be one.

    Raises:
        InvalidOptionError: no server answers there, or it was not started as it has to be.
    """
    if kind == "vllm-server":
        from baselines.rollout.vllm_server import VLLMServer

        VLLMServer(server_url).close()


def make_generator(
    kind: GeneratorKind,
    model: PreTrainedModel,
    end_id: int,
    *,
    slots: int,
    max_action_tokens: int,
    temperature: float,
    memory: float = 0.4,
    precision: Precision = "float32",
    server_url: str = "",
) -> Generator:
    """A back end that speaks with a policy.

    Args:
        kind: back end.
        model, end_id, slots, max_action_tokens, temperature: see `TransformersGenerator`.
        memory, precision: see `vllm_backend.share_engine`; `transformers` computes as the model does.
        server_url: address of a server; see `vllm_server.VLLMServer`.

    Raises:
        InvalidOptionError: there is no such server, or it was not started as it has to be.
        MissingDependencyError: the back end is not installed.
    """
    check_installed(kind)
    if kind != "transformers":
        from baselines.rollout.vllm_backend import Engine, VLLMGenerator, share_engine
        from baselines.rollout.vllm_server import VLLMServer

        engine: Engine = share_engine(model, memory, precision) if kind == "vllm" else VLLMServer(server_url)
        return VLLMGenerator(
            model, end_id, slots=slots, max_action_tokens=max_action_tokens, temperature=temperature, engine=engine
        )
    from baselines.rollout.transformers_backend import TransformersGenerator

    return TransformersGenerator(
        model, end_id, slots=slots, max_action_tokens=max_action_tokens, temperature=temperature
    )
