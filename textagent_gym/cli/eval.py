"""`textagent-gym eval`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from textagent_gym.agents.chat import ChatSettings
from textagent_gym.cli.environment import ChosenTasks, check_workers
from textagent_gym.cli.tables import Tally
from textagent_gym.errors import AgentFailedError, InvalidOptionError
from textagent_gym.registration import full_id, world_of
from textagent_gym.terminal import visible

if TYPE_CHECKING:
    from rich.console import Console

    from textagent_gym.evaluation import AgentMaker, EpisodeRecord

_NOTHING_PLAYED = "Complete already: nothing was played."
_NAMED = {"openai": "MODEL", "model": "FOLDER", "vllm": "FOLDER"}  # What follows these kinds of agents.
_FIXED_BY_A_SUITE = ("env", "set", "split", "tasks", "episodes", "seed")


@dataclass(frozen=True, kw_only=True)
class Eval(ChosenTasks):
    """Play an agent in a suite, or on the tasks of a split, print its success with a 95% interval, and keep the result.

    With --suite, everything that is played is fixed, so that results can be compared. With an ID and without --split,
    the test split is played, or another held-out one if there is no test split; the table names it.
    """

    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="[ID]", help_behavior_hint="")] = ""
    """Id of the environment, in place of a suite; `textagent-gym list` shows all. "textagent/" and "-v0" may be left
    out. An id of the form module:ID first imports the module, which registers the environment."""
    suite: Annotated[str | None, tyro.conf.arg(metavar="NAME", help_behavior_hint="")] = None
    """Suite that is played; `textagent-gym suites` shows all."""
    challenge: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")] = None
    """Challenge that is played, in place of a suite; see `textagent-gym challenge`."""
    agent: str = "admissible-random"
    """Agent that plays.
    random: any text. admissible-random: any action that would do something now.
    oracle: knows everything. expert: knows only what it has read, and in ScienceWorld a path to the goal.
    human: you, at the terminal.
    openai:MODEL: a model behind a server that speaks OpenAI's chat protocol, such as --base-url names.
    model:FOLDER: a saved policy on this machine, with --temperature (by default 1), --max-tokens (24) and --hints.
    vllm:FOLDER: the same, sampled by vLLM in this process; its result cannot be computed again.
    MODULE:FUNCTION: your own; the function or class makes an agent for an environment."""
    chat: Annotated[ChatSettings, tyro.conf.arg(name="")] = ChatSettings()  # noqa: RUF009 (it is frozen)
    episodes: int = 1
    """Number of episodes per task, each with another seed."""
    seed: int = 0
    """Seed of the evaluation; that of each episode follows from it, the task and the repetition."""
    workers: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """Number of processes that make the tasks, by default the number of processor cores; and number of episodes that
    are played at once, by default 1. The result is the same for every number, unless --episode-seconds ends
    episodes."""
    retry_broken: bool = False
    """Whether the broken episodes of a complete result are played again. Those that count stay as they are."""
    run_folder: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER", help_behavior_hint="")] = None
    """Folder of the training run that the agent comes from; its learning curve is kept with the result of a suite."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="PATH", help_behavior_hint="")] = None
    """Folder of the result of a suite, or result file of an ID, beside which everything that was said is kept.
    `textagent-gym verify` checks either. The same command resumes a run that was stopped."""

    def run(self) -> int:
        """Evaluate."""
        check_workers(self.workers)
        if self.agent == "human" and (self.workers or 1) > 1:
            raise InvalidOptionError("--agent human plays one episode at a time: leave out --workers")
        if self.run_folder is not None and self.suite is None and self.challenge is None:
            raise InvalidOptionError("--run-folder is for the result of a suite")
        agent = self._agent()
        if self.challenge is not None:
            return self._run_suite(self._challenged(self.challenge, agent), agent)
        return self._run_env(agent) if self.suite is None else self._run_suite(self.suite, agent)

    def _agent(self) -> AgentMaker:
        """What makes the agents."""
        from textagent_gym.agents import AGENTS, ChatAgents, PolicySettings, agents_of, policy_agents

        kind, _, name = self.agent.partition(":")
        if kind in _NAMED and not name:
            raise InvalidOptionError(
                f"--agent {self.agent} does not say which {_NAMED[kind].lower()}: {kind}:{_NAMED[kind]}"
            )
        if kind == "openai":
            return ChatAgents(name, self.chat)
        sampling = ChatSettings(
            temperature=self.chat.temperature, max_tokens=self.chat.max_tokens, hints=self.chat.hints
        )
        is_local = kind in ("model", "vllm")
        if self.chat != (sampling if is_local else ChatSettings()):
            raise InvalidOptionError(f"--agent {self.agent} asks no server: leave out the options of a chat server")
        if is_local:
            settings = PolicySettings(hints=self.chat.hints)
            if self.chat.temperature is not None:
                settings = replace(settings, temperature=self.chat.temperature)
            if self.chat.max_tokens is not None:
                settings = replace(settings, max_action_tokens=self.chat.max_tokens)
            slots = self.workers or 1
            return policy_agents(name, settings, slots, vllm=kind == "vllm")  # type: ignore[no-any-return]
        if self.agent in AGENTS:
            return self.agent
        if name:
            return agents_of(self.agent)
        named = (f"{kind}:{what}" for kind, what in _NAMED.items())
        choice = ", ".join((*AGENTS, *named, "MODULE:FUNCTION"))
        raise InvalidOptionError(f"agent {self.agent!r} does not exist; choose one of: {choice}")

    def _challenged(self, path: Path, agent: AgentMaker) -> str:
        """Name of the suite of a challenge.

        Raises:
            InvalidOptionError: the file holds none, or another policy or sampling was committed to.
        """
        from textagent_gym.evaluation import read_challenge
        from textagent_gym.evaluation.players import details_of

        challenge = read_challenge(path)
        if self.suite is not None:
            raise InvalidOptionError("a challenge names its suite: leave out --suite")
        broken = challenge.commitment.broken_by(details_of(agent))
        if broken:
            raise InvalidOptionError(
                f"{path} is of the policy {challenge.commitment.policy[:12]}: give its folder as --agent model:FOLDER, "
                f"with its sampling ({broken})"
            )
        return challenge.suite.name

    def _run_suite(self, name: str, agent: AgentMaker) -> int:
        """Play a suite."""
        from textagent_gym.cli.progress import bar
        from textagent_gym.cli.tables import suite_table, table_console
        from textagent_gym.evaluation import check_suite, evaluate_suite, suite_of
        from textagent_gym.evaluation.episode import base_of
        from textagent_gym.evaluation.learning import curve_of
        from textagent_gym.evaluation.results import records_of

        defaults = Eval()
        changed = [option for option in _FIXED_BY_A_SUITE if getattr(self, option) != getattr(defaults, option)]
        if changed:
            names = ", ".join("the ID" if option == "env" else f"--{option}" for option in changed)
            raise InvalidOptionError(f"a suite fixes what is played: leave out {names}")
        suite = suite_of(name)
        if self.out is None:
            raise InvalidOptionError("--suite needs --out FOLDER, which keeps the result")
        if self.retry_broken and not self.out.exists():
            raise InvalidOptionError(f"--retry-broken is for a result that is there, and {self.out} does not exist")
        if self.run_folder is not None:
            curve_of(self.run_folder)  # Whatever is wrong with it is said before anything is played.
        check_suite(suite, agent, self.out)
        for part in suite.parts:
            with closing(part.make()) as env, bar(f"Making tasks of {part.name}", part.tasks) as done:
                base = base_of(env)
                base.tasks.prepare(
                    base.split, range(part.first, part.first + part.tasks), workers=self.workers, progress=done
                )
        files = [records_of(self.out, part) for part in suite.parts]
        complete = _times(files)
        with self._playing(suite.episodes, str(self.out)) as ended:
            result = evaluate_suite(
                suite,
                agent,
                self.out,
                workers=self.workers or 1,
                run=self.run_folder,
                retry_broken=self.retry_broken,
                ended=ended,
            )
        console = table_console()
        if _times(files) == complete:
            console.print(_NOTHING_PLAYED)
        console.print(suite_table(result))
        status = _print_notes(console, result.episodes, result.details)
        console.print(f"Result: {self.out}   Check it with: textagent-gym verify {self.out}", soft_wrap=True)
        return status

    def _run_env(self, agent: AgentMaker) -> int:
        """Play the tasks of one environment."""
        from textagent_gym.cli.tables import evaluation_table, table_console
        from textagent_gym.evaluation import SUITES, check_evaluation, evaluate
        from textagent_gym.evaluation.players import details_of
        from textagent_gym.evaluation.results import as_played
        from textagent_gym.evaluation.runner import keeps_conversations
        from textagent_gym.files import check_writable, part_of

        if not self.env:
            raise InvalidOptionError("say what to play: an ID, or --suite NAME")
        if self.env in SUITES:
            raise InvalidOptionError(f"{self.env} is a suite: --suite {self.env} --out FOLDER")
        if self.out is not None:
            check_writable(self.out)
            _check_alone(self.out)
        env, count = self.make()
        env = as_played(env, details_of(agent))
        asked: dict[str, Any] = {"tasks": count, "episodes": self.episodes, "seed": self.seed, "path": self.out}
        try:
            check_evaluation(env, agent, **asked)
            self.prepare(env, count)
            kept = "" if self.out is None else str(part_of(self.out))
            files = [] if self.out is None else [self.out]
            complete = _times(files)
            with self._playing(count * self.episodes, kept) as ended:
                result = evaluate(
                    env,
                    agent,
                    **asked,
                    retry_broken=self.retry_broken,
                    workers=self.workers or 1,
                    conversations=self.out is not None and keeps_conversations(self.out),
                    ended=ended,
                )
        finally:
            env.close()
        console = table_console()
        if files and _times(files) == complete:
            console.print(_NOTHING_PLAYED)
        console.print(evaluation_table(result))
        status = _print_notes(console, result.episodes, result.details)
        if self.out is not None:
            trust = "" if world_of(full_id(self.env)) else " --trust"  # Else it is not imported.
            check = f"textagent-gym verify {self.out}{trust}"
            console.print(f"Result file: {self.out}   Check it with: {check}", soft_wrap=True)
        return status

    @contextmanager
    def _playing(self, total: int, kept: str) -> Iterator[Callable[[EpisodeRecord], None]]:
        """A bar over the episodes; the function it gives is called with each that has ended.

        Args:
            total: number of episodes.
            kept: path of what is kept when Ctrl-C ends the block; "" for nothing.
        """
        from textagent_gym.cli.progress import bar

        tally = Tally()
        try:
            # A bar would redraw over what a person is typing.
            with nullcontext() if self.agent == "human" else bar("Playing", total) as show:

                def ended(episode: EpisodeRecord) -> None:
                    note = tally.add(episode)
                    if show is not None:
                        show(tally.played, note)

                yield ended
        except (KeyboardInterrupt, AgentFailedError) as stop:
            if not tally.played:
                raise
            where = f"kept in {kept}; the same command resumes" if kept else "and not kept, for want of --out"
            state = f"Stopped after {tally.played} of {total} episodes, {where}."
            raise type(stop)(f"{stop} {state}".strip()) from (stop if isinstance(stop, Exception) else None)


