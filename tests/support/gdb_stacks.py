# SPDX-License-Identifier: GPL-2.0-only
"""
The native stacks of a process as gdb unwinds them, at moments that someone else chooses.

  GDB_STACKS_PID=PID GDB_STACKS_IN=FIFO GDB_STACKS_OUT=FIFO gdb -nx -batch -x gdb_stacks.py

gdb stays attached. It prints to OUT one line of JSON each time the process has stopped, which is at
once and then whenever the process gets signal 62, and waits for a line from IN, while the process
stands still: "go" lets it run up to the next stop, anything else, or the end of IN, lets it go for
good.

  {"threads": [{"tid": TID, "pcs": ["0x…", …], "why": WHY}, …], "ns": TIME IT TOOK}

pcs are the thread's pc, then the return address of each frame, outwards. Where the code at a pc has
no call frame information gdb would go on by guessing from the machine code: there pcs end, and WHY
says what was met:

  "outermost"    nothing: the stack is complete
  "jit"          code of no file is at the last of them
  "gdb has not read FILE"
  "no FDE"       code of a file is at the last of them, and no call frame information of it
  else           why gdb could not go on

Call frame information is looked up in .eh_frame_hdr as the process has it in memory, without gdb.
"""
import json
import os
import struct
import time

import gdb

SIGNAL = 62
LIMIT = 3000  # frames


class FrameInformation:
    """Which addresses of a process have an FDE."""

    PT_GNU_EH_FRAME = 0x6474E550

    def __init__(self, pid):
        self.pid = pid
        self.memory = open("/proc/%d/mem" % pid, "rb", buffering=0)
        self.exe = os.readlink("/proc/%d/exe" % pid)
        self.tables = {}
        self.known = set()
        self.read_maps()

    def read_maps(self):
        self.maps = []  # (start, end, path, address of the file's first byte)
        base = {}
        with open("/proc/%d/maps" % self.pid) as lines:
            for line in lines:
                fields = line.split(None, 5)
                start, end = (int(x, 16) for x in fields[0].split("-"))
                path = fields[5].strip() if len(fields) > 5 else ""
                if not path.startswith("/") and path != "[vdso]":
                    continue
                if int(fields[2], 16) == 0:
                    base[path] = start
                if "x" in fields[1] and path in base:
                    self.maps.append((start, end, path, base[path]))

    def read(self, address, size):
        self.memory.seek(address)
        return self.memory.read(size)

    def where(self, pc):
        for start, end, path, base in self.maps:
            if start <= pc < end:
                return path, base
        return None

    def known_to_gdb(self, pc):
        """True if gdb has the file that is at pc, which is in one."""
        path = os.path.basename(self.where(pc)[0])
        if path not in self.known:
            names = [os.path.basename(os.path.realpath(objfile.filename))
                     for objfile in gdb.objfiles() if objfile.is_valid()]
            if path == "[vdso]":
                return any("system-supplied" in name for name in names)
            if path == os.path.basename(self.exe) or path in names:
                self.known.add(path)
        return path in self.known

    def table(self, base):
        """[(first address, address of its FDE)…], ascending."""
        if base not in self.tables:
            self.tables[base] = self.read_table(base)
        return self.tables[base]

    def read_table(self, base):
        head = self.read(base, 64)
        if head[:5] != b"\x7fELF\x02":
            return []
        phoff, = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        headers = self.read(base + phoff, size * count)
        first = None
        found = None
        for i in range(count):
            kind, _, _, vaddr = struct.unpack_from("<IIQQ", headers, i * size)
            if kind == 1 and first is None:
                first = vaddr & ~0xFFF
            if kind == self.PT_GNU_EH_FRAME:
                found = vaddr
        if found is None:
            return []
        at = base - first + found
        version, _, count_enc, table_enc = self.read(at, 4)
        if version != 1 or count_enc != 0x03 or table_enc != 0x3B:
            raise RuntimeError("an .eh_frame_hdr of another kind")
        count, = struct.unpack("<I", self.read(at + 8, 4))
        entries = struct.iter_unpack("<ii", self.read(at + 12, 8 * count))
        return [(at + location, at + fde) for location, fde in entries]

    def covers(self, pc):
        """True if there is an FDE for pc; None if it is in no file."""
        place = self.where(pc)
        if not place:
            return None
        table = self.table(place[1])
        low, high = 0, len(table)
        while low < high:
            middle = (low + high) // 2
            if table[middle][0] <= pc:
                low = middle + 1
            else:
                high = middle
        if low == 0:
            return False
        first, fde = table[low - 1]
        return pc < first + self.size(fde)

    def size(self, fde):
        """The number of bytes that an FDE is for; pointers are pcrel|sdata4, or absolute."""
        length, back = struct.unpack("<II", self.read(fde, 8))
        cie = fde + 4 - back
        text = self.read(cie + 8, 64)
        end = text.index(b"\0", 1)
        augmentation = text[1:end]
        at = end + 1
        for _ in range(2):  # code and data alignment
            while text[at] & 0x80:
                at += 1
            at += 1
        at += 1  # the return address's register, a byte in version 1
        encoding = 0
        if augmentation.startswith(b"z"):
            at += 1  # the length of what follows, below 128
            for letter in augmentation[1:]:
                if letter == ord("R"):
                    encoding = text[at]
                    at += 1
                elif letter == ord("L"):
                    at += 1
                elif letter == ord("P"):
                    at += 1 + (8 if text[at] & 0x0F in (0, 0x04, 0x0C) else 4)
        if encoding & 0x0F in (0x03, 0x0B):
            return struct.unpack("<I", self.read(fde + 12, 4))[0]
        return struct.unpack("<Q", self.read(fde + 16, 8))[0]


