/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of counters: all that is counted besides samples. The BPF programs take the numbers of
 * their counters from here (rbpf_abi.h), TOTALS and JSON the keys, and the summary the words
 * (profile/counters.h). A new counter is one new line here. The format stays readable both ways: a
 * reader ignores keys that it does not know and takes 0 for those that are missing.
 *
 *	X(NAME, key, when, one, many, text)
 *
 * NAME: RBPF_CNT_NAME in the BPF programs, COUNTER_NAME in profile_totals.counters[].
 * key: in JSON. Never renamed.
 * when: enum counter_when: whether the summary tells a count that is not 0.
 * one, many, text: the line that it tells: "1 <one> <text>" or "1,234 <many> <text>": what was
 * missed, what that means for the profile, and what helps against it. many has at most 28 bytes.
 */
#ifndef RBPF_COUNTERS_H
#define RBPF_COUNTERS_H

/*
 * Of the BPF programs, in the order of their map. RBPF_CNT_NATIVE_CUT + enum rbpf_native_end must
 * hold.
 */
/* clang-format off */
#define RBPF_KERNEL_COUNTERS(X)                                                                    \
	X(TICKS, "ticks", NEVER, "tick", "ticks", "made samples")                                   \
	X(SAMPLE_NS, "sample_ns", NEVER, "ns", "ns", "were spent in these ticks")                  \
	X(STACKS, "stacks_sent", NEVER, "Ruby stack", "Ruby stacks", "were sent in full")          \
	X(LOST_SAMPLE, "lost_samples", NEVER, "sample", "samples",                                 \
	  "found the ring buffer full and are missing: --ring makes it larger")                    \
	X(LOST_STACK, "lost_stacks", ALWAYS, "Ruby stack", "Ruby stacks",                          \
	  "found the ring buffer full, or half full if they were deep: samples of them have "      \
	  "[stack lost]; --ring makes it larger")                                                  \
	X(LOST_REQUEST, "lost_requests", ALWAYS, "request", "requests",                            \
	  "found the ring buffer full: samples of them are of an unknown request; --ring makes "   \
	  "it larger")                                                                             \
	X(LOST_LIFE, "lost_lives", ALWAYS, "fork, exec or exit", "forks, execs and exits",         \
	  "found the ring buffer full: samples of these processes may be missing or nameless; "    \
	  "--ring makes it larger")                                                                \
	X(MISSED_EXEC, "missed_execs", ALWAYS, "exec", "execs",                                    \
	  "of the machine's processes not told, for newer kernels leave some out on busy CPUs: "   \
	  "if one was of those that are followed, it may be nameless for some seconds")            \
	X(MISSED_EXIT, "missed_exits", NEVER, "exit", "exits",                                     \
	  "of the machine's threads not told, but when the kernel frees them")                     \
	X(PROCS_FULL, "children_not_followed", ALWAYS, "child process", "child processes",         \
	  "not followed, for rbpf already follows 16,384, the most that it can: what they did "    \
	  "is missing; "                                                                           \
	  "--comm, --user, --cgroup or -p follow fewer")                                           \
	X(WAITS_FULL, "waits_not_followed", ALWAYS, "wait", "waits",                               \
	  "of threads not followed, for there are more than 32,768: time off the CPU is missing")  \
	X(WAITS_MISSED, "waits_missed", NEVER, "wait", "waits",                                    \
	  "whose end was not seen, but told by the CPU time since")                                \
	X(ENV_FAULT, "env_faults", MANY, "environment", "environments",                            \
	  "of frames could not be read: such frames are named without their class")                \
	X(ENV_DEPTH, "env_too_deep", MANY, "frame", "frames",                                      \
	  "in blocks nested too deep to find their method: named without their class")             \
	X(READ_LIMIT, "read_limit", MANY, "read", "reads",                                         \
	  "not made, for a stack took too many: frames beyond are named without their class; "     \
	  "--max-stack walks fewer")                                                               \
	X(FIBER_DEPTH, "fibers_left_out", ALWAYS, "fiber", "fibers",                               \
	  "of stacks with many fibers left out: the frames that resumed them are missing; "        \
	  "--max-stack walks more")                                                                \
	X(CONTEXT_UNREAD, "thread_contexts_unread", MANY, "context", "contexts",                    \
	  "of threads (OTEP 4947) could not be read: their samples are of no trace")               \
	X(COPIED, "names_copied", NEVER, "name", "names", "were copied in the kernel")             \
	X(COPY_FAULT, "names_copied_in_part", MANY, "name", "names",                               \
	  "could not be copied in full: [unknown] if their process ended before rbpf read them")   \
	X(NOT_COPIED, "names_not_copied", MANY, "name", "names",                                   \
	  "not copied, for there was no room: [unknown] if their process ended before rbpf read "  \
	  "them; --ring makes it larger")                                                          \
	X(LOST_NATIVE, "lost_native_stacks", ALWAYS, "native stack", "native stacks",              \
	  "found the ring buffer filling up: samples of them have their Ruby stack alone; "        \
	  "--ring makes it larger")                                                                \
	X(NATIVE, "native_stacks", NEVER, "native stack", "native stacks", "were walked")          \
	X(NATIVE_CUT, "native_cut_outermost", NEVER, "native stack", "native stacks",              \
	  "walked to their outermost frame; not counted here")                                                             \
	X(NATIVE_NO_MAP, "native_cut_no_map", NEVER, "native stack", "native stacks",              \
	  "cut: the code of the process was not known yet")                                        \
	X(NATIVE_NO_RANGE, "native_cut_no_range", NEVER, "native stack", "native stacks",          \
	  "cut at an address that is no known code")                                               \
	X(NATIVE_UNREAD, "native_cut_unread", NEVER, "native stack", "native stacks",              \
	  "cut: an unwind table was not read yet")                                                 \
	X(NATIVE_NO_TABLE, "native_cut_no_table", NEVER, "native stack", "native stacks",          \
	  "cut at code without an unwind table")                                                   \
	X(NATIVE_NO_ROOM, "native_cut_no_room", ALWAYS, "native stack", "native stacks",           \
	  "cut, for there was no room for more unwind tables: --comm, --user, --cgroup or -p "     \
	  "follow fewer programs")                                                                 \
	X(NATIVE_NO_RULE, "native_cut_no_rule", NEVER, "native stack", "native stacks",            \
	  "cut at code that its unwind table does not tell how to leave")                          \
	X(NATIVE_REGISTER, "native_cut_register", NEVER, "native stack", "native stacks",          \
	  "cut where a register was needed that is not known")                                     \
	X(NATIVE_FAULT, "native_cut_fault", NEVER, "native stack", "native stacks",                \
	  "cut where the stack could not be read")                                                 \
	X(NATIVE_STUCK, "native_cut_stuck", NEVER, "native stack", "native stacks",                \
	  "cut where the caller would not be further up the stack")                                \
	X(NATIVE_JIT, "native_cut_jit", NEVER, "native stack", "native stacks",                    \
	  "cut in compiled code in the midst of a call or return")                                 \
	X(NATIVE_LIMIT, "native_cut_limit", MANY, "native stack", "native stacks",                 \
	  "of more than 1,024 frames cut: their outermost frames are missing")

