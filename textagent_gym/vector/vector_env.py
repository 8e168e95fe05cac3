"""Vector environments for text: all environments act in turn in this process, or at the same time in worker processes.

Both are one `gymnasium.vector.VectorEnv`; they differ only in who performs a batch of requests. Observations are a
tuple of strings, which is what Gymnasium makes of a batch of texts, without its copying of arrays.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from gymnasium import Space, spaces
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from numpy.typing import NDArray

from textagent_gym.errors import InvalidOptionError
from textagent_gym.vector.infos import batch_infos
from textagent_gym.vector.messages import Answer, Call, Failure, Reply, Request, Reset, SetAttribute, Step, perform
from textagent_gym.vector.worker import MakeEnv
from textagent_gym.vector.workers import Workers, available_cores

Stepped = tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class _VectorEnv(VectorEnv[Any, Any, NDArray[Any]]):
    """Everything but the question of who performs a batch of requests."""

    def _describe(
        self,
        both: Sequence[tuple[Space[Any], Space[Any]]],
        metadata: dict[str, Any],
        render_mode: str | None,
        autoreset_mode: str | AutoresetMode,
    ) -> None:
        if any(pair != both[0] for pair in both):
            raise InvalidOptionError(f"the environments must have equal spaces, got {both}")
        self.num_envs = len(both)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = render_mode
        self.single_observation_space, self.single_action_space = both[0]
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._observations: list[Any] = [None] * self.num_envs
        self._ended = np.zeros(self.num_envs, dtype=np.bool_)

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """Random generators of the environments; copies of them where they live in other processes."""
        return self.get_attr("np_random")

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """Seeds of the environments' random generators, as given to the last `reset` that had one."""
        return self.get_attr("np_random_seed")

    @abstractmethod
    def _perform(self, requests: Sequence[tuple[int, Request]]) -> dict[int, Reply]:
        """Have every request done, in any order. Raises what an environment raised."""

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | Sequence[dict[str, Any] | None] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every environment, or in some.

        Args:
            seed: First seed: environment n is seeded with `seed + n`; or a sequence with one for each.
            options: Options for all environments, or a sequence with one for each. `{"reset_mask": mask}`, an array of
                bools of shape (num_envs,), resets only those where it is true, with the options that remain.

        Returns:
            The observations, a tuple of `num_envs` texts, and the infos, batched as Gymnasium does.

        Raises:
            InvalidOptionError: a sequence or mask has the wrong length, or a mask has no true value.
            TypeError: a mask is not an array of bools.
        """
        mask = np.ones(self.num_envs, dtype=np.bool_)
        if isinstance(options, dict) and "reset_mask" in options:
            options = dict(options)
            mask = options.pop("reset_mask")
            self._check_mask(mask)
        if seed is None or isinstance(seed, int | np.integer):
            seeds = [None if seed is None else int(seed) + slot for slot in range(self.num_envs)]
        else:
            seeds = self._one_each("seed", seed)
        each = [options] * self.num_envs if options is None or isinstance(options, dict) else list(options)
        each = self._one_each("options", each)
        slots = [int(slot) for slot in np.flatnonzero(mask)]
        answers = self._ask([(slot, Reset(seeds[slot], each[slot])) for slot in slots])
        for slot in slots:
            self._observations[slot] = answers[slot].observation
            self._ended[slot] = False
        return self._batch(), batch_infos({slot: answers[slot].info for slot in slots}, self.num_envs)

    def step(self, actions: Any) -> Stepped:
        """Act in every environment.

        Args:
            actions: Actions, one per environment; for text any sequence or array of strings.

        Returns:
            Observations, a tuple of `num_envs` texts; rewards, float64, terminations and truncations, bool, each of
            shape (num_envs,); and infos, batched as Gymnasium does. What follows the end of an episode is
            Gymnasium's autoreset mode: "NextStep" (the next step resets and ignores the action), "SameStep" (the
            observation is the next episode's, the last one is in `infos["final_obs"]`) or "Disabled".

        Raises:
            InvalidOptionError: the number of actions is wrong.
            gymnasium.error.ResetNeeded: "Disabled", and an episode that has ended was not reset.
        """
        each = self._one_each("actions", self._actions(actions))
        over = self._ended.copy()
        if self.autoreset_mode is AutoresetMode.DISABLED and over.any():
            raise ResetNeeded(
                f"The episodes of environments {np.flatnonzero(over).tolist()} have ended: "
                'call reset(options={"reset_mask": mask}) before the next step.'
            )
        answers = self._ask([(n, Reset() if over[n] else Step(each[n])) for n in range(self.num_envs)])
        rewards = np.array([answers[n].reward for n in range(self.num_envs)], dtype=np.float64)
        terminations = np.array([answers[n].terminated for n in range(self.num_envs)], dtype=np.bool_)
        truncations = np.array([answers[n].truncated for n in range(self.num_envs)], dtype=np.bool_)
        self._ended = terminations | truncations
        infos = {n: answers[n].info for n in range(self.num_envs)}
        if self.autoreset_mode is AutoresetMode.SAME_STEP and self._ended.any():
            begun = self._ask([(int(n), Reset()) for n in np.flatnonzero(self._ended)])
            for n in begun:
                final = {"final_obs": answers[n].observation, "final_info": answers[n].info}
                infos[n] = {**final, **begun[n].info}
            answers = {**answers, **begun}
            self._ended = np.zeros(self.num_envs, dtype=np.bool_)
        for n in range(self.num_envs):
            self._observations[n] = answers[n].observation
        return self._batch(), rewards, terminations, truncations, batch_infos(infos, self.num_envs)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every environment, or read an attribute, of its wrappers or of itself."""
        replies = self._perform([(n, Call(name, args, kwargs)) for n in range(self.num_envs)])
        return tuple(cast(Any, replies[n]).value for n in range(self.num_envs))

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Read an attribute of every environment."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of every environment: a list or tuple gives each its own value, else all get the same."""
        each = self._one_each("values", values if isinstance(values, list | tuple) else [values] * self.num_envs)
        self._perform([(n, SetAttribute(name, value)) for n, value in enumerate(each)])

    def render(self) -> tuple[Any, ...] | None:
        """What each environment's `render` returns."""
        return self.call("render")

    def _ask(self, requests: Sequence[tuple[int, Request]]) -> dict[int, Answer]:
        if self.closed:
            raise ClosedEnvironmentError("The environments have been closed.")
        return cast(dict[int, Answer], self._perform(requests))

    def _check_mask(self, mask: Any) -> None:
        # The words are Gymnasium's own, as are the types of the exceptions.
        name = "`options['reset_mask']` must"
        if not isinstance(mask, np.ndarray):
            raise TypeError(f"{name} be a numpy array, got {type(mask)}")
        if mask.shape != (self.num_envs,):
            raise InvalidOptionError(f"{name} have shape `({self.num_envs},)`, got {mask.shape}")
        if mask.dtype != np.bool_:
            raise TypeError(f"{name} have `dtype=np.bool_`, got {mask.dtype}")
        if not mask.any():
            raise InvalidOptionError(
                f"{name} contain a boolean array with at least one True value, got reset_mask={mask}"
            )

    def _actions(self, actions: Any) -> Sequence[Any]:
        if isinstance(self.single_action_space, spaces.Text):
            if isinstance(actions, str):
                raise InvalidOptionError(f"actions must be {self.num_envs} strings, got one string")
            return list(actions)
        return list(iterate(self.action_space, actions))

    def _one_each(self, name: str, values: Sequence[Any]) -> list[Any]:
        if len(values) != self.num_envs:
            raise InvalidOptionError(f"{name} must have {self.num_envs} values, one per environment, got {len(values)}")
        return list(values)

    def _batch(self) -> Any:
        space = self.single_observation_space
        if isinstance(space, spaces.Text | spaces.Sequence):
            return tuple(self._observations)
        return concatenate(space, self._observations, cast(Any, create_empty_array(space, self.num_envs)))


