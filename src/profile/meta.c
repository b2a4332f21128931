/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/meta.h"

#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"
#include "profile/profile.h"
#include "rbpf_file.h"

enum field_type { FIELD_STR, FIELD_U32, FIELD_U64 };

struct meta_field {
	enum field_type type;
	const char *key;
	size_t offset;
};

#define META(name)   #name, offsetof(struct profile_meta, name)
#define TOTALS(name) #name, offsetof(struct profile_totals, name)

/* The two start times are in the file header. */
static const struct meta_field meta_fields[] = {
	{ FIELD_STR, META(rbpf_version) }, { FIELD_STR, META(command) },
	{ FIELD_STR, META(hostname) },	   { FIELD_STR, META(kernel) },
	{ FIELD_STR, META(arch) },	   { FIELD_STR, META(mode) },
	{ FIELD_U32, META(frequency) },	   { FIELD_U32, META(cpus) },
	{ FIELD_U32, META(by_second) },
};

static const struct meta_field totals_fields[] = {
	{ FIELD_U64, TOTALS(end_monotonic_ns) },
	{ FIELD_U64, TOTALS(samples) },
	{ FIELD_U64, TOTALS(lost) },
	{ FIELD_U64, TOTALS(truncated) },
	{ FIELD_U64, TOTALS(unresolved) },
	{ FIELD_U64, TOTALS(failed) },
	{ FIELD_U64, TOTALS(no_ruby) },
	{ FIELD_U64, TOTALS(native_samples) },
	{ FIELD_U64, TOTALS(native_gaps) },
	{ FIELD_U64, TOTALS(cpu_sampled_ns) },
	{ FIELD_U64, TOTALS(gc_ns) },
	{ FIELD_U64, TOTALS(gc_unknown_ns) },
	{ FIELD_U64, TOTALS(cpu_kernel_ns) },
	{ FIELD_U64, TOTALS(rbpf_cpu_ns) },
	{ FIELD_U64, TOTALS(rbpf_start_cpu_ns) },
	{ FIELD_U64, TOTALS(kernel_ns_per_sample) },
	{ FIELD_U64, TOTALS(other_ticks) },
	{ FIELD_U64, TOTALS(other_ticks_ns) },
	{ FIELD_U64, TOTALS(switches) },
	{ FIELD_U64, TOTALS(switches_ns) },
	{ FIELD_U64, TOTALS(wakeups) },
	{ FIELD_U64, TOTALS(wakeups_ns) },
	{ FIELD_U64, TOTALS(bpf_ns) },
	{ FIELD_U64, TOTALS(machine_busy_ns) },
	{ FIELD_U64, TOTALS(machine_stolen_ns) },
	{ FIELD_U64, TOTALS(lowest_hz) },
	{ FIELD_U64, TOTALS(lowered_ns) },
};

/* Six strings of it, each byte as U+FFFD, stay below RBPF_FILE_MAX_JSON. */
#define META_STRING_MAX (32u << 10)

static void encode_str(struct json *j, const char *key, const char *value)
{
	_cleanup_buf_ struct buf clean = BUF_INIT;

	if (!value)
		return;
	utf8_sanitise(&clean, value, strnlen(value, META_STRING_MAX));
	if (buf_failed(&clean))
		j->out->failed = true;
	json_str(j, key, buf_str(&clean));
}

static void encode(const struct meta_field *fields, size_t n, const void *base, struct json *j)
{
	for (size_t i = 0; i < n; i++) {
		const char *value = (const char *)base + fields[i].offset;

		switch (fields[i].type) {
		case FIELD_STR:
			encode_str(j, fields[i].key, *(const char *const *)value);
			break;
		case FIELD_U32:
			json_u64(j, fields[i].key, *(const uint32_t *)value);
			break;
		case FIELD_U64:
			json_u64(j, fields[i].key, json_clamp(*(const uint64_t *)value));
			break;
		}
	}
}

