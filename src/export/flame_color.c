/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ruby code has warm colours, from red for the program's own to yellow for what comes with the
 * interpreter; what is written in C or below has cold ones. So the first look tells how much of a
 * picture is Ruby, and the second whose. What is no code, but stands for it, is grey.
 */
#include "export/flame_color.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/intern.h"
#include "export/flame_gems.h"
#include "export/flame_states.h"
#include "profile/profile.h"
#include "view/filter.h"
#include "view/flat.h"
#include "view/gem.h"
#include "view/label.h"
#include "view/sample_kind.h"
#include "view/tree.h"

static const struct {
	const char *name;
	struct hsl light, dark;
} origins[ORIGIN_COUNT] = {
	[ORIGIN_APP] = { "Ruby app", { 5, 84, 70 }, { 4, 55, 44 } },
	[ORIGIN_GEM] = { "Ruby gem", { 27, 90, 67 }, { 25, 64, 36 } },
	[ORIGIN_STDLIB] = { "Ruby stdlib", { 39, 90, 64 }, { 36, 66, 31 } },
	[ORIGIN_CORE] = { "Ruby core", { 50, 85, 63 }, { 46, 64, 28 } },
	[ORIGIN_CFUNC] = { "C method", { 92, 48, 64 }, { 104, 32, 33 } },
	[ORIGIN_NATIVE] = { "native", { 210, 70, 75 }, { 213, 46, 42 } },
	[ORIGIN_GC] = { "GC", { 282, 52, 77 }, { 284, 32, 48 } },
	[ORIGIN_KERNEL] = { "kernel", { 175, 38, 65 }, { 180, 40, 31 } },
	[ORIGIN_FIBER] = { "fiber boundary", { 40, 10, 82 }, { 40, 8, 36 } },
	[ORIGIN_UNKNOWN] = { "cut/unknown", { 220, 6, 74 }, { 220, 5, 41 } },
	[ORIGIN_GAP] = { "native frames missing", { 220, 3, 62 }, { 220, 3, 29 } },
	[ORIGIN_RUNNABLE] = { "waits for a CPU", { 340, 60, 80 }, { 340, 34, 40 } },
	[ORIGIN_GVL] = { "waits for the GVL", { 320, 62, 68 }, { 320, 48, 36 } },
	[ORIGIN_LOCK] = { "waits for a lock", { 300, 42, 76 }, { 300, 30, 40 } },
	[ORIGIN_IO] = { "waits for I/O", { 195, 60, 70 }, { 197, 50, 30 } },
	[ORIGIN_SLEEP] = { "sleeps", { 230, 30, 84 }, { 230, 20, 34 } },
	[ORIGIN_WAIT] = { "waits", { 250, 30, 78 }, { 250, 22, 40 } },
	[ORIGIN_IDLE] = { "idle", { 220, 8, 88 }, { 220, 6, 26 } },
	[ORIGIN_NOT_RECORDED] = { "not recorded", { 220, 5, 80 }, { 220, 4, 35 } },
};

/* The same code, compiled: the same colour, but deeper. */
#define N_RUBY_ORIGINS (ORIGIN_CORE + 1)
#define FIRST_JIT      ORIGIN_COUNT /* category */

static const struct {
	const char *name;
	struct hsl light, dark;
} jit_origins[N_RUBY_ORIGINS] = {
	[ORIGIN_APP] = { "Ruby app, JIT", { 358, 84, 61 }, { 358, 60, 33 } },
	[ORIGIN_GEM] = { "Ruby gem, JIT", { 23, 92, 55 }, { 22, 70, 28 } },
	[ORIGIN_STDLIB] = { "Ruby stdlib, JIT", { 36, 92, 51 }, { 33, 70, 24 } },
	[ORIGIN_CORE] = { "Ruby core, JIT", { 46, 90, 50 }, { 43, 70, 22 } },
};
_Static_assert(FIRST_JIT + N_RUBY_ORIGINS <= FLAME_MAX_CATEGORIES, "all kinds have a category");

void flame_category_add(struct flame_category *category, uint64_t value, uint64_t samples)
{
	category->self_value += value;
	category->self_samples += samples;
	category->used |= samples > 0;
}

/* Packages have a colour of their own only as long as colours can be told apart. */
#define N_HUES 12
_Static_assert(N_HUES + 1 <= FLAME_MAX_CATEGORIES, "and one category for the others");

struct package {
	uint32_t id; /* in the intern of names */
	uint64_t self_value;
	uint64_t self_samples;
};

