# Threads of code, and its questions. This text is put in front of driver.py's, which has the imports and constants.


def no_input(prompt=""):
    sys.stdout.write(_str(prompt))
    raise EOFError("nobody can answer input() here: put the value into the code")


class Threads:
    """Which cell a thread is of: that which started it, or of which the thread is that did."""

    def __init__(self, control):
        self.control = control
        self.mark = _thread._local()
        for name in ("start_new_thread", "start_joinable_thread"):
            if hasattr(_thread, name):
                setattr(_thread, name, self.marking(_getattr(_thread, name)))

    def marking(self, start):
        def start_marked(function, *arguments, **named):
            nonce = self.nonce()

            def run(*given, **given_named):
                self.mark.nonce = nonce
                return function(*given, **given_named)

            return start(run, *arguments, **named)

        return start_marked

    def nonce(self):
        return _getattr(self.mark, "nonce", self.control.nonce)

    def is_left_over(self):
        """It was started by an earlier cell: what it prints is not of this one."""
        return self.nonce() != self.control.nonce