class InProcessVectorEnv(_VectorEnv):
    """Environments that act one after the other, in this process: the least overhead where a step is fast.

    Args:
        env_fns: Functions that make the environments.
        autoreset_mode: "NextStep", "SameStep" or "Disabled"; see `step`.

    Example:
        >>> import gymnasium
        >>> envs = InProcessVectorEnv([lambda: gymnasium.make("lights/Lights-v0", switches=1)] * 2)
        >>> envs.reset(seed=0)[0]
        ('Turn on all 1 lights.\\nred: off', 'Turn on all 1 lights.\\nred: off')
        >>> observations, rewards, *_ = envs.step(["press red", "sing"])
        >>> observations
        ('red: on', 'Nothing happens.')
        >>> rewards
        array([1., 0.])
    """

    def __init__(
        self, env_fns: Sequence[MakeEnv], autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP
    ) -> None:
        if not env_fns:
            raise InvalidOptionError("env_fns must hold at least one function that makes an environment")
        self.envs = [make() for make in env_fns]
        both = [(env.observation_space, env.action_space) for env in self.envs]
        self._describe(both, dict(self.envs[0].metadata), self.envs[0].render_mode, autoreset_mode)

    def _perform(self, requests: Sequence[tuple[int, Request]]) -> dict[int, Reply]:
        return {slot: perform(self.envs[slot], request) for slot, request in requests}

    def close_extras(self, **kwargs: Any) -> None:
        """Close the environments; called by `close`."""
        for env in getattr(self, "envs", ()):
            env.close()


