/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The layout of a Ruby: every fact about its structs that rbpf relies on, so that no code asks for
 * a version.
 *
 * Each fact can come from several sources (enum ruby_source): each fills in a struct ruby_layout
 * with what it knows, and ruby_vm_attach() takes for each fact the most trusted source that knows
 * it and proves the whole on the live process before it is used. If that fails it tries again with
 * fewer sources (ruby_layout_settle()).
 */
#ifndef RBPF_RUBY_LAYOUT_H
#define RBPF_RUBY_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ruby_abi.h"

struct err;

/* Most trusted first. */
enum ruby_source {
	RUBY_FROM_CODE,	  /* the machine code of small exported functions (code.h) */
	RUBY_FROM_DWARF,  /* debug information of the file or its debug file (layout_dwarf.c) */
	RUBY_FROM_TABLE,  /* the table of released versions (layout.c) */
	RUBY_FROM_SEARCH, /* the shape of the live data (search.h) */
	RUBY_SOURCES,
};

/* "code", "dwarf", "table", "search" */
const char *ruby_source_name(enum ruby_source source);

/*
 * "code,search" as a set of 1 << enum ruby_source; NULL is all of them. Returns 0 or -EINVAL
 * (ERR_USAGE).
 */
int ruby_sources_parse(const char *words, unsigned int *ret, struct err *err);

/*
 * The facts: X(member, name for people, struct, member of it as debug information has it).
 * "*" for a struct: it is no member's offset; debug information may tell it in another way
 * (layout_dwarf.c). A member NULL means the size of the struct. Offsets and sizes are in bytes.
 *
 * Members that are not in this list are at the same offset in all versions since 2.7: the first
 * words of the EC, of a control frame, of an iseq, its body and location, of a method entry and its
 * definition; see ruby_abi.h.
 */
