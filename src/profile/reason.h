/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Why a frame stands where there is no function to name: in place of a stack or of frames that are
 * missing, for code of which nothing is known, or for what the collector does. Whoever asks what a
 * frame means compares the reason; its text is only for people.
 */
#ifndef RBPF_PROFILE_REASON_H
#define RBPF_PROFILE_REASON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

struct buf;

/*
 * Name, number in the file (never renumber), kind of the frame, word in machine output, the frame's
 * name, and for people why.
 */
#define FRAME_REASONS(X)                                                                           \
	/* In place of a Ruby stack. */                                                            \
	X(NO_RUBY_FRAME, 1, NATIVE, "no-ruby-frame", "[no Ruby frame]", "")                        \
	X(NO_RUBY, 2, NATIVE, "no-ruby", "[no Ruby in process]", "")                               \
	X(NATIVE_THREAD, 3, NATIVE, "native-thread", "[native thread]", "")                        \
	X(THREAD_ENDS, 4, NATIVE, "thread-start-or-end", "[thread start or end]", "")              \
	X(INCONSISTENT, 5, NATIVE, "stack-inconsistent", "[stack inconsistent]", "")               \
	X(UNREADABLE, 6, NATIVE, "stack-unreadable", "[stack unreadable]", "")                     \
	X(SWITCHING, 7, NATIVE, "switching-fibers", "[switching fibers]", "")                      \
	X(STACK_LOST, 8, NATIVE, "stack-lost", "[stack lost]", "")                                 \
	/* Code in no file. */                                                                     \
	X(COMPILED_CODE, 9, NATIVE, "compiled-code", "[compiled Ruby code]", "")                   \
	X(ANONYMOUS_CODE, 10, NATIVE, "anonymous-code", "[anonymous code]", "")                    \
	/* What the collector does: these three upon the first. */                                 \
	X(GC, 11, GC, "gc", "(garbage collection)", "")                                            \
	X(GC_MARKING, 12, GC, "gc-marking", "(marking)", "")                                       \
	X(GC_SWEEPING, 13, GC, "gc-sweeping", "(sweeping)", "")                                    \
	X(GC_COMPACTING, 14, GC, "gc-compacting", "(compacting)", "")                              \
	/* In place of native frames. */                                                           \
	X(NO_NATIVE_STACK, 15, GAP, "no-native-stack", "[no native stack]", "no native stack")     \
	X(GAP, 16, GAP, "gap", "[native frames missing]", "not recorded")                          \
	FRAME_REASON_GAP(X, NO_MAP, 17, "no-map", "the process was not looked at yet")             \
	FRAME_REASON_GAP(X, UNKNOWN_CODE, 18, "unknown-code", "unknown code")                      \
	FRAME_REASON_GAP(X, UNREAD, 19, "table-unread", "the unwind table was not read yet")       \
	FRAME_REASON_GAP(X, NO_TABLE, 20, "no-table", "the file has no unwind table")              \
	FRAME_REASON_GAP(X, NO_ROOM, 21, "no-room", "no room for the unwind table")                \
	FRAME_REASON_GAP(X, NO_RULE, 22, "no-rule", "the unwind table has no entry")               \
	FRAME_REASON_GAP(X, REGISTER, 23, "register", "a register is not known")                   \
	FRAME_REASON_GAP(X, FAULT, 24, "fault", "the stack cannot be read")                        \
	FRAME_REASON_GAP(X, STUCK, 25, "stuck", "the stack makes no sense")                        \
	FRAME_REASON_GAP(X, COMPILED, 26, "in-compiled-code", "compiled code")                     \
	FRAME_REASON_GAP(X, LIMIT, 27, "too-deep", "the stack is too deep")                        \
	FRAME_REASON_GAP(X, LOST, 28, "lost", "lost")                                              \
	/* In place of a Ruby stack again. */                                                      \
	X(WAITED_BEFORE, 29, NATIVE, "waited-before", "[waits since before the recording]", "")    \
	/* What a thread waited for; the last one stands below another one. */                     \
	X(WAIT_CPU, 30, WAIT, "wait-cpu", "(waits for a CPU)", "")                                 \
	X(WAIT_GVL, 31, WAIT, "wait-gvl", "(waits for the GVL)", "")                               \
	X(WAIT_LOCK, 32, WAIT, "wait-lock", "(waits for a lock)", "")                              \
	X(WAIT_FAULT, 33, WAIT, "wait-fault", "(waits for a page of memory)", "")                  \
	X(WAIT_DISK, 34, WAIT, "wait-disk", "(waits for a file)", "")                              \
	X(WAIT_NETWORK, 35, WAIT, "wait-network", "(waits for the network)", "")                   \
	X(WAIT_PIPE, 36, WAIT, "wait-pipe", "(waits for a pipe)", "")                              \
	X(WAIT_TIMER, 37, WAIT, "wait-timer", "(sleeps)", "")                                      \
	X(WAIT_CHILD, 38, WAIT, "wait-child", "(waits for a child process)", "")                   \
	X(WAIT_STOPPED, 39, WAIT, "wait-stopped", "(stopped)", "")                                 \
	X(WAIT_OTHER, 40, WAIT, "wait-other", "(waits)", "")                                       \
	X(WAIT_IDLE, 41, WAIT, "wait-idle", "(idle: waits for something to do)", "")               \
	X(GVL_HELD, 42, WAIT, "gvl-held", "(holds the GVL)", "")                                   \
	/* In place of the stack of who ended a wait. */                                           \
	X(INTERRUPT, 43, NOT_RECORDED, "interrupt", "[interrupt]", "")                             \
	X(OTHER_PROCESS, 44, NOT_RECORDED, "other-process", "[another process]", "")               \
	/* In place of a Ruby stack again. */                                                      \
	X(EXECUTING, 45, NATIVE, "executing", "[executing a program]", "")                         \
	/* What a thread waited for again. */                                                      \
	X(WAIT_THROTTLED, 46, WAIT, "wait-throttled", "(throttled by its control group)", "")      \
	X(GVL_TURN, 47, WAIT, "gvl-turn", "(its turn was over)", "")                               \
	X(WAIT_JOIN, 48, WAIT, "wait-join", "(waits for a thread to end)", "")

