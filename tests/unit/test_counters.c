/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "profile/profile.h"
#include "rbpf_abi.h"

/* What a line of the table must have, so that the summary and a reader can use it. */
static void assert_sane_counter(int i)
{
	const struct profile_counter_info *c = &profile_counters[i];

	cr_assert_str_not_empty(c->key, "counter %d", i);
	cr_expect_eq(strspn(c->key, "abcdefghijklmnopqrstuvwxyz_"), strlen(c->key), "%s", c->key);
	cr_expect_leq(strlen(c->one), 28, "%s: num_of() cuts it", c->key);
	cr_expect_leq(strlen(c->many), 28, "%s: num_of() cuts it", c->key);
	cr_expect_str_not_empty(c->text, "%s", c->key);
	for (int k = 0; k < i; k++)
		cr_expect_str_neq(profile_counters[k].key, c->key, "two counters of one key");
}

Test(counters, table)
{
	for (int i = 0; i < COUNTER_COUNT; i++)
		assert_sane_counter(i);
}

/* session_counters() fills the first of them by the BPF programs' numbers. */
Test(counters, the_kernel_sides_come_first)
{
	cr_expect_eq((int)COUNTER_TICKS, (int)RBPF_CNT_TICKS);
	cr_expect_eq((int)COUNTER_NATIVE_LIMIT, (int)RBPF_CNT_NATIVE_CUT + RBPF_NATIVE_LIMIT);
	cr_expect_eq((int)COUNTER_NOT_FOLLOWED, (int)RBPF_COUNTERS);
}

Test(counters, all_are_in_json)
{
	struct profile_totals totals = { 0 };
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct json j = JSON_INIT(&out);
	json_t *root, *counters;

	for (int i = 0; i < COUNTER_COUNT; i++)
		totals.counters[i] = (uint64_t)i + 1;
	totals.counters[COUNTER_STACKS] = UINT64_MAX;
	json_object_begin(&j, NULL);
	profile_counters_json(&totals, &j);
	json_object_end(&j);
	root = json_loads(buf_str(&out), 0, NULL);
	cr_assert(root, "%s", buf_str(&out));
	counters = json_object_get(root, "counters");
	cr_expect_eq(json_object_size(counters), COUNTER_COUNT);
	for (int i = 0; i < COUNTER_COUNT; i++)
		cr_expect_eq(json_integer_value(json_object_get(counters, profile_counters[i].key)),
			     i == COUNTER_STACKS ? INT64_MAX : i + 1, "%s",
			     profile_counters[i].key);
	json_decref(root);
}

Test(counters, what_matters)
{
	struct profile_totals totals = { 0 };

	cr_expect_not(profile_counter_matters(&totals, COUNTER_LOST_LIFE), "0");
	totals.counters[COUNTER_LOST_LIFE] = 1;
	cr_expect(profile_counter_matters(&totals, COUNTER_LOST_LIFE));
	totals.counters[COUNTER_TICKS] = 1000;
	cr_expect_not(profile_counter_matters(&totals, COUNTER_TICKS), "no loss");
	totals.counters[COUNTER_READ_LIMIT] = 10;
	cr_expect_not(profile_counter_matters(&totals, COUNTER_READ_LIMIT), "1 % of the ticks");
	totals.counters[COUNTER_READ_LIMIT] = 11;
	cr_expect(profile_counter_matters(&totals, COUNTER_READ_LIMIT), "more than 1 %%");
}
