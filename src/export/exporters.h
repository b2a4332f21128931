/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The functions behind the table in export.c: one a format, in the file of its name.
 */
#ifndef RBPF_EXPORT_EXPORTERS_H
#define RBPF_EXPORT_EXPORTERS_H

struct buf;
struct err;
struct export_options;
struct profile;

int export_folded(const struct profile *p, const struct export_options *opts, struct buf *out,
		  struct err *err);
int export_json(const struct profile *p, const struct export_options *opts, struct buf *out,
		struct err *err);
int export_speedscope(const struct profile *p, const struct export_options *opts, struct buf *out,
		      struct err *err);
int export_pprof(const struct profile *p, const struct export_options *opts, struct buf *out,
		 struct err *err);
int export_callgrind(const struct profile *p, const struct export_options *opts, struct buf *out,
		     struct err *err);
int export_perf_script(const struct profile *p, const struct export_options *opts, struct buf *out,
		       struct err *err);
int export_firefox(const struct profile *p, const struct export_options *opts, struct buf *out,
		   struct err *err);
int export_chrome(const struct profile *p, const struct export_options *opts, struct buf *out,
		  struct err *err);
int export_stackprof(const struct profile *p, const struct export_options *opts, struct buf *out,
		     struct err *err);
int export_sampling_prof(const struct profile *p, const struct export_options *opts,
			 struct buf *out, struct err *err);
int export_dot(const struct profile *p, const struct export_options *opts, struct buf *out,
	       struct err *err);
int speedscope_warn(const struct profile *p, const struct export_options *opts, struct buf *text);
int perf_script_warn(const struct profile *p, const struct export_options *opts, struct buf *text);

int export_flame(const struct profile *p, const struct export_options *opts, struct buf *out,
		 struct err *err);

#endif
