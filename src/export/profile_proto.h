/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers of the fields of profile.proto that pprof.c writes:
 * https://github.com/google/pprof/blob/main/proto/profile.proto
 */
#ifndef RBPF_EXPORT_PROFILE_PROTO_H
#define RBPF_EXPORT_PROFILE_PROTO_H

enum profile_field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_SAMPLE_TYPE = 14,
};

enum value_type_field { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum sample_field { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum label_field { LABEL_KEY = 1, LABEL_STR = 2, LABEL_NUM = 3 };
enum mapping_field {
	MAPPING_ID = 1,
	MAPPING_FILENAME = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILENAMES = 8,
	MAPPING_HAS_LINE_NUMBERS = 9,
	MAPPING_HAS_INLINE_FRAMES = 10,
};
enum location_field {
	LOCATION_ID = 1,
	LOCATION_MAPPING_ID = 2,
	LOCATION_ADDRESS = 3,
	LOCATION_LINE = 4,
};
enum line_field { LINE_FUNCTION_ID = 1, LINE_LINE = 2 };
enum function_field {
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_FILENAME = 4,
	FUNCTION_START_LINE = 5,
};

#endif