#define FRAME_REASON_GAP(X, name, number, word, why)                                               \
	X(GAP_##name, number, GAP, word, "[native frames missing: " why "]", why)

enum frame_reason {
	REASON_NONE = 0, /* it names a function; or why is known to a newer rbpf alone */
#define FRAME_REASON_ENUM(name, number, kind, word, label, why) REASON_##name = (number),
	FRAME_REASONS(FRAME_REASON_ENUM)
#undef FRAME_REASON_ENUM
		FRAME_REASON_COUNT,
};

/*
 * Whether a frame of @kind may have it: REASON_NONE all kinds but FRAME_NOT_RECORDED; false for an
 * unknown number.
 */
bool frame_reason_fits(uint32_t reason, enum frame_kind kind);

/* Whether it stands in place of a Ruby stack, and so is no code. */
bool frame_reason_of_no_ruby_stack(uint32_t reason);

/* The kind of frame that has it (not of REASON_NONE). */
enum frame_kind frame_reason_kind(enum frame_reason reason);

/*
 * Whether it is not what a thread waited for, but what was so of it and the GVL: such a frame
 * stands below the one of the wait.
 */
static inline bool reason_is_of_gvl(uint32_t reason)
{
	return reason == REASON_GVL_HELD || reason == REASON_GVL_TURN;
}

/* In machine output, "native-thread"; "" of REASON_NONE. */
const char *frame_reason_word(enum frame_reason reason);

/* The name of such a frame, "[native thread]"; "" of REASON_NONE. */
const char *frame_reason_label(enum frame_reason reason);

/* Why native frames are missing, "unknown code"; "not recorded" of REASON_NONE, "" of no gap. */
const char *frame_reason_why(enum frame_reason reason);

/*
 * Append the name of a frame with @reason, a FRAME_WAIT, that also says what is behind the
 * descriptor: "(waits for the network: 10.0.0.5:5432)".
 */
void wait_label_add(enum frame_reason reason, const char *on, struct buf *out);

/* What a frame with @reason and such a name says of that, *@n bytes in @label; *@n 0: nothing. */
const char *wait_label_on(enum frame_reason reason, const char *label, size_t *n);

/*
 * What a frame of @kind in no module with this name was, in a recording from before reasons were
 * told (rbpf-file(5), 1.5).
 */
enum frame_reason frame_reason_of_label(enum frame_kind kind, const char *label);

#endif
