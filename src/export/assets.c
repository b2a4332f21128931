/* SPDX-License-Identifier: GPL-2.0-only */
/* Each file is named in export.mk, too. */
#include "export/assets.h"

#include "page/embed.h"

EMBED(flame_js, "export/flame.js");
EMBED(flame_css, "export/flame.css");
EMBED(timeline_js, "export/timeline.js");
EMBED(timeline_css, "export/timeline.css");
EMBED(heatmap_js, "export/heatmap.js");
EMBED(heatmap_css, "export/heatmap.css");
