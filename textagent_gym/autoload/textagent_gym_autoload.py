"""Registers the text environments as soon as Gymnasium itself is imported.

Gymnasium 1.0 removed its plugin entry point, so an installed package is unknown to `gymnasium.make` until somebody
imports it. The wheel installs this file beside a `.pth` file, which Python runs at start-up: all it does then is to
put one finder on `sys.meta_path`. When `gymnasium` is imported, the finder lets it load and then registers the ids.
Only the standard library is imported here, so a program that never uses Gymnasium pays a few microseconds.
"""

import importlib.abc
import importlib.util
import sys


class _RegisterAfterGymnasium(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_then_register(module):  # type: ignore[no-untyped-def]
            load(module)
            if "textagent_gym" in sys.modules:
                return  # It is importing Gymnasium: it registers everything itself, once worlds can import it.
            try:
                from textagent_gym.registration import register_all
            except ImportError:  # Uninstalled by hand, this file left behind: Gymnasium must still import.
                return
            register_all()

        spec.loader.exec_module = load_then_register  # type: ignore[method-assign]
        return spec


if "gymnasium" not in sys.modules:
    sys.meta_path.insert(0, _RegisterAfterGymnasium())
