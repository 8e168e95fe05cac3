"""Generation with vLLM, in this process or by a server; the prefixes of conversations stay cached between turns.

vLLM is asked for ids and answers with ids: it never sees a text. Its weights are the policy's at every moment: they are
handed over in memory, and what was cached of them is dropped. In this process it begins with the policy's configuration
alone, which is all that is written to disk.

Actions end one by one, and the next prompt of a conversation joins those that are still being completed (continuous
batching), so that a short action does not wait for a long one.

Each action is sampled with a seed of its own, which follows from the episode's seed and the number of its actions, so
that an episode depends neither on its slot nor on the others. Batches are composed anew in each run, so equal runs
have log-probabilities that are equal to rounding.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Hashable, Sequence
from functools import partial
from itertools import count
from operator import itemgetter
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import torch
from transformers import PreTrainedModel

from baselines.policy.adapters import merged_weights
from baselines.policy.models import context_length
from baselines.rollout.backend import Completion, Prompt
from baselines.settings.config import Precision

_BLOCK = 32
"""Tokens per block of the cache on a CPU. Only whole blocks are used again, and vLLM's own choice is 128."""
_SEEDS = 2**31
"""Number of seeds that vLLM may be given."""


class Engine(Protocol):
    """vLLM, wherever it runs."""

    context_length: int

    def take_weights(self, model: PreTrainedModel) -> None:
        """Speak with the weights of a model."""
        ...

    def forget(self) -> None:
        """Drop the cache."""
        ...

    def submit(self, context: list[int], settings: dict[str, Any]) -> Hashable:
        """Begin to complete a context with some sampling settings; the key of its completion."""
        ...

    def advance(self) -> list[tuple[Hashable, Completion]]:
        """Continue for a moment; the completions that have ended, perhaps none."""
        ...

    def abandon(self, keys: Collection[Hashable]) -> None:
        """Leave what has these keys."""
        ...

    def close(self) -> None:
        """Free what this user of the engine holds."""
        ...


class _InProcess:
    """vLLM with the configuration of a policy, and with whatever weights it is given."""

    def __init__(self, model: PreTrainedModel, memory: float, precision: Precision) -> None:
        self.context_length = context_length(model)
        vllm = _import_vllm()
        from vllm.sampling_params import RequestOutputKind

        on_cpu = model.device.type == "cpu"
        if on_cpu:
            import vllm._custom_ops as operators

            # Packed linear layers cannot be given weights, and keep old ones where embeddings are tied.
            operators._supports_onednn = False
        self._is_guest = torch.distributed.is_initialized()  # Of processes that somebody else has brought together.
        several = self._is_guest and torch.distributed.get_world_size() > 1
        set_num_threads = torch.set_num_threads
        with tempfile.TemporaryDirectory() as folder:
            model.config.save_pretrained(folder)
            self._llm = vllm.LLM(
                model=folder,
                skip_tokenizer_init=True,
                load_format="dummy",
                dtype=precision,
                max_model_len=self.context_length,
                gpu_memory_utilization=memory,
                enable_prefix_caching=True,
                block_size=_BLOCK if on_cpu else None,
                enforce_eager=on_cpu,
                logprobs_mode="processed_logprobs",
                distributed_executor_backend="external_launcher" if several else None,
                seed=0,
            )
        torch.set_num_threads = set_num_threads  # vLLM makes it do nothing, for threads that are made later too.
        self._make_prompt = vllm.inputs.tokens_input
        self._make_settings = partial(
            vllm.SamplingParams,
            logprobs=0,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
            skip_clone=True,  # Each request has its own.
        )
        self._keys = map(str, count())
        self.users = 0

    def take_weights(self, model: PreTrainedModel) -> None:
        """Speak with the weights of a model."""

        def load(theirs: Any) -> None:
            theirs.load_weights(merged_weights(model))

        self._llm.apply_model(load)
        self.forget()

    def forget(self) -> None:
        """Drop the cache."""
        self._llm.reset_prefix_cache()

    def submit(self, context: list[int], settings: dict[str, Any]) -> str:
        """Begin to complete a context with some sampling settings; the key of its completion."""
        key = next(self._keys)
        self._llm.llm_engine.add_request(key, self._make_prompt(context), self._make_settings(**settings))
        return key

    def advance(self) -> list[tuple[Hashable, Completion]]:
        """One token for each context; the completions that have ended."""
        ended: list[tuple[Hashable, Completion]] = []
        for output in self._llm.llm_engine.step():
            sampled = output.outputs[0]
            values = [at[token].logprob for token, at in zip(sampled.token_ids, sampled.logprobs, strict=True)]
            ended.append((output.request_id, Completion(tuple(sampled.token_ids), tuple(values))))
        return ended

    def abandon(self, keys: Collection[Hashable]) -> None:
        """Leave what has these keys."""
        self._llm.llm_engine.abort_request([str(key) for key in keys])

    def close(self) -> None:
        """End vLLM and free its memory with its last user. It would part a trainer's processes: there, it stays."""
        self.users -= 1
        if not self.users and not self._is_guest:
            self._llm.llm_engine.engine_core.shutdown()