static void init_origins(const struct profile *p, struct flame_colors *c)
{
	for (size_t i = 0; i < ORIGIN_COUNT; i++) {
		buf_addstr(&c->categories[i].name, origins[i].name);
		c->light[i] = origins[i].light;
		c->dark[i] = origins[i].dark;
	}
	for (size_t i = 0; i < N_RUBY_ORIGINS; i++) {
		buf_addstr(&c->categories[FIRST_JIT + i].name, jit_origins[i].name);
		c->light[FIRST_JIT + i] = jit_origins[i].light;
		c->dark[FIRST_JIT + i] = jit_origins[i].dark;
	}
	c->n_categories = FIRST_JIT + N_RUBY_ORIGINS;
	for (size_t i = 0; i < p->n_frames; i++)
		c->of_frame[i] = (uint8_t)label_origin(p, (uint32_t)i);
}

static int compare_packages(const void *a, const void *b, void *arg)
{
	const struct package *x = a, *y = b;
	const struct intern *names = arg;

	if (x->self_value != y->self_value)
		return x->self_value < y->self_value ? 1 : -1;
	return strcmp(intern_get(names, x->id, NULL), intern_get(names, y->id, NULL));
}

/*
 * A hue for each of the first packages: red for the program's own code, as everywhere; for others
 * the one that the name hashes to, so that a package mostly has the same colour in all pictures, or
 * the next that is free.
 */
static void init_package_colors(struct flame_colors *c, size_t n)
{
	/* As light as white text can stand, which differs a lot from red over yellow to blue. */
	static const unsigned char dark[N_HUES] = {
		44, 36, 30, 31, 32, 32, 31, 40, 46, 46, 46, 45,
	};
	bool taken[N_HUES] = { [0] = true };

	for (size_t i = 0; i < n; i++) {
		const struct buf *name = &c->categories[i].name;
		bool is_app = !strcmp(buf_str(name), "app") ||
			      !strcmp(buf_str(name), "[application]");
		size_t hue = is_app ? 0 : hash_bytes(buf_str(name), name->len) % N_HUES;

		while (taken[hue] && !is_app)
			hue = (hue + 1) % N_HUES;
		taken[hue] = true;
		c->light[i] = (struct hsl) { (unsigned int)hue * 360 / N_HUES, 66, 72 };
		c->dark[i] = (struct hsl) { (unsigned int)hue * 360 / N_HUES, 42, dark[hue] };
	}
	c->light[n] = origins[ORIGIN_UNKNOWN].light;
	c->dark[n] = origins[ORIGIN_UNKNOWN].dark;
}

/*
 * Add the self times of modules or gems to @packages; @of_frame are indexes into these. Two panes
 * show the same samples, so what runs in them is told once, by all frames but the interpreter's
 * own.
 */
static int weigh_packages(const struct profile *p, const struct view_filter *f, enum flat_by by,
			  const uint32_t *of_frame, struct package *packages)
{
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	_cleanup_flat_ struct flat flat = FLAT_INIT;

	if (view_selection_new(p, f, &sel))
		return -ENOMEM;
	if (f && f->stack == STACK_BOTH)
		view_selection_show(sel, STACK_MIXED);
	if (flat_build_selected(p, sel, by, FLAT_SORT_SELF, &flat))
		return -ENOMEM;
	for (size_t i = 0; i < flat.n_rows; i++) {
		struct package *package = &packages[of_frame[flat.rows[i].frame]];

		package->self_value += flat.rows[i].self_value;
		package->self_samples += flat.rows[i].samples;
	}
	return 0;
}

/* @names is added to; @of_frame are ids in it. */
static int name_packages(const struct profile *p, enum flat_by by, struct intern *names,
			 uint32_t *of_frame)
{
	_cleanup_buf_ struct buf name = BUF_INIT;
	struct gem gem;

	for (size_t i = 0; i < p->n_frames; i++) {
		buf_reset(&name);
		gem_of_frame(p, (uint32_t)i, &gem);
		if (by == FLAT_BY_GEM)
			gem_label(&gem, &name);
		else
			label_package(p, (uint32_t)i, &name);
		if (buf_failed(&name) ||
		    intern_add(names, buf_str(&name), name.len, &of_frame[i], NULL))
			return -ENOMEM;
	}
	return 0;
}

static int init_packages(const struct profile *p, const struct view_filter *f, enum flat_by by,
			 struct flame_colors *c)
{
	_cleanup_intern_ struct intern names = INTERN_INIT;
	_cleanup_free_ uint32_t *of_frame = calloc(p->n_frames + 1, sizeof(*of_frame));
	_cleanup_free_ struct package *packages = NULL;
	_cleanup_free_ uint8_t *category = NULL;
	size_t n;