class ProcessVectorEnv(_VectorEnv):
    """Environments in worker processes, several in each: for worlds whose step costs more than a message (0.1 ms).

    A worker that dies in mid-episode, or answers too late, is replaced: its episodes are truncated, with their last
    observation, reward 0.0 and the reason in `info["broken"]`, and the others continue unharmed. An environment's
    exception is raised here, with the worker's traceback as its cause. After a step that was interrupted (Ctrl-C),
    call `reset`; a worker that still hangs is replaced then.

    Args:
        env_fns: Functions that make the environments; sent to the workers with `cloudpickle`.
        workers: Number of processes; by default one per processor core, at most one per environment.
        autoreset_mode: "NextStep", "SameStep" or "Disabled"; see `step`.
        context: "forkserver", "spawn" or "fork"; by default the first one that exists here. As always with the first
            two, a script starts what it does under `if __name__ == "__main__":`.
        time_limit: Seconds that a worker may take over a step, or a reset, of all its environments; `None` for no
            limit. No argument of `step`, since Gymnasium's wrappers would not pass it.

    Raises:
        WorkerError: workers die again and again before they have made their environments.

    Example:
        >>> from textagent_gym.vector import make_vec
        >>> envs = make_vec("lights/Lights-v0", 2, kind="process", workers=1, switches=1)
        >>> _ = envs.reset(seed=0)
        >>> envs.step(["press red", "sing"])[0]
        ('red: on', 'Nothing happens.')
        >>> envs.close()
    """

    def __init__(
        self,
        env_fns: Sequence[MakeEnv],
        workers: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        context: str | None = None,
        time_limit: float | None = None,
    ) -> None:
        count = min(len(env_fns), available_cores()) if workers is None else workers
        self._workers = Workers(env_fns, count, "process", context, time_limit)
        try:
            self._describe(self._workers.spaces, self._workers.metadata, self._workers.render_mode, autoreset_mode)
        except BaseException:
            self._workers.close()
            raise

    @property
    def worker_pids(self) -> tuple[int | None, ...]:
        """Process ids of the workers, in the order of their environments; a replaced worker has another one."""
        return self._workers.pids

    def _perform(self, requests: Sequence[tuple[int, Request]]) -> dict[int, Reply]:
        replies: dict[int, Reply] = {}
        try:
            self._workers.send(requests)
            while len(replies) < len(requests):
                replies.update(self._workers.wait())
        except BaseException:
            self._workers.forget()
            raise
        for slot in sorted(replies):
            reply = replies[slot]
            if isinstance(reply, Failure):
                reply.throw(slot)
        return replies

    def close_extras(self, **kwargs: Any) -> None:
        """End the workers; called by `close`."""
        if hasattr(self, "_workers"):
            self._workers.close()
