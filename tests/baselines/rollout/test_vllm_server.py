"""Generation by a vLLM server in another process, beside the model itself; `make vllm` runs it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import gymnasium
import httpx
import pytest
import torch

from baselines import grpo, sft
from baselines.evaluation.policy_agent import PolicyAgents
from baselines.policy.adapters import add_adapters
from baselines.policy.models import load_policy
from baselines.rollout import Completion, Prompt, make_generator
from tests.baselines.rollout.test_vllm_backend import SLOTS, TOKENS, difference, needs_vllm, three_turns
from textagent_gym.agents import ChatAgents, ChatSettings, PolicySettings
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation import evaluate, replay

GOOD = {"logprobs_mode": "processed_logprobs", "generation_config": "vllm", "dtype": "torch.float32"}


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@contextlib.contextmanager
def serving(policy: Path, log: Path) -> Iterator[str]:
    """Address of a server that speaks with the weights of a policy."""
    port = free_port()
    # As `vllm serve`, which looks for a package of the name vllm, and that for CPUs has another.
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(policy), "--port", str(port)]
    command += ["--host", "127.0.0.1", "--dtype", "float32", "--enforce-eager", "--block-size", "32"]
    command += ["--logprobs-mode", "processed_logprobs", "--generation-config", "vllm"]
    command += ["--worker-extension-cls", "baselines.rollout.vllm_worker.WeightReceiver"]
    environment = {**os.environ, "VLLM_SERVER_DEV_MODE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "PYTHONPATH": os.getcwd()}
    with open(log, "w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(1_000):
            assert process.poll() is None, log.read_text()[-3_000:]
            try:
                httpx.get(f"{url}/health").raise_for_status()
                break
            except httpx.HTTPError:
                time.sleep(0.5)
        yield url
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture(scope="module")
def server(policy: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server that speaks with the weights of `policy`, until it is sent others."""
    with serving(policy, tmp_path_factory.mktemp("server") / "log.txt") as url:
        yield url


@needs_vllm
@pytest.mark.slow
@pytest.mark.parametrize("adapters", [False, True])
def test_log_probs_are_the_models_also_after_each_update(policy: Path, server: str, adapters: bool) -> None:
    model = load_policy(str(policy))[0].eval()
    if adapters:
        add_adapters(model, rank=4, alpha=8.0)
    generator = make_generator(
        "vllm-server", model, 0, slots=SLOTS, max_action_tokens=TOKENS, temperature=1.0, server_url=server
    )
    seeds = {0: 5, 1: 6, 2: 7, 3: 8}
    first = three_turns(generator, model, seeds)
    assert difference(model, first) < 1e-5
    again = three_turns(generator, model, seeds)  # Equal weights and seeds sample equal tokens.
    assert [again[slot][0] for slot in seeds] == [first[slot][0] for slot in seeds]
    assert three_turns(generator, model, {3: 6})[3][0] == first[1][0]  # Whichever slot plays, and whoever else.
    for _ in range(2):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) / 20)
        updated = three_turns(generator, model, seeds)
        assert difference(model, updated) < 1e-5
        assert difference(model, first) > 1e-2
    generator.close()
    generator.close()


@needs_vllm
@pytest.mark.slow
def test_a_chat_agent_plays_by_the_servers_protocol_what_the_saved_policy_plays(
    policy: Path, demos: Path, tmp_path: Path
) -> None:
    trained = tmp_path / "trained"
    sft.run(sft.Config(model=str(policy), demos=demos, out=trained, epochs=8, batch_size=8, learning_rate=5e-3))
    lights, tasks = "lights/Lights-v0", 12
    saved = PolicyAgents(str(trained), PolicySettings(temperature=0.0, max_action_tokens=8))
    expected = evaluate(gymnasium.make(lights, switches=2), saved, tasks=tasks)
    with serving(trained, tmp_path / "log.txt") as url:
        settings = ChatSettings(base_url=f"{url}/v1", temperature=0.0, max_tokens=8)
        played = evaluate(
            gymnasium.make(lights, switches=2), ChatAgents(str(trained), settings), tasks=tasks, workers=4
        )
    assert replay(played) == []
    for ours, theirs in zip(played.episodes, expected.episodes, strict=True):
        assert (ours.task, ours.actions, ours.success) == (theirs.task, theirs.actions, theirs.success)
        assert ours.tokens == theirs.tokens
    assert len({episode.actions for episode in played.episodes}) > 1


