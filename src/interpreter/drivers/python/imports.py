"""What happens when a cell imports matplotlib, PIL or IPython: they are completed, or stood in for."""
import sys
from importlib.machinery import ModuleSpec

core = core  # given by the driver


# --- modules that are there


def completed(name, spec):
    """The module as it is, and then a little more."""
    loader = spec.loader
    execute = loader.exec_module

    def exec_module(module):
        execute(module)
        COMPLETE[name](module)

    try:
        loader.exec_module = exec_module
    except AttributeError:
        pass  # not a loader that files come with
    return spec


def choose_backend(matplotlib):
    import os
    if "MPLBACKEND" not in os.environ:
        matplotlib.use("Agg")


def complete_pyplot(pyplot):
    figures = core.part("figures")
    pyplot.show = figures.show_all
    core.before_end.append(figures.show_all)


def complete_images(module):
    """An image that is saved is also shown."""
    save = module.Image.save

    def save_and_show(image, fp, *arguments, **options):
        save(image, fp, *arguments, **options)
        if isinstance(fp, (str, bytes)) or hasattr(fp, "__fspath__"):
            core.part("display").display(image)

    save_and_show.__doc__ = save.__doc__
    module.Image.save = save_and_show


def complete_display(module):
    module.display = core.display
    module.clear_output = clear_output


def complete_shell(module):
    module.get_ipython = core.get_ipython


COMPLETE = {
    "matplotlib": choose_backend,
    "matplotlib.pyplot": complete_pyplot,
    "PIL.Image": complete_images,
    "IPython": complete_shell,
    "IPython.core.getipython": complete_shell,
    "IPython.display": complete_display,
    "IPython.core.display_functions": complete_display,
}


# --- IPython where there is none


def clear_output(wait=False):
    """What was sent is with the client already."""


class Loader:
    """Makes the modules of IPython that cells and libraries import, see the part "ipython_modules"."""

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        core.part("ipython_modules").fill(module)


def substitute(name):
    if name != "nbformat" and is_installed():
        return None
    modules = core.part("ipython_modules")
    if name not in modules.FILLERS:
        return None
    return ModuleSpec(name, Loader, is_package=name in modules.PACKAGES)


def is_installed():
    module = sys.modules.get("IPython")
    return module is not None and getattr(module, "__spec__", None) is not None \
        and module.__spec__.loader is not Loader
