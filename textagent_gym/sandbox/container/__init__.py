"""Sandboxes in containers of Docker and Podman."""

from textagent_gym.sandbox.container.engine import connect
from textagent_gym.sandbox.container.images import prepared, present
from textagent_gym.sandbox.container.sandbox import ContainerSandbox

__all__ = ["ContainerSandbox", "connect", "prepared", "present"]
