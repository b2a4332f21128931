/* SPDX-License-Identifier: GPL-2.0-only */
#include "page/assets.h"

#include "page/embed.h"

EMBED(page_js, "page/page.js");
EMBED(page_css, "page/page.css");
