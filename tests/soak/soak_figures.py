"""What a soak measures: the gateway's processes, those in boxes, memory, descriptors, mounts and control groups."""
import collections
import os
import pathlib
import re
import socket

FIELDS = ("seconds", "boxes", "in_boxes", "helpers", "gateway_kib", "gateway_fds", "helpers_kib", "helpers_fds", "mounts", "groups")


def read(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has ended meanwhile, or is another's
        return ""


def status_of(pid):
    return dict(line.split(":", 1) for line in read(f"/proc/{pid}/status").splitlines() if ":" in line)


def parents():
    """pid → parent of all processes but those that have ended."""
    found = {}
    for name in os.listdir("/proc"):
        stat = read(f"/proc/{name}/stat") if name.isdigit() else ""
        fields = stat.rpartition(")")[2].split()
        if fields and fields[0] not in "ZX":
            found[int(name)] = int(fields[1])
    return found


def below(pid):
    """All processes that the process has started, and theirs."""
    known, found, wave = parents(), [], [pid]
    while wave:
        wave = [child for child, parent in known.items() if parent in wave]
        found += wave
    return found


def is_in_box(pid):
    """Whether it is in a pid namespace below this one."""
    return len(status_of(pid).get("NSpid", "").split()) > 1


def is_first_of_box(pid):
    numbers = status_of(pid).get("NSpid", "").split()
    return len(numbers) > 1 and numbers[-1] == "1"


def private_kib(pid):
    return int((status_of(pid).get("RssAnon") or "0 kB").split()[0])


def fds(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def groups(makers):
    """Control groups whose names say that one of these processes made them, and those within."""
    count = 0
    for path, folders, _ in os.walk("/sys/fs/cgroup"):
        parts = [part.split(".") for part in path.split("/") if part.startswith("sandgate-local.")]
        count += any(len(part) > 2 and part[2] in makers for part in parts)
    return count


MAKERS = set()  # all processes that have made boxes so far, as text


def measure(gateway, seconds):
    family = below(gateway)
    MAKERS.update(str(pid) for pid in family if "local-broker" in read(f"/proc/{pid}/cmdline"))
    in_boxes = [pid for pid in family if is_in_box(pid)]
    helpers = [pid for pid in family if pid not in in_boxes]
    return {"seconds": round(seconds), "boxes": sum(map(is_first_of_box, in_boxes)), "in_boxes": len(in_boxes),
            "helpers": len(helpers), "gateway_kib": private_kib(gateway), "gateway_fds": fds(gateway),
            "helpers_kib": sum(map(private_kib, helpers)), "helpers_fds": sum(map(fds, helpers)),
            "mounts": len(read(f"/proc/{gateway}/mountinfo").splitlines()), "groups": groups(MAKERS)}


def allocated(path):
    """Bytes that a program with tests/support/memory_told.c has from its allocator."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(30)
        asked.connect(str(path))
        return int(asked.makefile().read())


def counted(pattern, log):
    """The pattern's last groups in the log, with how often each came and after how many milliseconds (its first group)."""
    found = collections.defaultdict(list)
    for ms, text in re.findall(pattern, read(log)):
        found[text].append(int(ms))
    return [(f"{text} (after {min(times)} to {max(times)} ms)", len(times)) for text, times in found.items()]


def growth(values, requests):
    """Bytes for each request between the first and the last."""
    return (values[-1] - values[0]) / max(1, requests[-1] - requests[0])