	if (!of_frame || name_packages(p, by, &names, of_frame))
		return -ENOMEM;
	packages = calloc(names.count + 1, sizeof(*packages));
	category = calloc(names.count + 1, sizeof(*category));
	if (!packages || !category)
		return -ENOMEM;
	for (size_t i = 0; i < names.count; i++)
		packages[i].id = (uint32_t)i;
	if (weigh_packages(p, f, by, of_frame, packages))
		return -ENOMEM;
	qsort_r(packages, names.count, sizeof(*packages), compare_packages, &names);
	n = names.count < N_HUES - 1 ? names.count : N_HUES - 1; /* one hue is reserved */
	for (size_t i = 0; i < names.count; i++) {
		size_t k = i < n ? i : n;

		category[packages[i].id] = (uint8_t)k;
		flame_category_add(&c->categories[k], packages[i].self_value,
				   packages[i].self_samples);
	}
	for (size_t i = 0; i < n; i++)
		buf_addstr(&c->categories[i].name, intern_get(&names, packages[i].id, NULL));
	buf_addstr(&c->categories[n].name, "other");
	c->n_categories = n + 1;
	for (size_t i = 0; i < p->n_frames; i++)
		c->of_frame[i] = category[of_frame[i]];
	init_package_colors(c, n);
	return 0;
}

/* Classic flame colours by name alone; the legend is that of the origins, without colours. */
static void init_hashes(const struct profile *p, struct flame_colors *c)
{
	init_origins(p, c);
	for (size_t i = 0; i < FLAME_MAX_COLORS; i++) {
		unsigned int hue = (unsigned int)i * 58 / FLAME_MAX_COLORS;

		c->light[i] = (struct hsl) { hue, 86, 68 };
		c->dark[i] = (struct hsl) { hue, 54, 43 - hue * 17 / 58 };
	}
}

static int find_gems(const struct flame_colors *colors, const struct tree *t, uint8_t **ret)
{
	_cleanup_free_ uint8_t *of_node = calloc(t->n_nodes, sizeof(*of_node));
	_cleanup_free_ uint32_t *frames = NULL;

	if (!of_node || flame_gem_frames(t, &frames))
		return -ENOMEM;
	for (size_t i = 1; i < t->n_nodes; i++)
		if (frames[i] != PROFILE_NONE)
			of_node[i] = colors->of_frame[frames[i]];
	*ret = take_ptr(of_node);
	return 0;
}

int flame_colors_add_tree(struct flame_colors *colors, const struct tree *t)
{
	int r = 0;

	if (colors->mode == FLAME_COLOR_GEM)
		r = find_gems(colors, t, &colors->of_node[colors->n_trees]);
	if (!r)
		colors->trees[colors->n_trees++] = t;
	return r;
}

/* The number of the tree that @node is of. */
static size_t tree_of(const struct flame_colors *colors, const struct tree_node *node)
{
	size_t n = 0;

	for (size_t i = 1; i < colors->n_trees; i++)
		if (node >= colors->trees[i]->nodes &&
		    node < colors->trees[i]->nodes + colors->trees[i]->n_nodes)
			n = i;
	return n;
}

static size_t category_of_node(const struct flame_colors *colors, const struct tree_node *node)
{
	const size_t n = tree_of(colors, node);
	const struct tree *t = colors->trees[n];
	const size_t i = (size_t)(node - t->nodes);

	return colors->mode == FLAME_COLOR_GEM ? colors->of_node[n][i]
					       : flame_states_main(t->states[i].total);
}

size_t flame_colors_category(const struct flame_colors *colors, const struct tree_node *node)
{
	size_t category;

	if (colors->mode == FLAME_COLOR_DIFF) {
		const struct compare_share share = flame_diff_share(&colors->diff, node);

		return flame_change_of(&share);
	}
	if (colors->mode == FLAME_COLOR_STATE || colors->mode == FLAME_COLOR_GEM)
		return category_of_node(colors, node);
	category = colors->of_frame[node->frame];
	if (colors->mode == FLAME_COLOR_KIND && tree_node_is_jit(node) && category < N_RUBY_ORIGINS)
		category += FIRST_JIT;
	return category;
}

/* The self times of kinds of code, of all samples whatever is shown of their stacks. */
static int weigh_origins(const struct profile *p, const struct view_filter *f,
			 struct flame_colors *c)
{
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	_cleanup_free_ uint32_t *frames = NULL;
	bool gc_unknown = false;

	if (view_selection_new(p, f, &sel) || sample_frames(p, &frames))
		return -ENOMEM;
	for (size_t i = 0; i < p->n_aggregates; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];
		size_t category = sample_origin(p, frames, a);