def stack_of(thread, information):
    """What is said of a thread: see above."""
    thread.switch()
    pcs = []
    frame = gdb.newest_frame()
    why = None
    exact = True  # the instruction at this pc was next, not a call before it
    while frame is not None and len(pcs) < LIMIT:
        # Frames that gdb infers from debug information have no return address on the stack.
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            pc = frame.pc()
            if pc == 0:  # what a fiber returns to
                why = "outermost"
                break
            pcs.append(pc)
            at = pc if exact else pc - 1
            covered = information.covers(at)
            if not covered:
                why = "jit" if covered is None else "no FDE"
                break
            if not information.known_to_gdb(at):
                why = "gdb has not read " + information.where(at)[0]
                break
            exact = False
            # The frame of a signal handler's return: what is found outside of it was interrupted.
            if frame.type() == gdb.SIGTRAMP_FRAME:
                exact = True
        reason = frame.unwind_stop_reason()
        try:
            older = frame.older()
        except gdb.error as error:
            why = str(error)
            break
        if older is None:
            why = "outermost" if reason == gdb.FRAME_UNWIND_OUTERMOST else \
                gdb.frame_stop_reason_string(reason)
        frame = older
    return {"tid": thread.ptid[1] or thread.ptid[2], "pcs": [hex(pc) for pc in pcs],
            "why": why or "limit"}


def setup(pid):
    for command in ("set pagination off", "set confirm off", "set width 0",
                    "set print thread-events off", "set print inferior-events off",
                    "set auto-load no", "set debuginfod enabled off",
                    "set backtrace past-main on", "set backtrace past-entry on",
                    "set backtrace limit unlimited", "set stack-cache on",
                    # Files as the process finds them, in whatever root that is.
                    "set sysroot /proc/%d/root" % pid,
                    "file /proc/%d/exe" % pid,
                    "handle all nostop noprint pass",
                    "handle SIG%d stop print nopass" % SIGNAL):
        try:
            gdb.execute(command, to_string=True)
        except gdb.error:
            if "debuginfod" not in command:
                raise


def main():
    pid = int(os.environ["GDB_STACKS_PID"])
    setup(pid)
    out = open(os.environ["GDB_STACKS_OUT"], "w")
    commands = open(os.environ["GDB_STACKS_IN"])
    gdb.execute("attach %d" % pid, to_string=True)
    information = FrameInformation(pid)
    while True:
        began = time.monotonic_ns()
        information.read_maps()
        gdb.execute("maintenance flush register-cache", to_string=True)
        threads = [stack_of(thread, information)
                   for thread in gdb.selected_inferior().threads()]
        out.write(json.dumps({"threads": threads, "ns": time.monotonic_ns() - began}) + "\n")
        out.flush()
        if commands.readline() != "go\n":
            break
        gdb.execute("continue", to_string=True)
        if not gdb.selected_inferior().pid:
            break
    if gdb.selected_inferior().pid:
        gdb.execute("detach", to_string=True)


main()