/* A JSON string may spell any control character with an escape. */
static int decode_str(const json_t *value, char **ret)
{
	_cleanup_buf_ struct buf clean = BUF_INIT;
	char *copy;

	if (!json_is_string(value) || *ret)
		return -EBADMSG;
	utf8_sanitise(&clean, json_string_value(value), json_string_length(value));
	copy = buf_failed(&clean) ? NULL : strdup(buf_str(&clean));
	if (!copy)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

static int decode_u64(const json_t *value, uint64_t max, uint64_t *ret)
{
	json_int_t v;

	if (!json_is_integer(value))
		return -EBADMSG;
	v = json_integer_value(value);
	if (v < 0 || (uint64_t)v > max)
		return -EBADMSG;
	*ret = (uint64_t)v;
	return 0;
}

static int decode_field(const struct meta_field *field, const json_t *value, void *base)
{
	char *to = (char *)base + field->offset;
	uint64_t v;
	int err;

	if (field->type == FIELD_STR)
		return decode_str(value, (char **)to);
	err = decode_u64(value, field->type == FIELD_U32 ? UINT32_MAX : UINT64_MAX, &v);
	if (err)
		return err;
	if (field->type == FIELD_U32)
		*(uint32_t *)to = (uint32_t)v;
	else
		*(uint64_t *)to = v;
	return 0;
}

static void cleanup_json(json_t **json)
{
	json_decref(*json);
}

static int load(const void *data, size_t len, json_t **ret)
{
	json_t *root;

	if (len > RBPF_FILE_MAX_JSON)
		return -EBADMSG;
	root = json_loadb(data, len, 0, NULL);
	if (!json_is_object(root)) {
		json_decref(root);
		return -EBADMSG;
	}
	*ret = root;
	return 0;
}

static int decode(const struct meta_field *fields, size_t n, const json_t *root, void *base)
{
	for (size_t i = 0; i < n; i++) {
		const json_t *value = json_object_get(root, fields[i].key);
		int err = value ? decode_field(&fields[i], value, base) : 0;

		if (err)
			return err;
	}
	return 0;
}

static int decode_counters(const json_t *root, uint64_t *ret)
{
	const json_t *counters = json_object_get(root, "counters"), *value;
	int i, r = 0;

	if (counters && !json_is_object(counters))
		return -EBADMSG;
	for (i = 0; i < COUNTER_COUNT && !r; i++) {
		value = json_object_get(counters, profile_counters[i].key);
		if (value)
			r = decode_u64(value, UINT64_MAX, &ret[i]);
	}
	return r;
}

void meta_events_json(const struct profile_meta *meta, struct json *j)
{
	json_array_begin(j, "events");
	for (uint32_t i = 0; i < meta->n_events; i++) {
		const struct profile_event *event = &meta->events[i];

		json_object_begin(j, NULL);
		json_str(j, "name", event->name);
		json_str(j, "unit", value_unit_name(event->unit));
		json_u64(j, "period", json_clamp(event->period));
		json_object_end(j);
	}
	json_array_end(j);
}

static enum value_unit unit_of(const char *name)
{
	for (unsigned int i = 0; i < VALUE_UNITS; i++)
		if (!strcmp(value_unit_name(i), name))
			return i;
	return UNIT_COUNT;
}

static bool is_event_name(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_");

	return len && !name[len] && len < EVENT_MAX_NAME;
}

static int decode_event(const json_t *value, struct profile_event *ret)
{
	const char *name = json_string_value(json_object_get(value, "name"));
	const char *unit = json_string_value(json_object_get(value, "unit"));
	const json_t *period = json_object_get(value, "period");

	if (!name || !unit || !is_event_name(name))
		return -EBADMSG;
	*ret = (struct profile_event) { .unit = unit_of(unit) };
	memcpy(ret->name, name, strlen(name));
	return period ? decode_u64(period, UINT64_MAX, &ret->period) : 0;
}

static int decode_events(const json_t *root, struct profile_meta *ret)
{
	const json_t *events = json_object_get(root, "events");
	int r = 0;

	if (!events)
		return 0;
	if (!json_is_array(events) || json_array_size(events) > PROFILE_MAX_EVENTS)
		return -EBADMSG;
	for (size_t i = 0; i < json_array_size(events) && !r; i++)
		r = decode_event(json_array_get(events, i), &ret->events[i]);
	ret->n_events = r ? 0 : (uint32_t)json_array_size(events);
	return r;
}

void meta_encode(const struct profile_meta *meta, struct buf *out)
{
	struct json j = JSON_INIT(out);

	json_object_begin(&j, NULL);
	encode(meta_fields, ARRAY_SIZE(meta_fields), meta, &j);
	if (meta->n_events)
		meta_events_json(meta, &j);
	json_object_end(&j);
}

void totals_encode(const struct profile_totals *totals, struct buf *out)
{
	struct json j = JSON_INIT(out);

	json_object_begin(&j, NULL);
	encode(totals_fields, ARRAY_SIZE(totals_fields), totals, &j);
	profile_counters_json(totals, &j);
	json_object_end(&j);
}

int meta_decode(const void *data, size_t len, struct profile_meta *ret)
{
	_cleanup_(cleanup_json) json_t *root = NULL;
	int r = load(data, len, &root);

	if (!r)
		r = decode(meta_fields, ARRAY_SIZE(meta_fields), root, ret);
	return r ? r : decode_events(root, ret);
}

int totals_decode(const void *data, size_t len, struct profile_totals *ret)
{
	_cleanup_(cleanup_json) json_t *root = NULL;
	int r = load(data, len, &root);

	if (!r)
		r = decode(totals_fields, ARRAY_SIZE(totals_fields), root, ret);
	return r ? r : decode_counters(root, ret->counters);
}
