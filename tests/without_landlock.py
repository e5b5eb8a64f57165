"""A process without Landlock: it takes the system call from itself, as containers do."""

WITHOUT_LANDLOCK = """
import ctypes, struct, sys
program = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (6, 0, 0, 0x00050000 | 38), (6, 0, 0, 0x7FFF0000)]
rules = b"".join(struct.pack("HBBI", *each) for each in program)
held = ctypes.create_string_buffer(rules)
libc = ctypes.CDLL(None, use_errno=True)
filters = struct.pack("HxxxxxxP", len(program), ctypes.addressof(held))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_char_p(filters), 0, 0):
    sys.exit(77)
"""
"""Ends with status 77 where the system lets no process filter its calls."""
