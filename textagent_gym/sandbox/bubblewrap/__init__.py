"""The sandbox of bubblewrap: namespaces of this machine's kernel, without a daemon."""

from textagent_gym.sandbox.bubblewrap.sandbox import BubblewrapSandbox, find_bwrap

__all__ = ["BubblewrapSandbox", "find_bwrap"]
