/* SPDX-License-Identifier: GPL-2.0-only */
/* The rules of rbpf check. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "report/diff.h"
#include "view/filter.h"

int check_rule_parse(const char *text, struct check_rule *ret, struct err *err)
{
	const char *sign = strrchr(text, '>');
	int r;

	if (!sign) {
		err_set(err, -EINVAL, ERR_USAGE, "--fail-on '%.200s' is not METHOD>PERCENT", text);
		err_hint(err, "--fail-on 'Cart#total>5%%'");
		return -EINVAL;
	}
	ret->pattern = strndup(text, (size_t)(sign - text));
	if (!ret->pattern)
		return err_oom(err);
	r = parse_percent(sign + 1, "--fail-on", &ret->threshold, err);
	if (r)
		return r;
	ret->threshold /= 100;
	return view_filter_regex(&ret->method, &ret->has_method, ret->pattern, "--fail-on", err);
}

void check_rule_deinit(struct check_rule *rule)
{
	if (rule->has_method)
		regfree(&rule->method);
	rule->has_method = false;
	free(rule->pattern);
	rule->pattern = NULL;
}

static bool breaks(const struct compare_row *row, const struct check_rule *rule)
{
	return row->low > rule->threshold;
}

/* Put those that break the rule first, in the order that all are in. Returns how many do. */
static size_t put_broken_first(struct comparison *c, const struct check_rule *rule)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_rows; i++) {
		struct compare_row row = c->rows[i];

		if (!breaks(&row, rule))
			continue;
		memmove(&c->rows[n + 1], &c->rows[n], (i - n) * sizeof(row));
		c->rows[n++] = row;
	}
	return n;
}

size_t check_rows(struct diff *d, const struct check_rule *rule)
{
	struct comparison *c = d->comparison;
	size_t n = 0;

	for (size_t i = 0; i < c->n_rows; i++) {
		const char *label = intern_get(&c->texts, c->rows[i].label, NULL);

		if (!regexec(&rule->method, label, 0, NULL, 0))
			c->rows[n++] = c->rows[i];
	}
	c->n_rows = n;
	d->options.by_delta = true;
	d->options.z = compare_z_of_many(n);
	comparison_finish(c, &d->options);
	return put_broken_first(c, rule);
}