_engines: WeakKeyDictionary[PreTrainedModel, _InProcess] = WeakKeyDictionary()
"""Engines in this process: generators of one policy share one, as training and its evaluations do."""


def share_engine(model: PreTrainedModel, memory: float, precision: Precision) -> Engine:
    """The engine of a policy in this process.

    Args:
        model: the policy.
        memory: share of a GPU's memory for vLLM's weights and cache. On a CPU the cache has `VLLM_CPU_KVCACHE_SPACE`
            GiB instead, an environment variable that is 1 by default here.
        precision: precision of its weights and of what it computes.
    """
    if model not in _engines or not _engines[model].users:
        _engines[model] = _InProcess(model, memory, precision)
    _engines[model].users += 1
    return _engines[model]


class VLLMGenerator:
    """Samples from a causal language model with vLLM.

    Args:
        model: the policy.
        end_id: id of the token that ends an action.
        slots: number of conversations.
        max_action_tokens: largest number of tokens per action, the end token included.
        temperature: sampling temperature; 0 takes the likeliest token.
        engine: vLLM; closed with the generator.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        end_id: int,
        *,
        slots: int,
        max_action_tokens: int = 24,
        temperature: float = 1.0,
        engine: Engine,
    ) -> None:
        self.end_id = end_id
        self.slots = slots
        self.max_action_tokens = max_action_tokens
        self.temperature = temperature
        self.context_length = min(context_length(model), engine.context_length)
        self._streams = [np.random.default_rng(0) for _ in range(slots)]
        self._contexts: list[list[int]] = [[] for _ in range(slots)]
        self._speaking: dict[Hashable, int] = {}  # The slot of each completion that the engine is at.
        self._engine: Engine | None = engine
        self.take_weights(model)

    def take_weights(self, model: PreTrainedModel) -> None:
        """See `Generator`."""
        self.abandon()
        self._running.take_weights(model)
        self.forget()

    def forget(self) -> None:
        """See `Generator`."""
        self.abandon()
        self._running.forget()
        self._contexts = [[] for _ in range(self.slots)]

    def close(self) -> None:
        """See `Generator`."""
        self.abandon()
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def generate(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """See `Generator`."""
        assert not self._speaking, "what was submitted has not ended"
        completions: dict[int, Completion] = {}
        try:
            self.submit(prompts)
            while self._speaking:
                completions.update(self.advance())
        finally:  # After an error or Ctrl-C, some are left.
            self.abandon()
        return [completions[prompt.slot] for prompt in prompts]

    @property
    def speaking(self) -> list[int]:
        """See `ContinuousGenerator`."""
        return list(self._speaking.values())

    def submit(self, prompts: Sequence[Prompt]) -> None:
        """See `ContinuousGenerator`."""
        for prompt in prompts:
            if prompt.fresh:
                self._contexts[prompt.slot] = []
            if prompt.seed is not None:
                self._streams[prompt.slot] = np.random.default_rng(prompt.seed)
            self._contexts[prompt.slot] += prompt.ids
            key = self._running.submit(list(self._contexts[prompt.slot]), self._settings(prompt.slot))
            self._speaking[key] = prompt.slot

    def advance(self) -> list[tuple[int, Completion]]:
        """See `ContinuousGenerator`."""
        mine = [(key, completion) for key, completion in self._running.advance() if key in self._speaking]
        ended = [(self._speaking.pop(key), completion) for key, completion in mine]
        for slot, completion in ended:
            self._contexts[slot] += completion.ids
        return sorted(ended, key=itemgetter(0))

    def abandon(self) -> None:
        """See `ContinuousGenerator`."""
        if self._speaking:
            self._running.abandon(self._speaking)
            self._speaking.clear()

    @property
    def _running(self) -> Engine:
        assert self._engine is not None, "the generator is closed"
        return self._engine

    def _settings(self, slot: int) -> dict[str, Any]:
        return {
            "temperature": self.temperature,
            "max_tokens": self.max_action_tokens,
            "stop_token_ids": [self.end_id],
            "seed": int(self._streams[slot].integers(_SEEDS)),
        }


def _import_vllm() -> Any:
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # Weights are handed over within this process.
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    import vllm

    return vllm
