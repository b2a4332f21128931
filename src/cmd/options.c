/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"

/* The longest "--name" in a message; names in tables are far shorter (a unit test checks them). */
#define OPTION_NAME_MAX 64

void pid_list_deinit(struct pid_list *list)
{
	free(list->pids);
	*list = (struct pid_list) { 0 };
}

bool option_takes_value(enum option_type type)
{
	return type != OPTION_FLAG && type != OPTION_SWITCH;
}

/* Say which word of a refused pid list is no number, if that is what is wrong with it. */
static int explain_pids(const char *value, int r, struct err *err)
{
	const char *word = value;
	size_t len;

	for (;;) {
		len = strcspn(word, ",");
		if (!len || strspn(word, "0123456789") < len)
			return err_set(err, r, ERR_USAGE,
				       "invalid pid list '%.80s': '%.*s' is not a number", value,
				       (int)(len > 80 ? 80 : len), word);
		if (!word[len])
			return r;
		word += len + 1;
	}
}

static int parse_pids(const char *value, const char *what, pid_t **ret, size_t *n, struct err *err)
{
	int r = parse_pid_list(value, what, ret, n, err);

	return r == -EINVAL ? explain_pids(value, r, err) : r;
}

static int add_pids(struct pid_list *list, const char *value, const char *what, struct err *err)
{
	_cleanup_free_ pid_t *pids = NULL;
	pid_t *all;
	size_t n, i, j;
	int r;

	r = parse_pids(value, what, &pids, &n, err);
	if (r)
		return r;
	for (i = 0; i < n; i++)
		for (j = 0; j < list->n; j++)
			if (pids[i] == list->pids[j])
				return err_set(err, -EINVAL, ERR_USAGE,
					       "%s: pid %d is listed twice", what, (int)pids[i]);
	all = reallocarray(list->pids, list->n + n, sizeof(*all));
	if (!all)
		return err_oom(err);
	memcpy(all + list->n, pids, n * sizeof(*all));
	list->pids = all;
	list->n += n;
	return 0;
}

static int parse_pid(const char *value, const char *what, pid_t *ret, struct err *err)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t n;
	int r;

	r = parse_pids(value, what, &pids, &n, err);
	if (r)
		return r;
	if (n != 1)
		return err_set(err, -EINVAL, ERR_USAGE, "%s takes one pid, got '%.80s'", what,
			       value);
	*ret = pids[0];
	return 0;
}

static int parse_number(const struct option_spec *spec, const char *value, const char *what,
			uint64_t *ret, struct err *err)
{
	int r = parse_u64(value, what, spec->min, spec->max, ret, err);

	if (r == -ERANGE)
		return err_set(err, r, ERR_USAGE,
			       "%s must be between %" PRIu64 " and %" PRIu64 ", got %.80s", what,
			       spec->min, spec->max, value);
	return r;
}

struct size_text {
	char s[24];
};

/* As one would type it: "64K", "1G". */
static struct size_text size_text(uint64_t bytes)
{
	static const char units[] = "KMG";
	struct size_text ret;
	size_t u = 0;

	if (!bytes || bytes % 1024) {
		snprintf(ret.s, sizeof(ret.s), "%" PRIu64, bytes);
		return ret;
	}
	for (bytes /= 1024; units[u + 1] && bytes % 1024 == 0; u++)
		bytes /= 1024;
	snprintf(ret.s, sizeof(ret.s), "%" PRIu64 "%c", bytes, units[u]);
	return ret;
}

static int parse_size_within(const struct option_spec *spec, const char *value, const char *what,
			     uint64_t *ret, struct err *err)
{
	uint64_t size;
	int r;

	r = parse_size(value, what, &size, err);
	if (r)
		return r;
	if (size < spec->min || size > spec->max)
		return err_set(err, -ERANGE, ERR_USAGE, "%s must be between %s and %s, got %.80s",
			       what, size_text(spec->min).s, size_text(spec->max).s, value);
	*ret = size;
	return 0;
}

