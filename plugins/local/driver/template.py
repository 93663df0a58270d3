# A template: an interpreter of which boxes are copies (box/template.h). This text is put in front of driver.py's, which has
# the imports and constants. What is done here is done once, and not for each box.

SOCKET_FD = 3  # to the broker
LIBRARY_FD = 4  # what makes the copies
NOTE_MAX = 180  # bytes of what is told the operator
MODULES_MAX = 32


class NoTemplate(Exception):
    """Why there cannot be one."""


def tell(kind, text):
    _write(SOCKET_FD, kind + as_bytes(text))


def folder_line(path):
    try:
        st = _stat(path)
    except OSError:
        return f"0 0 {path}"
    return f"{st.st_mtime_ns} {st.st_ino} {path}"


def folder_lines(folders):
    """What changes when packages or the interpreter do."""
    import os

    library = os.path.dirname(os.__file__)
    return "\n".join(folder_line(path) for path in (sys.executable, library, *folders) if path and "\n" not in path)


def load_module(name):
    """A note if it could not be loaded. One that is not installed is none of many."""
    import importlib

    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name + ".").startswith(error.name + "."):
            return f"'{name}' is not installed"
        return f"'{name}' cannot be loaded: {error}"
    except BaseException as error:
        return f"'{name}' cannot be loaded: {_type(error).__name__}: {error}"
    if _len(_listdir("/proc/self/task")) > 1:
        raise NoTemplate(f"'preload': the module '{name}' starts threads, which cannot be copied; leave it out")
    return None


def load_modules(names):
    notes = [note for note in map(load_module, names[:MODULES_MAX]) if note is not None]
    return "'preload': " + "; ".join(notes) if notes else ""


def reseed():
    """What would be the same in all copies. Python's own random does it by itself."""
    numpy = sys.modules.get("numpy")
    try:
        numpy.random.seed()
    except Exception:  # no numpy, or one without it
        pass


def load_library():
    try:
        import ctypes
    except ImportError as error:
        raise NoTemplate(f"the interpreter has no ctypes: {error}")
    try:
        library = ctypes.PyDLL(f"/proc/self/fd/{LIBRARY_FD}")
        return library.template_serve, ctypes.pythonapi
    except (OSError, AttributeError) as error:
        raise NoTemplate(f"the interpreter cannot load the broker's library: {error}")


def prepare_template(names):
    """A driver that has all but its connection; what makes copies; the interpreter's own functions."""
    import gc

    driver = Driver()
    tell(b"F", folder_lines(driver.site.folders))
    serve, python = load_library()
    driver.prepare()
    note = load_modules(names)
    gc.collect()
    gc.freeze()  # so that no collection in a copy writes to all of it
    tell(b"R", note[:NOTE_MAX])
    return driver, serve, python


def run_template(names):
    """Returns in a box, with its driver."""
    try:
        driver, serve, python = prepare_template(names)
    except NoTemplate as error:
        tell(b"C", _str(error)[:NOTE_MAX])
        _exit(1)
    except BaseException as error:
        tell(b"C", f"{_type(error).__name__}: {error}"[:NOTE_MAX])
        _exit(1)
    python.PyOS_BeforeFork()
    serve()
    python.PyOS_AfterFork_Child()
    reseed()
    return driver
