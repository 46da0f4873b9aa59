#include "storage/files/file_time.h"

#include <inttypes.h>
#include <stdio.h>

static bool parse_fraction(struct span text, int64_t *out_ms);

void file_time_print(int64_t ms, char out[FILE_TIME_TEXT_BYTES])
{
	const int64_t least = ms < 0 ? 0 : ms;
	const int64_t shown = least > FILE_TIME_MAX_MS ? FILE_TIME_MAX_MS : least;
	snprintf(out, FILE_TIME_TEXT_BYTES, "%" PRId64 ".%03d", shown / 1000, (int)(shown % 1000));
}

bool file_time_parse(struct span text, int64_t *out_ms)
{
	const ptrdiff_t point = span_find(text, '.');
	const size_t whole = point < 0 ? text.len : (size_t)point;
	uint64_t seconds = 0;
	int64_t ms = 0;
	if (!span_parse_u64(span_slice(text, 0, whole), &seconds) ||
		seconds > (uint64_t)(FILE_TIME_MAX_MS / 1000))
		return false;
	if (point >= 0 && !parse_fraction(span_slice(text, whole + 1, text.len), &ms))
		return false;
	*out_ms = (int64_t)seconds * 1000 + ms;
	return true;
}

/* Reads the milliseconds of a fraction. False when it is empty or has other characters than
 * digits. */
static bool parse_fraction(struct span text, int64_t *out_ms)
{
	int64_t scale = 100;
	*out_ms = 0;
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
		*out_ms += scale * (text.data[i] - '0');
		scale /= 10;
	}
	return text.len > 0;
}
