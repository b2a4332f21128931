/* SPDX-License-Identifier: GPL-2.0-only */
#include "sample/requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/hash.h"
#include "engine/engine.h"
#include "profile/sink.h"
#include "request/rules.h"
#include "sample/process_table.h"
#include "sample/stack_table.h"
#include "symbol/resolver.h"

/* A fingerprint is sent again after an epoch. Samples wait for names for some seconds at most. */
#define GENERATION_NS  (16ull << RBPF_EPOCH_SHIFT)
#define GENERATION_MAX 65536 /* definitions */

static void generation_deinit(struct request_generation *g)
{
	intern_deinit(&g->fingerprints);
	free(g->v);
	*g = (struct request_generation) { 0 };
}

void request_table_deinit(struct request_table *t)
{
	generation_deinit(&t->generations[0]);
	generation_deinit(&t->generations[1]);
	intern_deinit(&t->paths);
}

static void next_generation(struct request_table *t, uint64_t now)
{
	if (now <= t->since_ns || (now - t->since_ns <= GENERATION_NS &&
				   t->generations[0].fingerprints.count < GENERATION_MAX))
		return;
	generation_deinit(&t->generations[1]);
	t->generations[1] = t->generations[0];
	t->generations[0] = (struct request_generation) { 0 };
	t->since_ns = now;
}

static const struct request_definition *find(const struct request_table *t, uint64_t fingerprint)
{
	uint32_t id;
	int i;

	for (i = 0; i < 2; i++)
		if (!intern_find(&t->generations[i].fingerprints, &fingerprint, sizeof(fingerprint),
				 &id))
			return &t->generations[i].v[id];
	return NULL;
}

/* ---- definitions ---- */

/* What stands for the path in *@text, if there are too many. Returns 0 or -ENOMEM. */
static int bound_path(struct request_table *t, const char **text)
{
	const size_t len = strlen(*text);
	uint32_t id;

	if (!intern_find(&t->paths, *text, len, &id))
		return 0;
	if (t->paths.count < REQUEST_PATHS_MAX)
		return intern_add(&t->paths, *text, len, &id, NULL);
	*text = "[other paths]";
	return 0;
}

/* Name what was resolved, into @def. */
static int name_request(struct request_table *t, const struct request_rule *rule,
			const struct resolved_request *resolved, struct sink *out,
			struct request_definition *def)
{
	struct buf name _cleanup_buf_ = BUF_INIT;
	const char *text = rule->text_from == REQUEST_TEXT_METHOD ? resolved->method
								  : resolved->text;
	int r;

	if (!request_rule_tells(rule, resolved->klass, text))
		return 0;
	def->complete = rule->text_from == REQUEST_NO_TEXT || text;
	def->vague = request_rule_is_vague(rule);
	if (rule->text_from == REQUEST_TEXT_ENV && text && bound_path(t, &text))
		return -ENOMEM;
	request_rule_name(rule, resolved->klass, NULL, &name);
	def->klass = hash_bytes(buf_str(&name), name.len);
	buf_reset(&name);
	request_rule_name(rule, resolved->klass, text, &name);
	if (buf_failed(&name))
		return -ENOMEM;
	def->name = hash_bytes(buf_str(&name), name.len) ^
		    hash_mix(hash_bytes(rule->framework, strlen(rule->framework)));
	r = sink_string(out, rule->framework, strlen(rule->framework), &def->kind.framework);
	return r ? r : sink_string(out, buf_str(&name), name.len, &def->kind.name);
}

int request_table_define(struct request_table *t, const struct request_rules *rules,
			 struct resolver *names, struct sink *out,
			 const struct rbpf_ring_request *rec, size_t len)
{
	struct request_generation *g = &t->generations[0];
	struct request_definition def = { 0 };
	struct resolved_request resolved;
	bool is_new = false;
	uint32_t id;
	int r;

	if (len < sizeof(*rec))
		return -EPROTO;
	next_generation(t, rec->h.ts);
	r = resolver_request(names, rec, &resolved);
	if (!r) {
		def.object = rec->object;
		def.rule = resolved.rule + 1;
		r = name_request(t, &rules->v[resolved.rule], &resolved, out, &def);
	} else if (r == -ENOENT) {
		r = 0;
	}
	if (!r)
		r = intern_add(&g->fingerprints, &rec->request, sizeof(rec->request), &id, &is_new);
	if (!r)
		r = array_reserve(g->v, g->cap, (size_t)id + 1);
	/* Each CPU sends it: what has no name by now had one when the first did. */
	if (!r && (is_new || def.kind.name))
		g->v[id] = def;
	return r;
}