#define RUBY_LAYOUT_FIELDS(X)                                                                      \
	X(ec_fiber_ptr, "ec.fiber_ptr", "rb_execution_context_struct", "fiber_ptr")                \
	X(ec_thread_ptr, "ec.thread_ptr", "rb_execution_context_struct", "thread_ptr")             \
	X(ec_stack_start, "ec.machine.stack_start", "rb_execution_context_struct",                 \
	  "machine.stack_start")                                                                   \
	X(cf_size, "sizeof(control frame)", "rb_control_frame_struct", NULL)                       \
	X(cf_jit_return, "cfp.jit_return", "rb_control_frame_struct", "jit_return")                \
	X(th_ractor, "thread.ractor", "rb_thread_struct", "ractor")                                \
	X(th_vm, "thread.vm", "rb_thread_struct", "vm")                                            \
	X(th_ec, "thread.ec", "rb_thread_struct", "ec")                                            \
	X(th_thread_id, "thread.thread_id", "rb_thread_struct", "thread_id")                       \
	X(th_ready, "thread.sched.node.readyq", "rb_thread_struct",                                \
	  "sched.node.readyq|native_thread_data")                                                  \
	X(th_running_time, "thread.running_time_us", "rb_thread_struct", "running_time_us")        \
	X(vm_gvl_owner, "vm.gvl.owner", "rb_vm_struct", "gvl.owner")                               \
	X(vm_gvl_queue, "vm.gvl.waitq", "rb_vm_struct", "gvl.waitq")                               \
	X(vm_living_threads, "vm.living_threads", "rb_vm_struct", "living_threads")                \
	X(vm_lock_owner, "vm.ractor.sync.lock_owner", "rb_vm_struct", "ractor.sync.lock_owner")    \
	X(vm_objspace, "vm.objspace", "rb_vm_struct", "objspace|gc.objspace")                      \
	X(ractor_running_ec, "ractor.threads.running_ec", "rb_ractor_struct",                      \
	  "threads.running_ec")                                                                    \
	X(ractor_gvl_queue, "ractor.threads.sched.readyq", "rb_ractor_struct",                     \
	  "threads.sched.readyq|threads.gvl.waitq")                                                \
	X(ractor_gvl_owner, "ractor.threads.sched.running", "rb_ractor_struct",                    \
	  "threads.sched.running|threads.gvl.owner")                                               \
	X(objspace_flags, "objspace.flags", "rb_objspace", "flags")                                \
	X(objspace_count, "objspace.profile.count", "rb_objspace", "profile.count")                \
	X(fiber_ec, "fiber.cont.saved_ec", "rb_fiber_struct", "cont.saved_ec")                     \
	X(fiber_prev, "fiber.prev", "rb_fiber_struct", "prev")                                     \
	X(lineno_size, "sizeof(iseq.first_lineno)", "*", NULL)                                     \
	X(iseq_location, "iseq.location", "rb_iseq_constant_body", "location.pathobj")             \
	X(insns_body, "iseq.insns_info.body", "rb_iseq_constant_body", "insns_info.body")          \
	X(insns_size, "iseq.insns_info.size", "rb_iseq_constant_body", "insns_info.size")          \
	X(insns_index, "iseq.insns_info.succ_index_table", "rb_iseq_constant_body",                \
	  "insns_info.succ_index_table")                                                           \
	X(insn_entry, "sizeof(iseq_insn_info_entry)", "iseq_insn_info_entry", NULL)                \
	X(parent_iseq, "iseq.parent_iseq", "rb_iseq_constant_body", "parent_iseq")                 \
	X(local_iseq, "iseq.local_iseq", "rb_iseq_constant_body", "local_iseq")                    \
	X(builtin_attrs, "iseq.builtin_attrs", "rb_iseq_constant_body", "builtin_attrs")           \
	X(jit_entry, "iseq.jit_entry", "rb_iseq_constant_body", "jit_entry|jit_func")              \
	X(original_id, "method.original_id", "rb_method_definition_struct", "original_id")         \
	X(string_embed, "String's embedded bytes", "RString", "as.ary|as.embed.ary")               \
	X(class_form, "class form", "*", NULL)                                                     \
	X(class_path, "class name", "RClass_and_rb_classext_t", "classext.classpath")              \
	X(class_permanent, "class name is permanent", "RClass_and_rb_classext_t",                  \
	  "classext.permanent_classpath")                                                          \
	X(class_attached, "singleton's object", "RClass_and_rb_classext_t",                        \
	  "classext.as.singleton_class.attached_object")                                           \
	X(singleton_bit, "singleton flag", "*", NULL)                                              \
	X(symbol_form, "symbol table form", "*", NULL)

enum ruby_field {
#define X(member, name, type, path) RUBY_FIELD_##member,
	RUBY_LAYOUT_FIELDS(X)
#undef X
		RUBY_FIELDS
};

#define RUBY_UNKNOWN 0xffff
#define RUBY_ABSENT  0 /* this Ruby has no such member. No member in the list has offset 0 */

/*
 * lineno_size      8: first_lineno is a Fixnum VALUE (up to 3.1); 4: an int
 * cf_jit_return    ABSENT up to 3.0
 * class_form       enum ruby_class_form
 * symbol_form      enum ruby_symbol_form
 * string_embed     RSTRING_EMBED_SHORT: length in the flags; RSTRING_EMBED_LONG: length at 16
 * class_path       RUBY_CLASS_EXT, from the class: the name's String
 * class_permanent  RUBY_CLASS_EXT, from the class: the byte whose bit 0 says that the name is
 *                  permanent
 * class_attached   RUBY_CLASS_EXT, from the class: a singleton class' object
 * singleton_bit    number of the bit in RBasic.flags of a T_CLASS
 * builtin_attrs    3.3 on
 * th_ready         the list node by which a thread is in the queue of those that wait for the GVL,
 *                  whose head is vm_gvl_queue or ractor_gvl_queue. Up to 3.1 other lists use it,
 *                  too: it is the first member of native_thread_data
 * th_running_time  the word before it has the thread's status in its low bits, which debug
 *                  information does not tell in the same way of all versions
 * th_thread_id, vm_gvl_owner, vm_gvl_queue, vm_living_threads: of Rubies with one EC pointer for
 *                  all threads (2.7), ABSENT in others; th_ractor, vm_lock_owner,
 *                  ractor_running_ec, ractor_gvl_queue, ractor_gvl_owner ABSENT there
 */
