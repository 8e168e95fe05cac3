"""Runs pytest again and again, each time in a fork of one process, which has imported the libraries once.

Arguments: names of the libraries. Each line of the input: arguments of pytest, as JSON. The answer is two lines, the
process id of the fork, which leads a session of its own, and pytest's exit code. What pytest says is in the file `LOG`.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from typing import Any

LOG = "pytest.log"

if __name__ == "__main__":
    modules: dict[str, Any] = sys.modules
    modules["textagent_gym"] = None  # Else Gymnasium would have it registered; the forks are to import it.
    for library in sys.argv[1:]:
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    del modules["textagent_gym"]
    import hypothesis
    import pytest

    # Which text fails is enough; the smallest one would take longer to find than all other tests.
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("fork", phases=phases, derandomize=True, database=None)
    hypothesis.settings.load_profile("fork")
    for line in sys.stdin:
        child = os.fork()
        if not child:
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os._exit(int(pytest.main(json.loads(line))))
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