@needs_vllm
@pytest.mark.slow
def test_a_run_has_the_episodes_of_vllm_in_process_and_resumes(policy: Path, server: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "model": str(policy),
        "env": "lights/Lights-v0",
        "set": {"switches": 2, "max_turns": 3, "reward_density": "dense"},
        "groups": 2,
        "group_size": 4,
        "slots": 8,
        "max_action_tokens": 6,
        "learning_rate": 1e-3,
        "server_url": server,
        "eval_every": 1,
        "eval_tasks": 2,
        "staleness": 1,
        "checkpoint_every": 1,
    }
    for iterations in (1, 3):
        grpo.run(grpo.Config(**settings, generator="vllm-server", out=tmp_path / "server", iterations=iterations))
    grpo.run(grpo.Config(**settings, generator="vllm", out=tmp_path / "process", iterations=3))
    by_server, in_process = (
        [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("server", "process")
    )
    assert len(by_server) == 3
    for one, other in zip(by_server, in_process, strict=True):
        for name in ("return", "action_tokens", "turns", "episodes"):
            assert one[name] == other[name]
        assert one["entropy_estimate"] == pytest.approx(other["entropy_estimate"], abs=1e-4)


class Pretender(BaseHTTPRequestHandler):
    """A server that answers as told by `replies`: path to status and content."""

    replies: dict[str, tuple[int, Any]]

    def do_GET(self) -> None:
        status, content = self.replies.get(self.path.partition("?")[0], (404, {}))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def replies(**changes: tuple[int, Any]) -> dict[str, tuple[int, Any]]:
    basis: dict[str, tuple[int, Any]] = {
        "/v1/models": (200, {"data": [{"id": "served", "max_model_len": 50}]}),
        "/server_info": (200, {"vllm_config": {"model_config": GOOD}}),
        "/collective_rpc": (200, {"results": [None]}),
        "/reset_prefix_cache": (200, {"success": True}),
        "/v1/completions": (
            200,
            {"choices": [{"token_ids": [7, 0], "logprobs": {"token_logprobs": [-0.5, -0.25], "tokens": ["a", "b"]}}]},
        ),
    }
    return {**basis, **{f"/{name}": reply for name, reply in changes.items()}}


@pytest.fixture
def pretender() -> Iterator[tuple[str, type[Pretender]]]:
    handler = type("Handler", (Pretender,), {"replies": replies()})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}", handler
        http.shutdown()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"v1/models": (500, {})}, "no vLLM server answers there"),
        ({"v1/models": (200, {"data": []})}, "no vLLM server answers there"),
        ({"server_info": (404, {})}, "VLLM_SERVER_DEV_MODE=1"),
        (
            {"server_info": (200, {"vllm_config": {"model_config": {**GOOD, "logprobs_mode": "raw_logprobs"}}})},
            "--logprobs-mode processed_logprobs, not raw_logprobs",
        ),
        (
            {"server_info": (200, {"vllm_config": {"model_config": {**GOOD, "generation_config": "auto"}}})},
            "--generation-config vllm, not auto",
        ),
        ({"collective_rpc": (500, {})}, "--worker-extension-cls baselines.rollout.vllm_worker.WeightReceiver"),
    ],
)
def test_a_server_that_was_started_otherwise_is_refused(
    tiny: Path, pretender: tuple[str, type[Pretender]], changes: dict[str, Any], message: str
) -> None:
    url, handler = pretender
    handler.replies = replies(**changes)
    model, _ = load_policy(str(tiny))
    with pytest.raises(InvalidOptionError, match=f"server_url={url}: .*{message}"):
        make_generator("vllm-server", model, 0, slots=1, max_action_tokens=4, temperature=1.0, server_url=url)


def test_a_server_that_is_lost_is_named(tiny: Path, pretender: tuple[str, type[Pretender]]) -> None:
    url, handler = pretender
    model, _ = load_policy(str(tiny))
    generator = make_generator("vllm-server", model, 0, slots=1, max_action_tokens=4, temperature=1.0, server_url=url)
    assert generator.context_length == 50  # The server's, which is less than the model's.
    assert generator.generate([Prompt(0, (5, 6), True, 1)]) == [Completion((7, 0), (-0.5, -0.25))]
    handler.replies = replies(**{"v1/completions": (400, {"error": "too long"})})
    with pytest.raises(ConnectionError, match=rf"{url} refuses /v1/completions: .*too long"):
        generator.generate([Prompt(0, (5, 6), True, 1)])
    handler.replies = replies()  # What was asked before is not answered any more.
    assert generator.generate([Prompt(0, (5, 6), True, 1)]) == [Completion((7, 0), (-0.5, -0.25))]
    generator.close()
    with pytest.raises(InvalidOptionError, match=r"server_url=http://127\.0\.0\.1:1: no vLLM server answers there"):
        make_generator(
            "vllm-server", model, 0, slots=1, max_action_tokens=4, temperature=1.0, server_url="http://127.0.0.1:1"
        )
