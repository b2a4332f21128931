/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The layout row of a Ruby: every fact about its structs that rbpf relies on, so that no code asks
 * for a version. A row is a hint; ruby_vm_attach() proves it on the live process before it is used.
 *
 * Offsets are in bytes, of x86_64 and arm64 alike (they differ only in members that are not used
 * here). Sources: shared debug information of the releases, checked by `make check-live`.
 */
#ifndef RBPF_RUBY_LAYOUT_H
#define RBPF_RUBY_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "rbpf_abi.h"

/* Where a class keeps its name. */
enum ruby_class_form {
	RUBY_CLASS_IV_TBL, /* up to 3.1: st_table of instance variables behind RClass.ptr */
	RUBY_CLASS_EXT,	   /* 3.3 on: members of rb_classext_t, which follows RClass */
};

struct ruby_layout {
	const char *version; /* "3.1": major.minor */

	/* What the BPF side needs; the TLS members are found per process. */
	struct rbpf_layout walk;

	/* struct rb_iseq_constant_body. Up to first_lineno the members have not moved since 2.7. */
	bool lineno_is_value; /* first_lineno is a Fixnum VALUE (up to 3.1), else an int */
	uint16_t insns_body;  /* insns_info.body */
	uint16_t insns_size;  /* insns_info.size */
	uint16_t insns_index; /* insns_info.succ_index_table */
	uint16_t parent_iseq;
	uint16_t local_iseq;
	uint16_t builtin_attrs; /* 0: not used */
	uint16_t insn_entry;	/* sizeof(struct iseq_insn_info_entry) */

	/*
	 * Backtraces since 3.4: labels are made from the parents of an iseq, and a rescue or ensure
	 * frame stands for the method's own frame below it.
	 */
	bool labels_from_parents;

	/* struct RString: embedded bytes and length are in the flags and at +16 (up to 3.1), or +24
	 * and +16. */
	bool string_len_in_flags;

	enum ruby_class_form class_form;
	uint16_t class_path;	  /* RUBY_CLASS_EXT, from the class: the name's String */
	uint16_t class_permanent; /* … the byte whose bit 0 says that the name is permanent */
	uint16_t class_attached;  /* … a singleton class' object */
	uint64_t singleton_flag;  /* in RBasic.flags of a T_CLASS */

	uint64_t qnil;
	uint32_t last_op_id; /* tLAST_OP_ID: IDs up to it are their own serial */
};

/* The row for a version like "3.1.2", or NULL. */
const struct ruby_layout *ruby_layout_find(const char *version);

/* The versions there are rows for, for messages: "3.1, 3.3, 3.4". */
const char *ruby_layout_versions(void);

#endif
