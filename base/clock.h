/* Time, behind a table so that tests can set it. Any thread. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

struct clock_source {
	/* milliseconds since 1970, UTC */
	int64_t (*wall_ms)(const struct clock_source *source);
	/* never goes back; for durations and deadlines; its zero means nothing */
	int64_t (*monotonic_ms)(const struct clock_source *source);
};

const struct clock_source *clock_system(void);
/* The machine's own time, whatever clock a store was given. */
int64_t clock_wall_ms(void);
int64_t clock_monotonic_ms(void);
int64_t clock_monotonic_us(void); /* microseconds, for durations that are measured */

/* A clock that moves only when a test sets now_ms. Pass &fake->source. */
struct clock_fake {
	struct clock_source source;
	_Atomic int64_t now_ms;
};
void clock_fake_init(struct clock_fake *fake, int64_t now_ms);

enum { CLOCK_TEXT_BYTES = 40 };
/* Example: Sun, 06 Nov 1994 08:49:37 GMT */
void clock_format_http(int64_t wall_ms, char out[CLOCK_TEXT_BYTES]);
/* Example: 1994-11-06T08:49:37.000Z */
void clock_format_iso(int64_t wall_ms, char out[CLOCK_TEXT_BYTES]);
void clock_format_amz(int64_t wall_ms, char out[CLOCK_TEXT_BYTES]); /* example: 19941106T084937Z */
/* Accepts the form of RFC 1123 and the ISO forms. */
bool clock_parse_http(struct span text, int64_t *out_ms);
/* Accepts exactly the form 19941106T084937Z. */
bool clock_parse_amz(struct span text, int64_t *out_ms);

#endif
