/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/firefox_tables.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/json.h"
#include "export/function.h"
#include "profile/reason.h"
#include "view/label.h"

int firefox_tables_init(const struct profile *p, const struct view_filter *f,
			struct firefox_tables *ret)
{
	uint32_t n = 0;
	int r;

	*ret = (struct firefox_tables) { .profile = p };
	r = shown_init(p, f, &ret->shown);
	if (!r)
		r = groups_init(p, GROUP_BY_FUNCTION, &ret->functions);
	if (!r)
		ret->index = calloc(p->n_stacks + 1, sizeof(*ret->index));
	if (!r && !ret->index)
		r = -ENOMEM;
	for (size_t i = 1; !r && i < p->n_stacks; i++)
		if (ret->shown.nearest[i] == i)
			ret->index[i] = n++;
	if (r)
		firefox_tables_deinit(ret);
	return r;
}

void firefox_tables_deinit(struct firefox_tables *t)
{
	shown_deinit(&t->shown);
	groups_deinit(&t->functions);
	intern_deinit(&t->strings);
	free(t->index);
	t->index = NULL;
}

uint32_t firefox_string(struct firefox_tables *t, struct json *j, const char *s)
{
	uint32_t id = 0;

	if (intern_str(&t->strings, s, &id))
		j->out->failed = true;
	return id;
}

void firefox_add_time(const struct firefox_tables *t, struct json *j, const char *key, uint64_t ts)
{
	uint64_t start = t->profile->meta.start_monotonic_ns;

	json_decimal(j, key, ts > start ? ts - start : 0, FIREFOX_MS_DECIMALS);
}

void firefox_add_categories(struct json *j)
{
	static const struct {
		const char *name, *color;
	} categories[] = {
		[FIREFOX_OTHER] = { "Other", "grey" },
		[FIREFOX_RUBY] = { "Ruby", "red" },
		[FIREFOX_CFUNC] = { "C method", "yellow" },
		[FIREFOX_JIT] = { "JIT", "green" },
		[FIREFOX_GC] = { "GC", "purple" },
		[FIREFOX_NATIVE] = { "Native", "blue" },
		[FIREFOX_KERNEL] = { "Kernel", "orange" },
		[FIREFOX_WAIT] = { "Waiting", "lightblue" },
		[FIREFOX_IDLE] = { "Idle", "transparent" },
	};

	json_array_begin(j, "categories");
	for (size_t i = 0; i < ARRAY_SIZE(categories); i++) {
		json_object_begin(j, NULL);
		json_str(j, "name", categories[i].name);
		json_str(j, "color", categories[i].color);
		json_array_begin(j, "subcategories");
		json_str(j, NULL, "Other");
		json_array_end(j);
		json_object_end(j);
	}
	json_array_end(j);
}

void firefox_add_libs(const struct profile *p, struct json *j)
{
	json_array_begin(j, "libs");
	for (size_t i = 0; i < p->n_modules; i++) {
		const char *path = profile_str(p, p->modules[i].path);

		json_object_begin(j, NULL);
		json_str(j, "arch", p->meta.arch ? p->meta.arch : "");
		json_str(j, "name", label_basename(path));
		json_str(j, "path", path);
		json_str(j, "debugName", label_basename(path));
		json_str(j, "debugPath", path);
		json_str(j, "breakpadId", "");
		json_str(j, "codeId", profile_str(p, p->modules[i].build_id));
		json_object_end(j);
	}
	json_array_end(j);
}

/* ---- shared ---- */

/* A column in which each of @n rows has the same value: null if it is negative. */
static void add_constant(struct json *j, const char *name, size_t n, int64_t value)
{
	json_array_begin(j, name);
	for (size_t i = 0; i < n; i++) {
		if (value < 0)
			json_nil(j, NULL);
		else
			json_i64(j, NULL, value);
	}
	json_array_end(j);
}