def _check_alone(file: Path) -> None:
    """Raise `InvalidOptionError` for a result file whose conversations would lie where those of another one do."""
    from textagent_gym.evaluation.records import conversations_of
    from textagent_gym.files import part_of

    other = file.with_suffix("") if file.suffix == ".jsonl" else file.with_name(f"{file.name}.jsonl")
    if other.is_file() or part_of(other).is_file():
        raise InvalidOptionError(
            f"{file} and {other} would both keep what was said in {conversations_of(file)}: choose another --out"
        )


def _times(files: Sequence[Path]) -> list[int]:
    """When each of some files was written, in nanoseconds; those that are missing are left out."""
    return [file.stat().st_mtime_ns for file in files if file.exists()]


def _print_notes(console: Console, episodes: Sequence[EpisodeRecord], details: Mapping[str, Any]) -> int:
    """Say which episodes are left out, and where cost is not known; returns the exit status, 1 if all are left out.

    Args:
        console: terminal that is printed to.
        episodes: episodes of the result.
        details: facts about the agent.
    """
    if details.get("price_output") is not None and any(each.cost is None for each in episodes if not each.broken):
        console.print("The server does not count tokens, so cost is not known.", style="yellow")
    answers = [action for episode in episodes for action in episode.actions]
    for number, what in (
        (sum(not action.strip() for action in answers), "were empty"),
        (sum(episode.cut or 0 for episode in episodes), "were cut at a limit of tokens (see --max-tokens)"),
        (sum(episode.refused or 0 for episode in episodes), "were refused by the model or withheld by its server"),
    ):
        if 10 * number > len(answers):
            console.print(f"{number} of {len(answers)} answers {what}: they count as the agent's own.", style="yellow")
    broken = [episode for episode in episodes if episode.broken]
    if broken:
        console.print(
            visible(
                f"{len(broken)} of {len(episodes)} episodes are left out: their world broke, or their agent could not "
                f"answer, again and again ({broken[0].broken}). The same command with --retry-broken plays them again."
            ),
            style="yellow",
            markup=False,
        )
    return 1 if len(broken) == len(episodes) else 0
