/* The modification time of a file as its uploader states it: user metadata, in seconds with a
 * fraction. rclone writes the same. Pure. */
#ifndef STORAGE_FILES_FILE_TIME_H
#define STORAGE_FILES_FILE_TIME_H

#include "base/span.h"

#define FILE_TIME_HEADER "x-amz-meta-mtime"

enum { FILE_TIME_TEXT_BYTES = 32 };
#define FILE_TIME_MAX_MS \
	INT64_C(253402300799999) /* the end of the year 9999: dates have four digits */

/* Prints "1700000000.123". A time outside [1970, FILE_TIME_MAX_MS] becomes the nearest inside. */
void file_time_print(int64_t ms, char out[FILE_TIME_TEXT_BYTES]);
/* Reads seconds with or without a fraction; digits beyond milliseconds are dropped. False when the
 * text is anything else or out of range. */
bool file_time_parse(struct span text, int64_t *out_ms);

#endif
