"""Results as logs of Inspect (`.eval`), which its viewer and its tools read. Written by Inspect's own package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from textagent_gym.errors import MissingDependencyError
from textagent_gym.evaluation.records import OPTIONAL
from textagent_gym.leaderboard.conversations import Conversation, call_of, whole

SCORER = "textagent_gym"


def write_inspect_log(path: Path, episodes: Sequence[Conversation]) -> None:
    """Write the episodes of a part as a log.

    A task is a sample, and a repetition an epoch. The conversation is the sample's messages, with the functions that a
    model called natively; the reward of an action is in the metadata of the message that answers it. The score is 1 for
    success. Tokens and the settings of the sampling are where Inspect has them.

    Args:
        path: file to write; its name ends with ".eval".
        episodes: episodes of one part of a suite, at least one.

    Raises:
        MissingDependencyError: inspect-ai is not installed.
    """
    try:
        from inspect_ai import log, model
    except ImportError as error:
        raise MissingDependencyError("inspect_ai", "inspect") from error
    episodes = [_whole(conversation) for conversation in episodes]
    first = episodes[0]
    tasks = list(dict.fromkeys(conversation.record.task for conversation in episodes))
    spec = log.EvalSpec(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        task=f"{first.suite}/{first.part}",
        dataset=log.EvalDataset(name=f"{first.suite}/{first.part}", samples=len(tasks), sample_ids=tasks),
        model=_model(first),
        model_generate_config=_config(first.details, model),
        config=log.EvalConfig(epochs=max(conversation.repeat for conversation in episodes) + 1),
        metadata={"agent": first.agent, "details": first.details},
    )
    success = fmean(conversation.record.success for conversation in episodes)
    accuracy = log.EvalMetric(name="accuracy", value=success)
    results = log.EvalResults(
        total_samples=len(episodes),
        completed_samples=len(episodes),
        scores=[log.EvalScore(name=SCORER, scorer=SCORER, metrics={"accuracy": accuracy})],
    )
    samples = [_sample(conversation, log, model) for conversation in episodes]
    path.parent.mkdir(parents=True, exist_ok=True)
    usage = [sample.model_usage.get(_model(first)) for sample in samples]
    stats = log.EvalStats(model_usage={} if None in usage else {_model(first): sum(usage[1:], usage[0])})
    whole_log = log.EvalLog(status="success", eval=spec, results=results, samples=samples, stats=stats)
    log.write_eval_log(whole_log, path, format="eval")


def _model(conversation: Conversation) -> str:
    return f"textagent-gym/{conversation.agent or 'no-name'}"


def _config(details: Mapping[str, Any], model: Any) -> Any:
    """Settings of the sampling, as Inspect calls them; those that Inspect does not know are only in the metadata."""
    from pydantic import ValidationError

    config: dict[str, Any] = {}
    for name in ("temperature", "top_p", "max_tokens", "reasoning_effort"):
        try:
            model.GenerateConfig.model_validate({name: details.get(name)}, strict=True)
        except ValidationError:
            continue
        config[name] = details.get(name)
    return model.GenerateConfig(**config)


def _whole(conversation: Conversation) -> Conversation:
    """A conversation whose texts any JSON can hold."""
    record = conversation.record
    texts = {name: whole(getattr(conversation, name)) for name in ("agent", "details", "instructions")}
    return replace(
        conversation,
        **texts,
        record=replace(
            record,
            actions=tuple(whole(record.actions)),
            stopped=whole(record.stopped),
            served=None if record.served is None else tuple(whole(record.served)),
        ),
        observations=tuple(whole(conversation.observations)),
        remarks=tuple(whole(conversation.remarks)),
    )


def _sample(conversation: Conversation, log: Any, model: Any) -> Any:
    """An episode as a sample; `log` and `model` are Inspect's modules of these names."""
    from inspect_ai.scorer import Score
    from inspect_ai.tool import ToolCall

    record = conversation.record
    system = [model.ChatMessageSystem(content=conversation.instructions)] if conversation.instructions else []
    opening = [*system, model.ChatMessageUser(content=conversation.observations[0])]
    messages = list(opening)
    turns = zip(record.actions, record.rewards, conversation.observations[1:], conversation.remarks, strict=True)
    for action, reward, observation, remarks in turns:
        reasoning = [model.ContentReasoning(reasoning=remarks["reasoning"])] if "reasoning" in remarks else []
        content = [*reasoning, model.ContentText(text=action)] if reasoning else action
        metadata = {name: remarks[name] for name in ("text", "ended") if name in remarks} or None
        written = {"content": content, "model": conversation.agent, "metadata": metadata}
        answered = {"content": observation, "metadata": {"reward": reward}}
        call = call_of(remarks)
        if call is None:
            messages.append(model.ChatMessageAssistant(**written))
            messages.append(model.ChatMessageUser(**answered))
        else:
            name, arguments, number = *call, f"call-{len(messages)}"
            called = ToolCall(id=number, function=name, arguments=arguments)
            messages.append(model.ChatMessageAssistant(**written, tool_calls=[called]))
            messages.append(model.ChatMessageTool(**answered, tool_call_id=number, function=name))
    output, read = record.tokens, record.tokens_read
    counted = {"input_tokens": read or 0, "output_tokens": output or 0, "total_tokens": (read or 0) + (output or 0)}
    names = ("terminated", "truncated", "stopped", "invalid_actions", "score", "seed", "task_type", "complexity")
    score = Score(
        value=int(record.success),
        answer=record.actions[-1] if record.actions else "",
        metadata={"return": record.total_reward},
    )
    return log.EvalSample(
        id=record.task,
        epoch=conversation.repeat + 1,
        input=opening,
        target="",
        messages=messages,
        output=model.ModelOutput.from_content(conversation.agent, record.actions[-1] if record.actions else ""),
        scores={SCORER: score},
        metadata={
            "turns": record.turns,
            **{name: getattr(record, name) for name in names},
            **{name: value for name in OPTIONAL if (value := getattr(record, name)) is not None},
        },
        model_usage={} if output is None else {_model(conversation): model.ModelUsage(**counted)},
        total_time=record.seconds,
    )