static int parse_choice(const struct option_spec *spec, const char *value, const char *what,
			unsigned int *ret, struct err *err)
{
	const char *words[32];
	const char *near;
	char list[400] = "";
	size_t n;

	for (n = 0; n < ARRAY_SIZE(words) && spec->choice(n); n++) {
		words[n] = spec->choice(n);
		if (strcmp(words[n], value) == 0) {
			*ret = (unsigned int)n;
			return 0;
		}
		if (n)
			strncat(list, ", ", sizeof(list) - strlen(list) - 1);
		strncat(list, words[n], sizeof(list) - strlen(list) - 1);
	}
	near = parse_nearest(value, words, n);
	if (near)
		err_set(err, -EINVAL, ERR_USAGE, "unknown value '%.80s' for %s (did you mean %s?)",
			value, what, near);
	else
		err_set(err, -EINVAL, ERR_USAGE, "unknown value '%.80s' for %s", value, what);
	if (spec->choice_hint && spec->choice_hint(value))
		err_hint(err, "%s", spec->choice_hint(value));
	else
		err_hint(err, "%s takes one of %s", what, list);
	return -EINVAL;
}

static int store_bool(const char *value, const char *what, bool *ret, struct err *err)
{
	bool yes = strcmp(value, "yes") == 0;

	if (!yes && strcmp(value, "no") != 0)
		return err_set(err, -EINVAL, ERR_USAGE, "%s is yes or no, not '%s'", what, value);
	*ret = yes;
	return 0;
}

/* Store @value, in the words of the command line, into the member of @spec in @base. */
static int option_store(const struct option_spec *spec, void *base, const char *value,
			const char *what, struct err *err)
{
	void *member = (char *)base + spec->offset;

	switch (spec->type) {
	case OPTION_FLAG:
	case OPTION_SWITCH:
		return store_bool(value, what, member, err);
	case OPTION_U64:
		return parse_number(spec, value, what, member, err);
	case OPTION_DURATION:
		return parse_duration(value, what, member, err);
	case OPTION_SIZE:
		return parse_size_within(spec, value, what, member, err);
	case OPTION_PERCENT:
		return parse_percent(value, what, member, err);
	case OPTION_STRING:
		if (!*value)
			return err_set(err, -EINVAL, ERR_USAGE, "%s must not be empty", what);
		*(const char **)member = value;
		return 0;
	case OPTION_CHOICE:
		return parse_choice(spec, value, what, member, err);
	case OPTION_PID:
		return parse_pid(value, what, member, err);
	case OPTION_PIDS:
		return add_pids(member, value, what, err);
	}
	return err_set(err, -EINVAL, ERR_RUNTIME, "internal error: %s has no type", what);
}

/*
 * The state of one run of the parser; what is found is written over argv from the front, which
 * never overtakes what is read.
 */
struct parser {
	const struct option_target *targets;
	size_t n_targets;
	const char *command; /* NULL for rbpf itself */
	char **argv;
	int argc;
	int next;	     /* index of the word to read next */
	const char *unknown; /* see struct option_rest */
	struct err *err;
};

struct found_option {
	const struct option_spec *spec;
	void *base; /* of the group's struct */
	bool no;    /* --no-x */
};

/* Call @fn for each option until it returns true; false if none did. */
typedef bool (*option_fn)(const struct option_spec *spec, void *base, void *arg);

static bool each_option(const struct option_target *targets, size_t n, option_fn fn, void *arg)
{
	const struct option_group *group;
	size_t t, g, i;

	for (t = 0; t < n; t++) {
		for (g = 0; g < targets[t].n_groups; g++) {
			group = targets[t].groups[g];
			for (i = 0; i < group->n; i++)
				if (fn(&group->options[i], (char *)targets[t].base + group->offset,
				       arg))
					return true;
		}
	}
	return false;
}

struct by_name {
	const char *name;
	size_t len;
	struct found_option found;
};

