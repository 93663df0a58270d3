# What the site module does at an interpreter's start, done late. This text is put in front of driver.py's, which has the
# imports and constants: both are one program.

def find_elsewhere(name, path, target):
    """What the finders that are there now say of a module."""
    for finder in list(sys.meta_path):
        spec = finder.find_spec(name, path, target)
        if spec is not None:
            return spec
    return None


def leave(finder):
    """False if it had left already."""
    try:
        sys.meta_path.remove(finder)
    except ValueError:
        return False
    return True


def find_packages():
    """The folders of packages of this interpreter."""
    import os
    import site

    site.venv(set())  # of a virtual environment, if it is one
    return [folder for folder in site.getsitepackages() if os.path.isdir(folder)]


class Site:
    """What the site module does at an interpreter's start. The folders of packages and the names exit, quit and help are
    there from the beginning. The .pth files in those folders, whose code can take long, and sitecustomize come while
    there is nothing to do, or as soon as a module is not found without them."""

    def __init__(self):
        import _sitebuiltins

        builtins.exit = _sitebuiltins.Quitter("exit", "Ctrl-D (i.e. EOF)")
        builtins.quit = _sitebuiltins.Quitter("quit", "Ctrl-D (i.e. EOF)")
        builtins.help = _sitebuiltins._Helper()
        self.folders = PACKAGES if PACKAGES is not None else find_packages()
        for folder in self.folders:
            if folder not in sys.path:
                sys.path.append(folder)
        sys.meta_path.append(self)

    def finish(self):
        if not leave(self):
            return
        try:
            import site

            site.setcopyright()
            for folder in self.folders:
                if folder in sys.path:
                    site.addsitedir(folder)
            site.execsitecustomize()
        except BaseException:  # no reason not to run code
            pass

    def find_spec(self, name, path=None, target=None):
        if path is not None or name in _getattr(sys, "stdlib_module_names", ()):
            return None
        self.finish()
        return find_elsewhere(name, path, target)
