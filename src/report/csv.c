/* SPDX-License-Identifier: GPL-2.0-only */
/* The report as CSV. */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "report/fields.h"
#include "report/report.h"
#include "view/gc.h"

/* RFC 4180: quoted where needed, quotes doubled. */
static void csv_text(struct buf *out, const char *s)
{
	if (!strpbrk(s, ",\"\r\n")) {
		buf_addstr(out, s);
		return;
	}
	buf_addch(out, '"');
	for (; *s; s++) {
		if (*s == '"')
			buf_addch(out, '"');
		buf_addch(out, *s);
	}
	buf_addch(out, '"');
}

void field_add_csv(struct field_value v, struct buf *out)
{
	if (v.unknown)
		buf_addstr(out, "unknown");
	else if (v.str)
		csv_text(out, v.str);
	else
		buf_add_u64(out, v.num);
}

static void csv_row(const struct report *r, const enum report_field *fields,
		    const struct flat_row *row, struct buf *out)
{
	_cleanup_buf_ struct buf scratch = BUF_INIT;
	size_t i;

	for (i = 0; fields[i] != FIELD_END; i++) {
		if (i)
			buf_addch(out, ',');
		field_add_csv(field_of_row(r, row, fields[i], &scratch), out);
	}
	buf_addstr(out, "\r\n");
}

static void csv_rows(const struct report *r, const struct flat *flat, struct buf *out)
{
	enum report_field fields[FIELDS_MAX];
	size_t i;

	fields_of_rows(r, fields);
	for (i = 0; fields[i] != FIELD_END; i++)
		buf_addf(out, "%s%s", i ? "," : "", field_key(r, fields[i]).s);
	buf_addstr(out, "\r\n");
	for (i = 0; i < report_rows_shown(r, flat); i++)
		csv_row(r, fields, &flat->rows[i], out);
}

int report_csv(const struct report *r, struct buf *out, struct err *err)
{
	_cleanup_flat_ struct flat flat = FLAT_INIT;
	int ret;

	ret = report_flat(r, &flat, err);
	if (ret)
		return ret;
	csv_rows(r, &flat, out);
	return buf_failed(out) ? err_oom(err) : 0;
}

int report_gc_csv(const struct report *r, struct buf *out, struct err *err)
{
	_cleanup_gc_report_ struct gc_report gc = GC_REPORT_INIT;
	int ret;

	ret = report_gc_build(r, &gc, err);
	if (ret)
		return ret;
	/* A table of causes has no place to say so. */
	if (gc_report_is_unknown(&gc))
		return err_set(err, -ENODATA, ERR_EMPTY,
			       "garbage collection in %s is unknown: the collector of the Ruby is "
			       "not known",
			       recording_name(r->rec));
	csv_rows(r, &gc.causes, out);
	return buf_failed(out) ? err_oom(err) : 0;
}