/*
 * Of user space: src/sample/ adds to collector.totals.counters[], from what the layers below count.
 */
#define RBPF_USER_COUNTERS(X)                                                                      \
	X(NOT_FOLLOWED, "not_followed", ALWAYS, "process", "processes",                            \
	  "not followed, for rbpf already follows too many, in all or of their user, or its "      \
	  "memory is at --memlimit: what they did is missing; --comm, --user, --cgroup or -p "     \
	  "follow fewer")                                                                          \
	X(ENDED_UNSEEN, "ended_unseen", ALWAYS, "Ruby process", "Ruby processes",                  \
	  "ended before rbpf looked: what was done there has no names or is missing; "               \
	  "rbpf keeps up where it may use SCHED_RR (CAP_SYS_NICE, no --no-priority)")              \
	X(LOOKS_PUT_OFF, "looks_put_off", ALWAYS, "look", "looks",                                 \
	  "at processes put off, for those of their user take too long to look at: what was run "  \
	  "until then may be missing, or without native frames")                                   \
	X(NAMES_REFUSED, "names_refused", ALWAYS, "name", "names",                                 \
	  "not read, for their process has too many or too long ones: such frames are [unknown]")  \
	X(TOO_LATE, "too_late", ALWAYS, "report", "reports",                                       \
	  "of stacks and processes not looked at, for the time was up: samples of them have "      \
	  "[stack lost]")                                                                          \
	X(CODE_LEFT_OUT, "code_left_out", ALWAYS, "process", "processes",                          \
	  "with more code mapped than is looked at: native stacks may be cut in the rest of it")   \
	X(PERF_MAPS_CUT, "perf_maps_cut", ALWAYS, "perf map", "perf maps",                         \
	  "too large to be read in full: compiled code may be nameless")                           \
	X(PERF_MAPS_REFUSED, "perf_maps_refused", ALWAYS, "perf map", "perf maps",                 \
	  "not read, for another user owns it or everybody may write it: compiled code is "        \
	  "nameless")                                                                              \
	X(SENT_BYTES, "sent_bytes", NEVER, "byte", "bytes", "came through the ring buffer")        \
	X(FILES_GIVEN_UP, "files_given_up", ALWAYS, "file", "files",                               \
	  "of processes not read, for it took too much time or memory, or failed: their "          \
	  "functions have no names, and stacks may be cut there")
/* clang-format on */

#endif
