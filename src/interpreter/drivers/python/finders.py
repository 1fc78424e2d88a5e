"""How modules are found, beside Python's own ways: some are completed, or stood in for, as they are imported."""
import os
import sys

core = core  # given by the driver
part = core.part


class Watcher:
    """Sees some modules being imported, and completes them: first among the finders."""

    watched = {"matplotlib", "matplotlib.pyplot", "PIL.Image", "IPython", "IPython.display",
               "IPython.core.display_functions", "IPython.core.getipython"}
    busy = set()

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in cls.watched or name in cls.busy:
            return None
        from importlib.util import find_spec
        cls.busy.add(name)
        try:
            spec = find_spec(name)
        except ImportError:
            spec = None
        finally:
            cls.busy.discard(name)
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return spec
        return part("imports").completed(name, spec)


class LateSite:
    """Finds what a user installed for himself since the kernel began: Python looks for that folder at its start."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        import site
        folder = site.getusersitepackages()
        if path is not None or not site.ENABLE_USER_SITE or folder in sys.path or not os.path.isdir(folder):
            return None
        from importlib.machinery import PathFinder
        site.addsitedir(folder)
        return PathFinder.find_spec(name)


class Substitute:
    """Stands in for IPython, and what libraries want beside it, where it is not installed: the last finder."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] in ("IPython", "nbformat"):
            return part("imports").substitute(name)
        return None


sys.meta_path.insert(0, Watcher)
sys.meta_path += [LateSite, Substitute]
