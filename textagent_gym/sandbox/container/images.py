"""Images of containers: those that are here or can be pulled, and one with a toolbox over another one."""

from __future__ import annotations

import contextlib
import io
import tarfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from textagent_gym.sandbox.base import SandboxError
from textagent_gym.sandbox.container.engine import engine_errors
from textagent_gym.sandbox.toolbox import TOOLS, Toolbox, packages_folder

if TYPE_CHECKING:
    import docker


@cache
def present(engine: docker.DockerClient, image: str) -> str:
    """The id of an image, pulled if it is not here.

    Raises:
        SandboxError: it is available nowhere.
    """
    import docker.errors

    try:
        try:
            pulled = engine.images.get(image)
        except docker.errors.ImageNotFound:
            pulled = engine.images.pull(image)
    except engine_errors() as error:
        raise SandboxError(
            f"the image {image} is neither here nor can it be pulled: {error}. TEXTAGENT_SWE_IMAGE names another."
        ) from error
    return str(pulled.id)


def prepared(engine: docker.DockerClient, base: str, toolbox: Toolbox) -> str:
    """The id of an image that has a toolbox over a base, built when it is first asked for.

    Raises:
        MissingDependencyError: a package of the toolbox is not installed here.
        SandboxError: the image cannot be built.
    """
    return _built(engine, base, packages_folder(toolbox))


@cache
def _built(engine: docker.DockerClient, base: str, tools: Path) -> str:
    tag = f"textagent-swe:{tools.name}-{base.rpartition(':')[2][:12]}"
    import docker.errors

    try:
        with contextlib.suppress(docker.errors.ImageNotFound):
            return str(engine.images.get(tag).id)
        context = io.BytesIO()
        with tarfile.open(fileobj=context, mode="w") as tar:
            tar.add(tools, "packages")
            for name, text, mode in (
                (
                    "Dockerfile",
                    f"FROM {base}\nCOPY packages {TOOLS}/packages\nCOPY python {TOOLS}/bin/python\n",
                    0o644,
                ),
                ("python", '#!/bin/sh\nexec python3 "$@"\n', 0o755),
            ):
                member = tarfile.TarInfo(name)
                member.size, member.mode = len(text), mode
                tar.addfile(member, io.BytesIO(text.encode()))
        context.seek(0)
        image, _ = engine.images.build(fileobj=context, custom_context=True, tag=tag, rm=True, network_mode="none")
    except engine_errors() as error:
        raise SandboxError(f"no image can be built on {base}: {error}") from error
    return str(image.id)
