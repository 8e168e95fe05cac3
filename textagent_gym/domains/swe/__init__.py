"""Software engineering: a repository with a mistake in it, a shell, and hidden tests that decide.

What others may use: the environments, what can be asked of them, and the sources of their tasks.
"""

from textagent_gym.domains.swe.env import SWEEnv, SWERepairEnv
from textagent_gym.domains.swe.options import InstancesOptions, RepairOptions, SWEOptions
from textagent_gym.domains.swe.packages import PACKAGES
from textagent_gym.domains.swe.rows.env import SWEInstancesEnv
from textagent_gym.domains.swe.rows.instances import Instances
from textagent_gym.domains.swe.tasks import BuiltTasks, RepairComplexity, RepairTask, SWETask

__all__ = [
    "PACKAGES",
    "BuiltTasks",
    "Instances",
    "InstancesOptions",
    "RepairComplexity",
    "RepairOptions",
    "RepairTask",
    "SWEEnv",
    "SWEInstancesEnv",
    "SWEOptions",
    "SWERepairEnv",
    "SWETask",
]