static enum firefox_category category_of(const struct profile_frame *f)
{
	switch (f->kind) {
	case FRAME_RUBY:
		return f->flags & FRAME_JIT ? FIREFOX_JIT : FIREFOX_RUBY;
	case FRAME_CFUNC:
		return FIREFOX_CFUNC;
	case FRAME_NATIVE:
		return FIREFOX_NATIVE;
	case FRAME_KERNEL:
		return FIREFOX_KERNEL;
	case FRAME_GC:
		return FIREFOX_GC;
	case FRAME_WAIT:
		return f->reason == REASON_WAIT_IDLE ? FIREFOX_IDLE : FIREFOX_WAIT;
	default:
		return FIREFOX_OTHER;
	}
}

static void add_stacks(const struct firefox_tables *t, struct json *j)
{
	const struct profile *p = t->profile;
	size_t n = 0;

	json_object_begin(j, "stackTable");
	json_array_begin(j, "frame");
	for (uint32_t i = 1; i < p->n_stacks; i++) {
		if (t->shown.nearest[i] != i)
			continue;
		json_u64(j, NULL, p->stacks[i].frame);
		n++;
	}
	json_array_end(j);
	/* How far the callers' stack is before; 0: it has none. */
	json_array_begin(j, "prefixOffset");
	for (uint32_t i = 1; i < p->n_stacks; i++) {
		uint32_t callers;

		if (t->shown.nearest[i] != i)
			continue;
		callers = shown_callers(&t->shown, i);
		json_u64(j, NULL, callers ? t->index[i] - t->index[callers] : 0);
	}
	json_array_end(j);
	json_u64(j, "length", n);
	json_object_end(j);
}

static void add_frames(const struct firefox_tables *t, struct json *j)
{
	const struct profile *p = t->profile;
	const size_t n = p->n_frames;

	json_object_begin(j, "frameTable");
	json_array_begin(j, "address");
	for (size_t i = 0; i < n; i++)
		json_i64(j, NULL,
			 p->frames[i].module == PROFILE_NONE
				 ? -1
				 : (int64_t)json_clamp(p->frames[i].address));
	json_array_end(j);
	add_constant(j, "inlineDepth", n, 0);
	json_array_begin(j, "category");
	for (size_t i = 0; i < n; i++)
		json_u64(j, NULL, category_of(&p->frames[i]));
	json_array_end(j);
	add_constant(j, "subcategory", n, 0);
	json_array_begin(j, "func");
	for (size_t i = 0; i < n; i++)
		json_u64(j, NULL, t->functions.of_frame[i]);
	json_array_end(j);
	add_constant(j, "nativeSymbol", n, -1);
	add_constant(j, "innerWindowID", n, 0);
	json_array_begin(j, "line");
	for (size_t i = 0; i < n; i++) {
		if (p->frames[i].line && p->frames[i].kind != FRAME_CFUNC)
			json_u64(j, NULL, p->frames[i].line);
		else
			json_nil(j, NULL);
	}
	json_array_end(j);
	add_constant(j, "column", n, -1);
	add_constant(j, "originalLocation", n, -1);
	json_u64(j, "length", n);
	json_object_end(j);
}

/*
 * Which functions the profiler's filter of stacks takes for JavaScript: methods in Ruby, and with
 * them what stands between them.
 */
static bool is_ruby(uint32_t kind)
{
	return kind == FRAME_RUBY;
}

static bool stands_with_ruby(uint32_t kind)
{
	return kind != FRAME_NATIVE && kind != FRAME_KERNEL && kind != FRAME_GAP;
}

static void add_flags(const struct firefox_tables *t, const char *name, bool (*is)(uint32_t kind),
		      struct json *j)
{
	json_array_begin(j, name);
	for (size_t i = 0; i < t->functions.n; i++)
		json_bool(j, NULL, is(t->profile->frames[t->functions.frame[i]].kind));
	json_array_end(j);
}

/* The index of a function's file in @files, of those functions that are in no module. */
static int source_of(const struct firefox_tables *t, uint32_t group, struct intern *files,
		     int64_t *ret)
{
	const struct profile_frame *f = &t->profile->frames[t->functions.frame[group]];
	struct function function;
	uint32_t id;
	int r;

	*ret = -1;
	function_of_frame(t->profile, t->functions.frame[group], &function);
	if (!*function.file || !f->file)
		return 0;
	r = intern_str(files, function.file, &id);
	if (!r)
		*ret = id;
	return r;
}

