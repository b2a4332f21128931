# SPDX-License-Identifier: GPL-2.0-only
#
# What the compiler cannot know: scripts and styles are parts of these objects (page/embed.h).

$(O)/src/page/assets.o $(O)/asan/src/page/assets.o: src/page/page.js src/page/page.css
