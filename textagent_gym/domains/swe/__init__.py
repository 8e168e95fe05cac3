"""Software engineering: a repository with a mistake in it, a shell, and hidden tests that decide.

What others may use: the environments, what can be asked of them, and the sources of their tasks.
"""

from textagent_gym.domains.swe.env import SWEEnv
from textagent_gym.domains.swe.mutants.env import SWERepairEnv
from textagent_gym.domains.swe.mutants.packages import PACKAGES
from textagent_gym.domains.swe.mutants.tasks import BuiltTasks, MutantWorld
from textagent_gym.domains.swe.options import InstancesOptions, RepairOptions, SWEOptions
from textagent_gym.domains.swe.rows.env import SWEInstancesEnv
from textagent_gym.domains.swe.rows.instances import Instances, InstanceWorld
from textagent_gym.domains.swe.tasks import RepairComplexity, RepairTasks, RepairWorld

__all__ = [
    "PACKAGES",
    "BuiltTasks",
    "InstanceWorld",
    "Instances",
    "InstancesOptions",
    "MutantWorld",
    "RepairComplexity",
    "RepairOptions",
    "RepairTasks",
    "RepairWorld",
    "SWEEnv",
    "SWEInstancesEnv",
    "SWEOptions",
    "SWERepairEnv",
]
