# SPDX-License-Identifier: GPL-2.0-only
#
# What the compiler cannot know: the script and the styles of the flame graph are part of this object.

$(O)/src/export/flame_assets.o $(O)/asan/src/export/flame_assets.o: \
	src/export/flame.js src/export/flame.css
