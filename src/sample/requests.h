/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The requests of samples: which frames of a process the BPF programs are to look for, what they
 * have read of them, and where one request of a thread ends and the next begins.
 *
 * A request is told from the next by its receiver: as long as each sample of a thread has a frame
 * with that receiver and name, it is one request.
 *
 * What a sample says is believed only if it is proven that its frame is one that a rule names, and
 * which class it is that its name has. Else the sample is of an unknown request, as it is when the
 * BPF programs did not know yet that there is such a frame on its stack, and found none, or one
 * further out.
 */
#ifndef RBPF_SAMPLE_REQUESTS_H
#define RBPF_SAMPLE_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "profile/id_holder.h"
#include "profile/profile.h"
#include "rbpf_abi.h"

struct engine;
struct request_found;
struct request_rules;
struct resolver;
struct sample_stack;
struct sink;
struct tracked_process;
struct tracked_thread;

/* What a fingerprint stands for. */
struct request_definition {
	uint64_t object;		  /* 0: unknown */
	struct profile_request_kind kind; /* strings of the recording; 0: unknown */
	uint16_t rule;			  /* as frame_origin.rule */
	bool complete;			  /* all that the rule names could be read */
	bool vague;			  /* as request_rule_is_vague() */
	uint64_t klass;			  /* hash of the class */
	uint64_t name; /* hash of framework and name: equal ones may have different ids */
};

/* Other paths of requests are "[other paths]": what clients send has no bound. */
#define REQUEST_PATHS_MAX 1000

/*
 * Valid for an epoch, as fingerprints of stacks are: of two generations the older one is dropped.
 */
struct request_generation {
	struct intern fingerprints;
	struct request_definition *v; /* by id of the fingerprint; owned */
	size_t cap;
};

struct request_table {
	struct intern paths;			  /* that were named: at most REQUEST_PATHS_MAX */
	struct request_generation generations[2]; /* current, previous */
	uint64_t since_ns;			  /* when the current one began */
};

void request_table_deinit(struct request_table *t);

/*
 * Name the request that @rec defines, with the names of its process. Returns 0, -EPROTO, -ENOMEM or
 * the failure of @out.
 */
int request_table_define(struct request_table *t, const struct request_rules *rules,
			 struct resolver *names, struct sink *out,
			 const struct rbpf_ring_request *rec, size_t len);

/* Call @fn for the ids in it, and in a definition alone: see id_holder.h. */
void request_table_ids(struct request_table *t, id_fn *fn, void *arg);
void request_definition_ids(struct request_definition *def, id_fn *fn, void *arg);

/*
 * The request of a sample of thread @t, by its @fingerprint, into *@ret: 0 if it is of none. @rule:
 * process_request_rule(). Returns 0 or the failure of @out.
 */
int request_table_of_sample(const struct request_table *table, struct sink *out,
			    struct tracked_thread *t, uint64_t fingerprint, uint16_t rule,
			    uint32_t *ret);

/* The iseqs of a process that the engine looks for. Zeroed: none. */
#define PROCESS_REQUESTS_MAX 1024
struct process_requests {
	struct request_found *v; /* owned */
	size_t n, cap;
	struct rbpf_request_filter filter;
};

/*
 * By which rule a sample of process @p with @stack is of a request: that of its innermost frame
 * that tells one; 0: none does. If not all of the stack is known, and the process has such frames,
 * it is REQUEST_ANY_RULE.
 */
uint16_t process_request_rule(const struct tracked_process *p, const struct sample_stack *stack);

/* Let the engine look for those of @found, too, in process @p. Returns 0 or -ENOMEM. */
int process_requests_add(struct tracked_process *p, struct engine *e,
			 const struct request_found *found, size_t n);

/* Let it look for none any more: the process has ended, or executes another program. */
void process_requests_drop(struct tracked_process *p, struct engine *e);

#endif