static bool match_name(const struct option_spec *spec, void *base, void *arg)
{
	struct by_name *want = arg;
	const char *name = want->name;
	size_t len = want->len;
	bool no = false;

	if (spec->type == OPTION_SWITCH && len > 3 && memcmp(name, "no-", 3) == 0) {
		no = true;
		name += 3;
		len -= 3;
	}
	if (strlen(spec->name) != len || memcmp(spec->name, name, len) != 0)
		return false;
	want->found = (struct found_option) { .spec = spec, .base = base, .no = no };
	return true;
}

struct by_letter {
	char letter;
	struct found_option found;
};

static bool match_letter(const struct option_spec *spec, void *base, void *arg)
{
	struct by_letter *want = arg;

	if (!spec->letter || spec->letter != want->letter)
		return false;
	want->found = (struct found_option) { .spec = spec, .base = base };
	return true;
}

/* All that can be typed after "--", for the nearest match. */
struct names {
	const char *words[128];
	char no[32][OPTION_NAME_MAX];
	size_t n, n_no;
};

static bool collect_name(const struct option_spec *spec, void *base, void *arg)
{
	struct names *names = arg;

	(void)base;
	if (names->n + 2 > ARRAY_SIZE(names->words))
		return true;
	names->words[names->n++] = spec->name;
	if (spec->type == OPTION_SWITCH && names->n_no < ARRAY_SIZE(names->no)) {
		snprintf(names->no[names->n_no], OPTION_NAME_MAX, "no-%s", spec->name);
		names->words[names->n++] = names->no[names->n_no++];
	}
	return false;
}

static int unknown_option(struct parser *p, const char *given, const char *name)
{
	struct names names = { .n = 0 };
	const char *near = NULL;
	char where[OPTION_NAME_MAX] = "";

	if (p->command)
		snprintf(where, sizeof(where), " for '%s'", p->command);
	if (name) {
		each_option(p->targets, p->n_targets, collect_name, &names);
		near = parse_nearest(name, names.words, names.n);
	}
	if (near)
		return err_set(p->err, -EINVAL, ERR_USAGE,
			       "unknown option '%s'%s (did you mean --%s?)", given, where, near);
	err_set(p->err, -EINVAL, ERR_USAGE, "unknown option '%s'%s", given, where);
	err_hint(p->err, "rbpf help%s%s", p->command ? " " : "", p->command ? p->command : "");
	return -EINVAL;
}

/* The next word as the value of option @what. */
static int take_value(struct parser *p, const struct option_spec *spec, const char *what,
		      const char **ret)
{
	const char *word = p->next < p->argc ? p->argv[p->next] : NULL;

	if (!word)
		return err_set(p->err, -EINVAL, ERR_USAGE, "%s needs a value (%s)", what,
			       spec->arg);
	/* "-5" is left to the parsers of numbers, which say what is wrong with it. */
	if (word[0] == '-' && word[1] && !isdigit((unsigned char)word[1])) {
		err_set(p->err, -EINVAL, ERR_USAGE, "%s needs a value (%s), got the option '%s'",
			what, spec->arg, word);
		if (spec->type == OPTION_STRING)
			err_hint(p->err, "write --%s=%s if that is the value", spec->name, word);
		return -EINVAL;
	}
	p->next++;
	*ret = word;
	return 0;
}

static int parse_long(struct parser *p, const char *word)
{
	const char *eq = strchr(word, '=');
	struct by_name want = { .name = word + 2 };
	const struct option_spec *spec;
	char what[OPTION_NAME_MAX];
	const char *value;
	int r;

	want.len = eq ? (size_t)(eq - want.name) : strlen(want.name);
	if (!each_option(p->targets, p->n_targets, match_name, &want)) {
		_cleanup_free_ char *name = strndup(want.name, want.len);
		_cleanup_free_ char *given = strndup(word, want.len ? want.len + 2 : 60);

		if (!name || !given)
			return err_oom(p->err);
		p->unknown = word;
		return unknown_option(p, given, name);
	}
	spec = want.found.spec;
	snprintf(what, sizeof(what), "--%s%s", want.found.no ? "no-" : "", spec->name);
	if (!option_takes_value(spec->type)) {
		if (eq)
			return err_set(p->err, -EINVAL, ERR_USAGE, "%s takes no value", what);
		value = want.found.no ? "no" : "yes";
	} else if (eq) {
		value = eq + 1;
	} else {
		r = take_value(p, spec, what, &value);
		if (r)
			return r;
	}
	return option_store(spec, want.found.base, value, what, p->err);
}

