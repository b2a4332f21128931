# SPDX-License-Identifier: GPL-2.0-only
#
# What the compiler cannot know: scripts and styles are parts of this object (page/embed.h).

$(O)/src/export/assets.o $(O)/asan/src/export/assets.o: \
	$(foreach page,flame timeline heatmap,src/export/$(page).js src/export/$(page).css)
