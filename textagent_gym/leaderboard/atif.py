"""Trajectories in the Agent Trajectory Interchange Format, ATIF v1.7, which Harbor, NeMo Gym and Phoenix read.

Source: https://github.com/harbor-framework/harbor/blob/main/rfcs/0001-trajectory-format.md
"""

from __future__ import annotations

from typing import Any

from textagent_gym.evaluation.records import OPTIONAL
from textagent_gym.leaderboard.conversations import Conversation, call_of, whole

FORMAT = "ATIF-v1.7"


def atif(conversation: Conversation) -> dict[str, Any]:
    """An episode as an ATIF document: values of JSON.

    The first observation is a step of the user, and each later one the observation of the action before it. Rewards are
    in `extra`: of each step, and their sum among the final metrics; so are text beside the call of a function, how an
    answer ended that is not whole, and cost, whose currency nobody knows. Half a surrogate pair becomes a replacement
    character.
    """
    steps: list[dict[str, Any]] = []
    for source, text in (("system", conversation.instructions), ("user", conversation.observations[0])):
        if text or source == "user":
            steps.append({"step_id": len(steps) + 1, "source": source, "message": text})
    record = conversation.record
    turns = zip(record.actions, record.rewards, conversation.observations[1:], conversation.remarks, strict=True)
    for action, reward, observation, remarks in turns:
        answer: dict[str, Any] = {"content": observation}
        step: dict[str, Any] = {
            "step_id": len(steps) + 1,
            "source": "agent",
            "message": action,
            "observation": {"results": [answer]},
            "extra": {"reward": reward, **{name: remarks[name] for name in ("text", "ended") if name in remarks}},
        }
        if "reasoning" in remarks:
            step["reasoning_content"] = remarks["reasoning"]
        call = call_of(remarks)
        if call is not None:
            answer["source_call_id"] = f"call-{len(steps) + 1}"
            function = {"function_name": call[0], "arguments": call[1]}
            step["tool_calls"] = [{"tool_call_id": answer["source_call_id"], **function}]
        steps.append(step)
    details = conversation.details
    model = details.get("model")
    agent: dict[str, Any] = {
        "name": conversation.agent or "(no name)",
        "version": str(details.get("revision") or "unknown"),
    }
    if isinstance(model, str):
        agent["model_name"] = model
    if details:
        agent["extra"] = details
    metrics: dict[str, Any] = {
        "total_steps": len(steps),
        "extra": {
            "return": record.total_reward,
            **{
                name: getattr(record, name)
                for name in ("success", "terminated", "truncated", "invalid_actions", "score", "broken", "stopped")
            },
            **{name: value for name in OPTIONAL if (value := getattr(record, name)) is not None},
        },
    }
    if record.tokens is not None:
        metrics["total_completion_tokens"] = record.tokens
    if record.tokens_read is not None:
        metrics["total_prompt_tokens"] = record.tokens_read
    document = {
        "schema_version": FORMAT,
        "session_id": conversation.run,
        "trajectory_id": conversation.id,
        "agent": agent,
        "steps": steps,
        "final_metrics": metrics,
        "extra": {
            "suite": conversation.suite,
            "part": conversation.part,
            "task": record.task,
            "task_type": record.task_type,
            "seed": record.seed,
            "complexity": record.complexity,
        },
    }
    values: dict[str, Any] = whole(document)
    return values
