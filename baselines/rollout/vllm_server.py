"""Generation by a vLLM server, on other devices or another machine than the trainer's.

trainer  -- ids and a seed per conversation -->  /v1/completions   server
         <-- sampled ids, log-probabilities ---
         -- weights, in parts --------------->   /collective_rpc   `vllm_worker.WeightReceiver` in each of its workers

The server is vLLM's own, told to load the receiver:

    VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --logprobs-mode processed_logprobs --generation-config vllm \\
        --worker-extension-cls baselines.rollout.vllm_worker.WeightReceiver

Whoever reaches a server in this mode can change its weights: keep it in a network of your own.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Hashable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from queue import Empty, SimpleQueue
from typing import Any

import httpx
import torch
from accelerate import PartialState
from safetensors.torch import save
from transformers import PreTrainedModel

from baselines.policy.adapters import merged_weights
from baselines.rollout.backend import Completion
from textagent_gym.errors import InvalidOptionError

_PART = 64 * 2**20
"""Bytes of weights per message, which bounds the memory for its text; a larger tensor goes by itself."""
_AT_ONCE = 256  # Conversations that are asked for at once, vLLM's own largest batch.
_NEEDED = {
    "logprobs_mode": "processed_logprobs",  # Those at the temperature.
    "generation_config": "vllm",  # Not the model's own, whose top-p and penalties would change what is sampled.
}
_SAMPLING = {"logprobs": 0, "return_token_ids": True, "ignore_eos": True, "top_p": 1.0, "top_k": 0, "min_p": 0.0}
_MOMENT = 0.01  # Seconds without a completion after which environments have the word again.
_SECONDS = 600.0  # After which a server that does not answer counts as lost.


class VLLMServer:
    """A vLLM server that speaks with the weights of a policy.

    Args:
        url: address of the server, such as http://localhost:8000.

    Attributes:
        context_length: largest number of tokens that the server reads at once.

    Raises:
        InvalidOptionError: no server answers there, or it was not started as this module says.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._client = httpx.Client(base_url=url, timeout=_SECONDS, limits=httpx.Limits(max_connections=_AT_ONCE))
        try:
            served = self._client.get("/v1/models").raise_for_status().json()["data"][0]
            info = self._client.get("/server_info", params={"config_format": "json"})
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, LookupError) as error:
            raise InvalidOptionError(f"server_url={url}: no vLLM server answers there ({error})") from error
        if info.status_code == httpx.codes.NOT_FOUND:
            raise InvalidOptionError(f"server_url={url}: start the server with VLLM_SERVER_DEV_MODE=1")
        model = info.raise_for_status().json()["vllm_config"]["model_config"]
        for name, value in _NEEDED.items():
            if model[name] != value:
                option = name.replace("_", "-")
                raise InvalidOptionError(
                    f"server_url={url}: start the server with --{option} {value}, not {model[name]}"
                )
        if self._client.post("/collective_rpc", json={"method": "can_take_weights"}).is_error:
            raise InvalidOptionError(
                f"server_url={url}: start the server with "
                "--worker-extension-cls baselines.rollout.vllm_worker.WeightReceiver"
            )
        self._name = str(served["id"])
        self.context_length = int(served["max_model_len"])
        self._dtype: torch.dtype = getattr(torch, str(model["dtype"]).removeprefix("torch."))
        self._threads = ThreadPoolExecutor(_AT_ONCE, "vllm-server")
        self._ended: SimpleQueue[Future[Completion]] = SimpleQueue()

    def take_weights(self, model: PreTrainedModel) -> None:
        """Speak with the weights of a model; of several processes, whose weights are the same, one sends them."""
        state = PartialState()
        if state.is_main_process:
            for part in _parts(merged_weights(model), self._dtype):
                self._post("/collective_rpc", {"method": "take_weights", "args": [part]})
            self.forget()
        state.wait_for_everyone()

    def forget(self) -> None:
        """Drop the cache."""
        self._post("/reset_prefix_cache", {})

    def submit(self, context: list[int], settings: dict[str, Any]) -> Hashable:
        """Begin to complete a context with some sampling settings; the key of its completion."""
        asked = self._threads.submit(self._complete, context, settings)
        asked.add_done_callback(self._ended.put)
        return asked

    def advance(self) -> list[tuple[Hashable, Completion]]:
        """The completions that have ended; none if there are none within a moment.

        Raises:
            ConnectionError: the server does not answer any more, or refuses a context.
        """
        ended: list[tuple[Hashable, Completion]] = []
        try:
            ended.append(self._next(_MOMENT))
            while True:
                ended.append(self._next(0.0))
        except Empty:
            return ended

    def abandon(self, keys: Collection[Hashable]) -> None:
        """Leave what has these keys; what has been sent to the server ends first."""
        asked = [key for key in keys if isinstance(key, Future)]
        for one in asked:
            one.cancel()
        wait(asked)
        self._ended = SimpleQueue()

    def close(self) -> None:
        """End the connection; the server stays."""
        self._threads.shutdown()
        self._client.close()

    def _next(self, seconds: float) -> tuple[Future[Completion], Completion]:
        asked = self._ended.get(timeout=seconds)
        return asked, asked.result()

    def _complete(self, context: list[int], settings: dict[str, Any]) -> Completion:
        asked = {"model": self._name, "prompt": context, **_SAMPLING, **settings}
        [choice] = self._post("/v1/completions", asked).json()["choices"]
        return Completion(tuple(choice["token_ids"]), tuple(choice["logprobs"]["token_logprobs"]))

    def _post(self, path: str, content: dict[str, Any]) -> httpx.Response:
        try:
            answer = self._client.post(path, json=content)
        except httpx.HTTPError as error:
            raise ConnectionError(f"the vLLM server at {self._url} does not answer any more ({error!r})") from error
        if answer.is_error:
            raise ConnectionError(f"the vLLM server at {self._url} refuses {path}: {answer.text[:500]}")
        return answer


def _parts(weights: Iterable[tuple[str, torch.Tensor]], dtype: torch.dtype) -> Iterator[str]:
    """The weights as texts: safetensors in base 64."""
    part: dict[str, torch.Tensor] = {}
    size = 0
    for name, weight in weights:
        tensor = weight.to("cpu", dtype).contiguous()
        if part and size + tensor.nbytes > _PART:
            yield b64encode(save(part)).decode()
            part, size = {}, 0
        part[name] = tensor
        size += tensor.nbytes
    yield b64encode(save(part)).decode()
