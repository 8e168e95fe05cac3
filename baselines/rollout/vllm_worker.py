"""What the workers of a vLLM server load, so that a trainer can give them weights; see `vllm_server`."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from safetensors.torch import load
from vllm import _custom_ops
from vllm.platforms import current_platform

if current_platform.is_cpu():
    # Packed linear layers cannot be given weights, and keep old ones where embeddings are tied.
    _custom_ops._supports_onednn = False


class WeightReceiver:
    """Methods that vLLM adds to each of its workers (`--worker-extension-cls`)."""

    model_runner: Any

    def can_take_weights(self) -> None:
        """Do nothing: a worker without this method refuses the call."""

    def take_weights(self, part: str) -> None:
        """Load some of the model's weights.

        Args:
            part: tensors by the names that the model has in `transformers`, as safetensors in base 64.
        """
        self.model_runner.get_model().load_weights(load(b64decode(part)).items())