struct ruby_layout {
#define X(member, name, type, path) uint16_t member;
	RUBY_LAYOUT_FIELDS(X)
#undef X
};

_Static_assert(sizeof(struct ruby_layout) == RUBY_FIELDS * sizeof(uint16_t), "only the facts");

struct ruby_field_info {
	const char *name;   /* for people */
	const char *type;   /* struct in debug information; "*": not there */
	const char *member; /* dotted path; "a|b": a or else b; NULL: the size of the struct */
};

extern const struct ruby_field_info ruby_field_info[RUBY_FIELDS];

static inline uint16_t *ruby_layout_at(struct ruby_layout *l, enum ruby_field field)
{
	return &((uint16_t *)l)[field];
}

static inline uint16_t ruby_layout_get(const struct ruby_layout *l, enum ruby_field field)
{
	return ((const uint16_t *)l)[field];
}

/* Whether the member with this @offset is there, and was found. */
static inline bool ruby_layout_has(uint16_t offset)
{
	return offset != RUBY_ABSENT && offset != RUBY_UNKNOWN;
}

/* Make every fact RUBY_UNKNOWN. */
void ruby_layout_init(struct ruby_layout *l);

/*
 * How a version of Ruby behaves, where its memory does not show it. Unknown and future versions are
 * taken to behave like the newest known one.
 */
struct ruby_rules {
	/*
	 * 3.4 on: labels are made from the parents of an iseq, and backtraces show a
	 * rescue or ensure frame instead of the frame that called it.
	 */
	bool labels_from_parents;
	/* 3.4: methods written in Ruby with Primitive.attr! :c_trace are shown as C functions … */
	bool c_trace_is_cfunc;
	/* … from 4.0 on, all whose file is "<internal:…". */
	bool internal_is_cfunc;
	/* 2.7: ec->cfp is set before the frame it points to is written. */
	bool cfp_before_frame;
	/* 3.1: YJIT saves the pc of a caller only in the course of the call. */
	bool caller_pc_late;
	/* 4.0: nothing in a frame tells that it is ZJIT's. (Later cfp.jit_return does.) */
	bool zjit_bare;
	/* RBasic.flags of an old object (FL_PROMOTED). */
	uint32_t old_flags;
	/*
	 * 3.3 on: an old object has survived three collections. Before, one that an old one refers
	 * to is made old by the first (gc.c rgengc_check_relation()).
	 */
	bool old_by_age;
	/*
	 * 3.3 on: rb_ractor_t.threads.running_ec is set by a thread that has no GVL yet
	 * (nt_start(), ruby_thread_set_native()).
	 */
	bool runs_early;
	/*
	 * Where the count of major collections is; see rbpf_gc_major(). 4.1: it is found in each
	 * process.
	 */
	uint8_t gc_major_word;
	enum ruby_mutex_form mutex_form;
	/* 3.3 on: the st_table of a Hash is in the Hash. */
	bool hash_embeds;
	/* Where entries_bound is in a st_table. */
	uint8_t st_bound;
};

/* The rules for a version like "3.1.2". */
struct ruby_rules ruby_rules_for(const char *version);

/* RUBY_FROM_TABLE: fill in @ret for a version like "3.1.2". -ENOENT if it is not in the table. */
int ruby_layout_table(const char *version, struct ruby_layout *ret);

/* The minor that the table has for a version like "3.1.2": "3.1"; NULL if it has none. */
const char *ruby_layout_row(const char *version);

/*
 * Whether @version has the form of a release: three numbers and up to RUBY_VERSION_SUFFIX small
 * letters, digits, dots or hyphens ("3.1.2", "3.5.0-dev"). Only then may it be shown.
 */
#define RUBY_VERSION_SUFFIX 16
bool ruby_version_valid(const char *version);

/* Whether this Ruby is supported: 2.7 or newer, in the table or not. */
bool ruby_version_supported(const char *version);
#define RUBY_OLDEST "2.7"

#endif
