/* SPDX-License-Identifier: GPL-2.0-only */
/* Each file is named in serve.mk, too. */
#include "serve/assets.h"

#include "page/embed.h"

EMBED(serve_js, "serve/serve.js");
EMBED(serve_css, "serve/serve.css");