		if (!view_selected(sel, a))
			continue;
		if (c->mode == FLAME_COLOR_KIND && category < N_RUBY_ORIGINS &&
		    p->frames[frames[a->stack]].flags & FRAME_JIT)
			category += FIRST_JIT;
		flame_category_add(&c->categories[category], a->value, a->samples);
		gc_unknown |= a->flags & SAMPLE_GC_UNKNOWN;
	}
	if (gc_unknown && c->mode == FLAME_COLOR_KIND && !c->categories[ORIGIN_GC].self_samples)
		c->categories[ORIGIN_GC].used = c->categories[ORIGIN_GC].unknown = true;
	return 0;
}

static void mark_used(const struct tree *t, struct flame_colors *c)
{
	for (uint32_t i = 1; i < t->n_nodes; i++)
		if (t->nodes[i].frame != PROFILE_NONE)
			c->categories[flame_colors_category(c, &t->nodes[i])].used = true;
}

static int init_categories(const struct profile *p, const struct view_filter *f,
			   struct flame_colors *c)
{
	switch (c->mode) {
	case FLAME_COLOR_MODULE:
		return init_packages(p, f, FLAT_BY_MODULE, c);
	case FLAME_COLOR_GEM:
		return init_packages(p, f, FLAT_BY_GEM, c);
	case FLAME_COLOR_STATE:
		return flame_states_init(p, f, c);
	case FLAME_COLOR_HASH:
		init_hashes(p, c);
		return weigh_origins(p, f, c);
	default:
		init_origins(p, c);
		return weigh_origins(p, f, c);
	}
}

int flame_colors_init(const struct tree *const *trees, size_t n_trees, const struct view_filter *f,
		      enum flame_color mode, struct flame_colors *ret)
{
	const struct profile *p = trees[0]->profile;
	_cleanup_flame_colors_ struct flame_colors c = { .mode = mode };

	c.of_frame = calloc(p->n_frames + 1, sizeof(*c.of_frame));
	if (!c.of_frame)
		return -ENOMEM;
	if (init_categories(p, f, &c))
		return -ENOMEM;
	for (size_t i = 0; i < n_trees; i++) {
		if (flame_colors_add_tree(&c, trees[i]))
			return -ENOMEM;
		mark_used(trees[i], &c);
	}
	for (size_t i = 0; i < c.n_categories; i++)
		if (buf_failed(&c.categories[i].name))
			return -ENOMEM;
	*ret = c;
	memset(&c, 0, sizeof(c)); /* owned by *ret now */
	return 0;
}

/* Red and blue, which nearly everybody can tell apart; what may be chance is pale. */
static const struct {
	const char *name;
	struct hsl light, dark;
} changes[FLAME_CHANGES] = {
	[CHANGE_DOUBLED] = { "new, or more than doubled", { 5, 84, 64 }, { 4, 60, 42 } },
	[CHANGE_GREW] = { "grew", { 10, 84, 80 }, { 10, 36, 36 } },
	[CHANGE_CHANCE] = { "as before, or by chance", { 220, 6, 84 }, { 220, 5, 32 } },
	[CHANGE_SHRANK] = { "shrank", { 210, 70, 82 }, { 213, 32, 38 } },
	[CHANGE_HALVED] = { "more than halved", { 212, 74, 68 }, { 213, 56, 46 } },
};

int flame_colors_init_diff(const struct tree *t, struct flame_base *base, struct flame_colors *ret)
{
	_cleanup_flame_colors_ struct flame_colors c = { .mode = FLAME_COLOR_DIFF,
							 .n_categories = FLAME_CHANGES };

	c.of_frame = calloc(t->profile->n_frames + 1, sizeof(*c.of_frame));
	if (!c.of_frame || flame_diff_init(base, t, &c.diff))
		return -ENOMEM;
	for (size_t i = 0; i < FLAME_CHANGES; i++) {
		buf_addstr(&c.categories[i].name, changes[i].name);
		if (buf_failed(&c.categories[i].name))
			return -ENOMEM;
		c.light[i] = changes[i].light;
		c.dark[i] = changes[i].dark;
	}
	for (uint32_t i = 1; i < t->n_nodes; i++)
		flame_category_add(&c.categories[flame_colors_category(&c, &t->nodes[i])],
				   t->nodes[i].self_value, t->nodes[i].self_samples);
	mark_used(t, &c);
	*ret = c;
	memset(&c, 0, sizeof(c)); /* owned by *ret now */
	return 0;
}

