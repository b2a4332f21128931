/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/gem.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "profile/profile.h"

void gem_of_frame(const struct profile *p, uint32_t frame, struct gem *ret)
{
	if (p->frames[frame].kind == FRAME_RUBY)
		gem_of_path(profile_str(p, p->frames[frame].file), ret);
	else if (p->frames[frame].kind == FRAME_NOT_RECORDED)
		*ret = (struct gem) { .origin = GEM_NOT_RECORDED };
	else
		*ret = (struct gem) { .origin = GEM_NONE };
}

/* ---- stacks ---- */

unsigned int gem_claim(enum gem_origin origin)
{
	static const unsigned char claims[] = {
		[GEM_APP] = 2,	[GEM_GEM] = 2,	[GEM_STDLIB] = 2,
		[GEM_CORE] = 1, [GEM_NONE] = 0, [GEM_NOT_RECORDED] = 0,
	};

	return claims[origin];
}

/* By frame id. *@ret: free(). */
static int find_claims(const struct profile *p, unsigned char **ret)
{
	unsigned char *claims = malloc(p->n_frames + 1);
	struct gem gem;

	if (!claims)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_frames; i++) {
		gem_of_frame(p, (uint32_t)i, &gem);
		claims[i] = (unsigned char)gem_claim(gem.origin);
	}
	*ret = claims;
	return 0;
}

int gem_frames(const struct profile *p, uint32_t **ret)
{
	_cleanup_free_ uint32_t *frames = malloc((p->n_stacks + 1) * sizeof(*frames));
	_cleanup_free_ unsigned char *claims = NULL;

	if (!frames || find_claims(p, &claims))
		return -ENOMEM;
	frames[0] = PROFILE_NONE;
	for (size_t i = 1; i < p->n_stacks; i++) {
		const uint32_t frame = p->stacks[i].frame, outer = frames[p->stacks[i].parent];

		frames[i] = outer == PROFILE_NONE || claims[frame] >= claims[outer] ? frame : outer;
	}
	*ret = take_ptr(frames);
	return 0;
}

/* ---- words ---- */

const char *gem_origin_word(enum gem_origin origin)
{
	static const char *const words[] = {
		[GEM_APP] = "app",   [GEM_GEM] = "gem",	  [GEM_STDLIB] = "stdlib",
		[GEM_CORE] = "core", [GEM_NONE] = "none", [GEM_NOT_RECORDED] = "not-recorded",
	};

	return words[origin];
}

void gem_name(const struct gem *gem, struct buf *out)
{
	if (gem->space.len) {
		buf_add(out, gem->space.s, gem->space.len);
		buf_addch(out, '-');
	}
	buf_add(out, gem->name.s, gem->name.len);
}

void gem_label(const struct gem *gem, struct buf *out)
{
	static const char *const none[] = {
		[GEM_APP] = "[application]",   [GEM_CORE] = "[ruby core]",
		[GEM_NONE] = "[no Ruby code]", [GEM_GEM] = "[unnamed]",
		[GEM_STDLIB] = "[unnamed]",    [GEM_NOT_RECORDED] = "[not recorded]",
	};

	if (!gem->name.len) {
		buf_addstr(out, none[gem->origin]);
		return;
	}
	gem_name(gem, out);
	if (gem->version.len) {
		buf_addch(out, ' ');
		buf_add(out, gem->version.s, gem->version.len);
	}
}
