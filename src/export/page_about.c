/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/page_about.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"
#include "export/flame_facts.h"
#include "profile/profile.h"

void page_make_title(const struct profile *p, const struct flame_facts *facts,
		     const struct page_options *opts, const char *what, struct buf *title)
{
	if (opts->title) {
		utf8_sanitise(title, opts->title, strlen(opts->title));
		return;
	}
	flame_facts_programs(p, facts, title);
	buf_addf(title, ": %s", what);
}

static void add_text(struct json *j, const char *key, const char *s)
{
	_cleanup_buf_ struct buf clean = BUF_INIT;

	if (!s)
		return;
	utf8_sanitise(&clean, s, strlen(s));
	json_str(j, key, buf_str(&clean));
	j->out->failed |= clean.failed;
}

static void add_filters(const struct buf *filters, struct json *j)
{
	json_array_begin(j, "filters");
	for (size_t i = 0; filters && i < filters->len; i += strlen(filters->data + i) + 1)
		add_text(j, NULL, filters->data + i);
	json_array_end(j);
}

static void take_piece(void *arg, struct buf *piece)
{
	struct json *j = arg;

	json_str(j, NULL, buf_str(piece));
	j->out->failed |= piece->failed;
	buf_reset(piece);
}

void page_add_about(const struct profile *p, const struct flame_facts *facts,
		    const struct page_options *opts, const struct buf *title, struct json *j)
{
	const struct flame_facts_text text = {
		.profile = p,
		.facts = facts,
		.filter = opts->filter,
		.piece = take_piece,
		.arg = j,
	};

	json_str(j, "title", buf_str(title));
	json_array_begin(j, "facts");
	flame_facts_tell(&text);
	json_array_end(j);
	json_array_begin(j, "warnings");
	flame_facts_tell_defects(&text);
	json_array_end(j);
	json_str(j, "event", profile_event(p)->name);
	json_bool(j, "usual_event", p->event == 0);
	add_filters(opts->filters, j);
	json_str(j, "unit", value_unit_name(profile_event(p)->unit));
	json_str(j, "generator", "rbpf " RBPF_VERSION);
	add_text(j, "command", p->meta.command);
	add_text(j, "drawn_by", opts->command);
	add_text(j, "recording", opts->recording);
	add_text(j, "hostname", p->meta.hostname);
	json_u64(j, "start_realtime_ns", json_clamp(p->meta.start_realtime_ns));
	json_u64(j, "total", json_clamp(facts->value));
	json_u64(j, "samples", json_clamp(facts->samples));
}