void flame_colors_deinit(struct flame_colors *colors)
{
	if (!colors)
		return;
	for (size_t i = 0; i < FLAME_MAX_CATEGORIES; i++)
		buf_deinit(&colors->categories[i].name);
	free(colors->of_frame);
	for (size_t i = 0; i < FLAME_MAX_TREES; i++)
		free(colors->of_node[i]);
	flame_diff_deinit(&colors->diff);
	memset(colors, 0, sizeof(*colors));
}

const char *flame_colors_about(const struct flame_colors *colors, const struct profile *p,
			       const struct tree_node *node)
{
	switch (colors->mode) {
	case FLAME_COLOR_STATE: /* which its title tells of all of them */
		return origins[label_origin(p, node->frame)].name;
	case FLAME_COLOR_DIFF:
	case FLAME_COLOR_GEM:
		return buf_str(&colors->categories[flame_colors_category(colors, node)].name);
	default: /* without what a compiler has to do with it */
		return buf_str(&colors->categories[colors->of_frame[node->frame]].name);
	}
}

void flame_colors_pick(struct flame_colors *colors, const struct profile *p,
		       const struct tree_node *node, size_t *color, size_t *shade)
{
	const char *name = label_frame(p, node->frame);
	uint64_t hash = hash_bytes(name, strlen(name));

	*shade = hash % FLAME_SHADES;
	*color = colors->mode == FLAME_COLOR_HASH ? hash / FLAME_SHADES % FLAME_MAX_COLORS
						  : flame_colors_category(colors, node);
	colors->shade_used[*color][*shade] = true;
}

void flame_colors_class(struct flame_colors *colors, const struct profile *p,
			const struct tree_node *node, struct buf *out)
{
	size_t color, shade;

	flame_colors_pick(colors, p, node, &color, &shade);
	buf_addch(out, (char)('a' + color));
	buf_add_u64(out, shade);
}

bool flame_colors_have_swatches(const struct flame_colors *colors)
{
	return colors->mode != FLAME_COLOR_HASH;
}

static struct hsl shade_of(struct hsl base, size_t shade)
{
	static const int hue[FLAME_SHADES] = { -7, -5, -3, -1, 1, 3, 5, 7 };
	static const int lightness[FLAME_SHADES] = { 0, 2, -2, 2, -3, 1, -1, 2 };

	return (struct hsl) {
		.h = (base.h + 360 + (unsigned int)hue[shade]) % 360,
		.s = base.s,
		.l = base.l + (unsigned int)lightness[shade],
	};
}

/* As #rrggbb, which everything that reads SVG understands; rounded by integers. */
static void add_rgb(struct buf *out, struct hsl c)
{
	unsigned int range = c.l < 50 ? 2 * c.l : 200 - 2 * c.l; /* percent */
	int chroma = (int)(range * c.s);			 /* of 10,000 */
	int base = (int)c.l * 100 - chroma / 2;
	int ramp = (int)(c.h % 120);
	int middle = chroma * (60 - abs(60 - ramp)) / 60;
	int rgb[3] = { base, base, base };
	unsigned int sector = c.h / 60; /* from red over yellow, green, cyan, blue, magenta */

	rgb[(sector + 1) / 2 % 3] += chroma;
	rgb[(7 - sector) % 3] += middle;
	buf_addch(out, '#');
	for (size_t i = 0; i < 3; i++)
		buf_addf(out, "%02x", (unsigned int)(rgb[i] * 255 + 5000) / 10000);
}

/* Whether the script may give any box the colour of @category. */
static bool may_become(const struct flame_colors *c, size_t category)
{
	return c->mode == FLAME_COLOR_STATE && category < c->n_categories &&
	       c->categories[category].used;
}

static void add_rules(const struct flame_colors *c, const struct hsl *colors, struct buf *out)
{
	for (size_t i = 0; i < FLAME_MAX_COLORS; i++) {
		bool swatch = i < c->n_categories && flame_colors_have_swatches(c);

		if (swatch && c->categories[i].used) {
			buf_addf(out, ".%c{fill:", (int)('a' + i));
			add_rgb(out, colors[i]);
			buf_addch(out, '}');
		}
		for (size_t shade = 0; shade < FLAME_SHADES; shade++) {
			if (!c->shade_used[i][shade] && !may_become(c, i))
				continue;
			buf_addf(out, ".%c%zu{fill:", (int)('a' + i), shade);
			add_rgb(out, shade_of(colors[i], shade));
			buf_addch(out, '}');
		}
	}
}

void flame_colors_css(const struct flame_colors *colors, struct buf *out)
{
	add_rules(colors, colors->light, out);
	buf_addstr(out, "\n@media screen and (prefers-color-scheme:dark){");
	add_rules(colors, colors->dark, out);
	buf_addstr(out, "}\n");
}
