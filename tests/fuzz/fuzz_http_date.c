/* Any text as a date of a header: what is read must be written and read again as the same
 * second. */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MS_PER_SECOND = 1000 };
/* The years 1 to 9998: a zone may push a date of the first and the last year out of what the
 * formats hold. */
#define FIRST_MS INT64_C(-62135596800000)
#define LAST_MS  INT64_C(253370764800000)

typedef bool parse_fn(struct span text, int64_t *out_ms);

static void check(parse_fn *parse, void (*format)(int64_t wall_ms, char out[CLOCK_TEXT_BYTES]),
	struct span text)
{
	char written[CLOCK_TEXT_BYTES];
	int64_t ms = 0;
	int64_t again = 0;
	if (!parse(text, &ms) || ms < FIRST_MS || ms >= LAST_MS)
		return;
	format(ms, written);
	ASSERT(strlen(written) < CLOCK_TEXT_BYTES && parse(span_text(written), &again));
	ASSERT(ms - again >= 0 && ms - again < MS_PER_SECOND);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct span text = span_of(data, size);
	check(clock_parse_http, clock_format_http, text);
	check(clock_parse_http, clock_format_iso, text);
	check(clock_parse_amz, clock_format_amz, text);
	return 0;
}
