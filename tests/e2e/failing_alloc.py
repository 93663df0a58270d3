"""The switch of support/failing_alloc.c, which makes allocations of a gateway fail."""
import mmap
import os
import struct

from harness import BUILD, E2E

LIBRARY = BUILD / "tests" / "e2e" / "failing_alloc.so"
FOR_GOOD = 1 << 40


class FailingAlloc:
    """A page that the test and the gateway share: countdown, failing, count, failed."""

    def __init__(self, path):
        self.path = path
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.ftruncate(fd, mmap.PAGESIZE)
        self.page = mmap.mmap(fd, mmap.PAGESIZE)
        os.close(fd)

    def environment(self):
        """The sanitizer's library is not the first one then, which it is told to bear."""
        return {"LD_PRELOAD": str(LIBRARY), "FAILING_ALLOC": self.path,
                "ASAN_OPTIONS": "verify_asan_link_order=0:" + E2E.environment()["ASAN_OPTIONS"]}

    def _put(self, index, value):
        struct.pack_into("=q", self.page, 8 * index, value)

    def _get(self, index):
        return struct.unpack_from("=q", self.page, 8 * index)[0]

    def fail(self, nth, many=1):
        """The n-th allocation from now on fails, and those behind it, `many` in all."""
        self._put(3, 0)
        self._put(1, many)
        self._put(0, nth)

    def heal(self):
        """Memory is there again; how many allocations failed meanwhile."""
        self._put(0, 0)
        return self.failed

    def restart(self):
        self._put(2, 0)

    @property
    def failed(self):
        """Allocations that failed since fail()."""
        return self._get(3)

    @property
    def count(self):
        """Allocations since restart()."""
        return self._get(2)
