# SPDX-License-Identifier: GPL-2.0-only
#
# What the compiler cannot know: scripts and styles are parts of this object (page/embed.h).

$(O)/src/serve/assets.o $(O)/asan/src/serve/assets.o: src/serve/serve.js src/serve/serve.css
