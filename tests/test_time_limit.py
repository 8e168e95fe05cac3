"""What takes too long ends, also where Python has no say."""

from __future__ import annotations

import subprocess
import sys
from itertools import count

import pytest

from textagent_gym.time_limit import TooSlowError, killed_after, time_limit


def test_a_block_that_takes_too_long_ends() -> None:
    with pytest.raises(TooSlowError), time_limit(0.1):
        for _ in count():  # In Python: a call into C, such as `sum(count())`, would see no signal.
            pass


def test_a_call_that_never_returns_ends_the_process_and_says_where() -> None:
    program = (
        "import hashlib\n"
        "from textagent_gym.time_limit import killed_after, time_limit\n"
        "with killed_after(0.5), time_limit(0.1):\n"
        "    hashlib.pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)\n"  # For an hour, in C.
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Timeout" in done.stderr
    assert "line 4" in done.stderr


def test_what_ends_in_time_is_not_killed() -> None:
    with killed_after(3600.0):
        pass
