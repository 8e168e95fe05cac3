"""Generation with `transformers` on any device, the key-value cache continued from turn to turn.

All slots share one cache whose columns grow together; a mask says which columns a slot's conversation uses:

    slot 0   x x x x . . x x x . x x        x  a token of this conversation, at its own position
    slot 1   x x x x x x x . . . x x        .  a hole: another slot had more to say in that call
    slot 2   . . . . . . x x x x x x        a new conversation began here: everything before it is a hole

Holes cost memory and time, so the cache is packed when they are too many.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import DynamicCache, PreTrainedModel

from baselines.rollout.backend import Completion, Request

_PACK_AT = 1.5  # Pack when the cache is that many times as wide as its longest conversation.


class TransformersGenerator:
    """Samples from a causal language model.

    Args:
        model: the policy; its weights may change between calls as long as every slot then begins afresh.
        end_id: token that ends an action.
        slots: number of conversations.
        max_action_tokens: tokens of an action at most, the end token included.
        temperature: above 0; or 0 for the most likely token always.
        seed: of the sampling.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        end_id: int,
        *,
        slots: int,
        max_action_tokens: int = 24,
        temperature: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.end_id = end_id
        self.slots = slots
        self.max_action_tokens = max_action_tokens
        self.temperature = temperature
        self.context_length = int(model.config.max_position_embeddings)
        self.random = torch.Generator(device=model.device).manual_seed(seed)
        self._forget()

    @torch.inference_mode()
    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """See `Generator`; sampled tokens become part of the slot's conversation, as do the ids of the request."""
        if all(request.fresh for request in requests) and not self._others_speak(requests):
            self._forget()
        device = self.model.device
        new: list[list[int]] = [[] for _ in range(self.slots)]
        for request in requests:
            if request.fresh:
                self._mask[request.slot] = False
                self._unread[request.slot] = []
            # The last sampled token has not been read by the model yet.
            new[request.slot] = [*self._unread[request.slot], *request.ids]
            self._unread[request.slot] = []
        speaking = torch.zeros(self.slots, dtype=torch.bool, device=device)
        speaking[[request.slot for request in requests]] = True
        logits = self._read(new)
        sampled: list[list[int]] = [[] for _ in range(self.slots)]
        log_probs: list[list[float]] = [[] for _ in range(self.slots)]
        for step in range(self.max_action_tokens):
            token, log_prob = self._sample(logits)
            ids, values = token.tolist(), log_prob.tolist()
            rows = speaking.nonzero().flatten().tolist()
            for row in rows:
                sampled[row].append(ids[row])
                log_probs[row].append(values[row])
                self._unread[row] = [ids[row]]
            speaking = speaking & (token != self.end_id)
            if step + 1 == self.max_action_tokens or not bool(speaking.any()):
                break
            going = set(speaking.nonzero().flatten().tolist())
            following = [[ids[row]] if row in going else [] for row in range(self.slots)]
            for row in going:
                self._unread[row] = []
            logits = self._read(following)
        self._pack()
        return [Completion(tuple(sampled[r.slot]), tuple(log_probs[r.slot])) for r in requests]

    def _others_speak(self, requests: Sequence[Request]) -> bool:
        """Whether a slot that no request names holds a conversation."""
        named = {request.slot for request in requests}
        return any(bool(self._mask[slot].any()) for slot in range(self.slots) if slot not in named)

    def _forget(self) -> None:
        self._cache = DynamicCache(config=self.model.config)
        self._mask = torch.zeros((self.slots, 0), dtype=torch.bool, device=self.model.device)
        self._unread: list[list[int]] = [[] for _ in range(self.slots)]

    def _read(self, new: list[list[int]]) -> torch.Tensor:
        """Add ids to each slot's conversation and return the logits after its last one, shape (slots, vocabulary)."""
        device = self.model.device
        width = max(len(ids) for ids in new)
        ids = torch.zeros((self.slots, width), dtype=torch.int64)
        used = torch.zeros((self.slots, width), dtype=torch.bool)
        for row, some in enumerate(new):
            if some:  # On the right, so that the last column holds everybody's last token.
                ids[row, width - len(some) :] = torch.tensor(some)
                used[row, width - len(some) :] = True
        used = used.to(device)
        lengths = self._mask.sum(1, keepdim=True)
        positions = (lengths + used.cumsum(1) - 1).clamp(min=0)
        self._mask = torch.cat((self._mask, used), 1)
        output = self.model(
            input_ids=ids.to(device),
            attention_mask=self._mask.long(),
            position_ids=positions,
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return output.logits[:, -1].float()

    def _sample(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """A token a slot and its log-probability at the temperature, both of shape (slots,)."""
        if self.temperature == 0.0:
            token = logits.argmax(-1)
            return token, logits.log_softmax(-1).gather(-1, token[:, None]).squeeze(-1)
        log_probs = (logits / self.temperature).log_softmax(-1)
        token = torch.multinomial(log_probs.exp(), 1, generator=self.random)
        return token.squeeze(-1), log_probs.gather(-1, token).squeeze(-1)

    def _pack(self) -> None:
        """Move every conversation to the left of the cache, closing its holes."""
        longest = int(self._mask.sum(1).max())
        if self._mask.shape[1] <= max(64, _PACK_AT * longest):
            return
        # A stable sort brings the used columns to the front without changing their order.
        order = torch.sort((~self._mask).long(), dim=1, stable=True).indices[:, :longest]
        for layer in self._cache.layers:
            index = order[:, None, :, None].expand(-1, layer.keys.shape[1], -1, layer.keys.shape[3])
            layer.keys = layer.keys.gather(2, index)
            layer.values = layer.values.gather(2, index)
        self._mask = self._mask.gather(1, order)