void request_definition_ids(struct request_definition *def, id_fn *fn, void *arg)
{
	fn(arg, ID_STRING, &def->kind.framework);
	fn(arg, ID_STRING, &def->kind.name);
}

void request_table_ids(struct request_table *t, id_fn *fn, void *arg)
{
	for (int g = 0; g < 2; g++)
		for (size_t i = 0; i < t->generations[g].fingerprints.count; i++)
			request_definition_ids(&t->generations[g].v[i], fn, arg);
}

/* ---- samples ---- */

/*
 * Whether @def goes on what thread @t was seen in. What could not be read in full is the same
 * request if the object and its class are.
 */
static bool goes_on(const struct tracked_thread *t, const struct request_definition *def)
{
	const struct request_definition *now = &t->request_def;

	if (!t->request || def->object != now->object || def->klass != now->klass)
		return false;
	return !def->complete || !now->complete || def->name == now->name;
}

int request_table_of_sample(const struct request_table *table, struct sink *out,
			    struct tracked_thread *t, uint64_t fingerprint, uint16_t rule,
			    uint32_t *ret)
{
	static const struct request_definition unknown = { 0 };
	const struct request_definition *def = NULL;
	int r;

	if (fingerprint)
		def = find(table, fingerprint);
	if (!def && (fingerprint || rule))
		def = &unknown;
	if (def && !request_rule_fits(def->rule, def->vague, rule))
		def = &unknown;
	if (!def) {
		t->request = *ret = 0;
		return 0;
	}
	/* Of what becomes known in its course no more was known before. */
	if (goes_on(t, def) && (t->request_def.complete || !def->complete)) {
		*ret = t->request;
		return 0;
	}
	r = sink_request(out, t->id, &def->kind, ret);
	if (r)
		return r;
	t->request = *ret;
	t->request_def = *def;
	return 0;
}

uint16_t process_request_rule(const struct tracked_process *p, const struct sample_stack *stack)
{
	const bool whole = !(stack->flags & (SAMPLE_FAILED | SAMPLE_UNRESOLVED | SAMPLE_TRUNCATED));

	if (stack->rule)
		return whole ? stack->rule : REQUEST_ANY_RULE;
	return p->requests.n && stack->flags & SAMPLE_FAILED ? REQUEST_ANY_RULE : 0;
}

/* ---- what the engine looks for ---- */

static void set_bit(struct rbpf_request_filter *filter, uint64_t iseq)
{
	const uint32_t bit = rbpf_request_bit(iseq);

	filter->bits[bit / 64] |= 1ull << (bit % 64);
}

int process_requests_add(struct tracked_process *p, struct engine *e,
			 const struct request_found *found, size_t n)
{
	struct process_requests *q = &p->requests;
	size_t i, k;

	for (i = 0; i < n; i++) {
		for (k = 0; k < q->n && q->v[k].iseq != found[i].iseq; k++)
			;
		if (k == PROCESS_REQUESTS_MAX)
			break;
		if (array_reserve(q->v, q->cap, k + 1))
			return -ENOMEM;
		q->v[k] = found[i];
		q->n = k == q->n ? k + 1 : q->n;
		set_bit(&q->filter, found[i].iseq);
		engine_set_request(e, p->pid, found[i].iseq, &found[i].rule);
	}
	q->filter.tgid = (uint32_t)p->pid;
	if (i)
		engine_set_request_filter(e, p->pid, &q->filter);
	return 0;
}

void process_requests_drop(struct tracked_process *p, struct engine *e)
{
	struct process_requests *q = &p->requests;

	if (q->n)
		engine_set_request_filter(e, p->pid, NULL);
	for (size_t i = 0; i < q->n; i++)
		engine_set_request(e, p->pid, q->v[i].iseq, NULL);
	free(q->v);
	*q = (struct process_requests) { 0 };
}