static void add_functions(struct firefox_tables *t, struct intern *files, struct json *j)
{
	const struct profile *p = t->profile;
	const size_t n = t->functions.n;
	struct function f;
	int64_t source;

	json_object_begin(j, "funcTable");
	json_array_begin(j, "name");
	for (size_t i = 0; i < n; i++) {
		function_of_frame(p, t->functions.frame[i], &f);
		json_u64(j, NULL, firefox_string(t, j, f.name));
	}
	json_array_end(j);
	add_flags(t, "isJS", is_ruby, j);
	add_flags(t, "relevantForJS", stands_with_ruby, j);
	json_array_begin(j, "resource");
	for (size_t i = 0; i < n; i++) {
		uint32_t module = p->frames[t->functions.frame[i]].module;

		json_i64(j, NULL, module == PROFILE_NONE ? -1 : (int64_t)module);
	}
	json_array_end(j);
	json_array_begin(j, "source");
	for (size_t i = 0; i < n; i++) {
		if (source_of(t, (uint32_t)i, files, &source))
			j->out->failed = true;
		if (source < 0)
			json_nil(j, NULL);
		else
			json_i64(j, NULL, source);
	}
	json_array_end(j);
	json_array_begin(j, "lineNumber");
	for (size_t i = 0; i < n; i++) {
		function_of_frame(p, t->functions.frame[i], &f);
		if (f.line)
			json_u64(j, NULL, f.line);
		else
			json_nil(j, NULL);
	}
	json_array_end(j);
	add_constant(j, "columnNumber", n, -1);
	add_constant(j, "originalLocation", n, -1);
	json_u64(j, "length", n);
	json_object_end(j);
}

/* The modules. */
static void add_resources(struct firefox_tables *t, struct json *j)
{
	const struct profile *p = t->profile;
	const size_t n = p->n_modules;

	json_object_begin(j, "resourceTable");
	json_array_begin(j, "lib");
	for (size_t i = 0; i < n; i++)
		json_u64(j, NULL, i);
	json_array_end(j);
	json_array_begin(j, "name");
	for (size_t i = 0; i < n; i++)
		json_u64(j, NULL,
			 firefox_string(t, j, label_basename(profile_str(p, p->modules[i].path))));
	json_array_end(j);
	add_constant(j, "host", n, -1);
	add_constant(j, "type", n, 1); /* a library */
	json_u64(j, "length", n);
	json_object_end(j);
}

static void add_sources(struct firefox_tables *t, const struct intern *files, struct json *j)
{
	json_object_begin(j, "sources");
	add_constant(j, "id", files->count, -1);
	json_array_begin(j, "filename");
	for (uint32_t i = 0; i < files->count; i++)
		json_u64(j, NULL, firefox_string(t, j, intern_get(files, i, NULL)));
	json_array_end(j);
	add_constant(j, "startLine", files->count, 1);
	add_constant(j, "startColumn", files->count, 1);
	add_constant(j, "sourceMapURL", files->count, -1);
	add_constant(j, "content", files->count, -1);
	json_u64(j, "length", files->count);
	json_object_end(j);
}

/* A table without rows. @columns end with NULL. */
static void add_empty(struct json *j, const char *name, const char *const *columns)
{
	json_object_begin(j, name);
	for (; *columns; columns++)
		add_constant(j, *columns, 0, 0);
	json_u64(j, "length", 0);
	json_object_end(j);
}

int firefox_add_shared(struct firefox_tables *t, struct json *j)
{
	static const char *const symbols[] = { "libIndex", "address", "name", "functionSize",
					       NULL };
	static const char *const locations[] = { "source", "line", "column", NULL };
	_cleanup_intern_ struct intern files = INTERN_INIT;

	json_object_begin(j, "shared");
	add_stacks(t, j);
	add_frames(t, j);
	add_functions(t, &files, j);
	add_resources(t, j);
	add_empty(j, "nativeSymbols", symbols);
	add_sources(t, &files, j);
	add_empty(j, "sourceLocationTable", locations);
	json_array_begin(j, "stringArray");
	for (uint32_t i = 0; i < t->strings.count; i++)
		json_str(j, NULL, intern_get(&t->strings, i, NULL));
	json_array_end(j);
	json_object_end(j);
	return buf_failed(j->out) ? -ENOMEM : 0;
}