/* A word of short options: flags, the last of which may have a value. */
static int parse_short(struct parser *p, const char *word)
{
	const struct option_spec *spec;
	struct by_letter want;
	char what[OPTION_NAME_MAX];
	const char *value;
	const char *s;
	int r;

	for (s = word + 1; *s; s++) {
		want = (struct by_letter) { .letter = *s };
		if (!each_option(p->targets, p->n_targets, match_letter, &want)) {
			/* In "-al" it is the letter that is unknown, in "-pid" perhaps a dash. */
			snprintf(what, sizeof(what), "-%.*s", isalpha((unsigned char)*s) ? 1 : 60,
				 s);
			p->unknown = word[2] ? NULL : word;
			return unknown_option(p, s == word + 1 ? word : what,
					      s == word + 1 && word[2] ? word + 1 : NULL);
		}
		spec = want.found.spec;
		snprintf(what, sizeof(what), "--%s", spec->name);
		if (!option_takes_value(spec->type)) {
			r = option_store(spec, want.found.base, "yes", what, p->err);
			if (r)
				return r;
			continue;
		}
		value = s + 1;
		if (!*value) {
			r = take_value(p, spec, what, &value);
			if (r)
				return r;
		}
		return option_store(spec, want.found.base, value, what, p->err);
	}
	return 0;
}

int options_parse(const struct option_target *targets, size_t n, const char *command,
		  bool stop_at_word, int argc, char **argv, struct option_rest *rest,
		  struct err *err)
{
	struct parser p = {
		.targets = targets,
		.n_targets = n,
		.command = command,
		.argv = argv,
		.argc = argc,
		.next = 1,
		.err = err,
	};
	size_t n_rest = 0, n_before;
	char *word;
	int r;

	while (p.next < argc) {
		word = argv[p.next];
		if (word[0] != '-' || !word[1]) {
			if (stop_at_word)
				break;
			argv[n_rest++] = word;
			p.next++;
			continue;
		}
		p.next++;
		if (strcmp(word, "--") == 0)
			break;
		r = word[1] == '-' ? parse_long(&p, word) : parse_short(&p, word);
		if (r) {
			*rest = (struct option_rest) { .argv = argv,
						       .n_before = n_rest,
						       .unknown = p.unknown };
			return r;
		}
	}
	n_before = n_rest;
	while (p.next < argc)
		argv[n_rest++] = argv[p.next++];
	argv[n_rest] = NULL; /* at most argv[argc], which is NULL already */
	*rest = (struct option_rest) { .argv = argv, .n = n_rest, .n_before = n_before };
	return 0;
}

struct init_state {
	struct err *err;
	int r;
};

static bool init_one(const struct option_spec *spec, void *base, void *arg)
{
	struct init_state *state = arg;

	if (spec->initial)
		state->r = option_store(spec, base, spec->initial, spec->name, state->err);
	return state->r != 0;
}

int options_init(const struct option_target *targets, size_t n, struct err *err)
{
	struct init_state state = { .err = err };

	each_option(targets, n, init_one, &state);
	return state.r;
}

static bool release_one(const struct option_spec *spec, void *base, void *arg)
{
	(void)arg;
	if (spec->type == OPTION_PIDS)
		pid_list_deinit((struct pid_list *)((char *)base + spec->offset));
	return false;
}

void options_release(const struct option_target *targets, size_t n)
{
	each_option(targets, n, release_one, NULL);
}
