"""Many environments at once: in this process, in worker processes, and whichever is ready first."""

from textagent_gym.vector.make import Wrap, env_maker, make_vec
from textagent_gym.vector.ready_first import ReadyFirstPool, Received
from textagent_gym.vector.vector_env import InProcessVectorEnv, ProcessVectorEnv
from textagent_gym.vector.workers import available_cores

__all__ = [
    "InProcessVectorEnv",
    "ProcessVectorEnv",
    "ReadyFirstPool",
    "Received",
    "Wrap",
    "available_cores",
    "env_maker",
    "make_vec",
]
