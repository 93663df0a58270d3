"""Lists the fibers of every loop, with where each waits. In gdb:

    source scripts/gdb_fibers.py
    fibers          one line a fiber: address, name, state, step, plugin
    fibers -b       the same, each with a backtrace
"""

import gdb

WORD = gdb.lookup_type("unsigned long")
SAVED_RBP, SAVED_PC = 6, 7  # words above the saved stack pointer (switch_x86_64.S)


def text(value):
    return value.string() if int(value) != 0 else "-"


def place(pc):
    function = gdb.block_for_pc(pc)
    while function is not None and function.function is None:
        function = function.superblock
    line = gdb.find_pc_line(pc)
    name = function.function if function is not None else "??"
    return "%s (%s:%d)" % (name, line.symtab.filename, line.line) if line.symtab else str(name)


def backtrace(fiber):
    """Along the frame pointers, which every build keeps."""
    stack = fiber["context"]["saved"].cast(WORD.pointer())
    pc, frame = int(stack[SAVED_PC]), int(stack[SAVED_RBP])
    for depth in range(64):
        print("      #%d %s" % (depth, place(pc)))
        if frame == 0:
            return
        words = gdb.Value(frame).cast(WORD.pointer())
        frame, pc = int(words[0]), int(words[1])


def print_loop(loop, deep):
    print("loop %d: %d fibers" % (int(loop["index"]), int(loop["fibers_count"])))
    fiber = loop["youngest"]
    while int(fiber) != 0:
        state = str(fiber["state"]).replace("FIBER_", "").lower()
        print("  %#x %-20s %-8s step=%s plugin=%s%s" % (
            int(fiber), text(fiber["name"]), state, text(fiber["step"]), text(fiber["plugin"]),
            " cancelled" if fiber["is_cancelled"] else ""))
        if deep and state in ("parked", "queued"):
            backtrace(fiber)
        fiber = fiber["older"]


class Fibers(gdb.Command):
    """Lists the fibers of every loop; -b adds backtraces (x86-64)."""

    def __init__(self):
        super().__init__("fibers", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        before = gdb.selected_thread()
        for thread in sorted(gdb.selected_inferior().threads(), key=lambda t: t.num):
            thread.switch()
            loop = gdb.parse_and_eval("'loop.c'::current")
            if int(loop) != 0:
                print_loop(loop.dereference(), "-b" in argument.split())
        before.switch()


Fibers()
