#include "client/terminal/progress_line.h"

#include <stdio.h>
#include <unistd.h>

#include "base/quantity.h"

enum { DRAW_EVERY_MS = 200, LINE_EVERY_MS = 10 * 1000, LEFT_BYTES = 48 };

static void progress_line_redraw(void *owner, const struct progress_facts *facts);
static void progress_line_wipe(void *owner);
static void progress_line_print(void *owner, const struct progress_facts *facts);
static void print(const struct progress_facts *facts, const char *before, const char *behind);
static void format_left(uint64_t left_bytes, uint64_t rate, char out[LEFT_BYTES]);

const struct progress_sink *progress_line(void)
{
	static const struct progress_sink terminal = {
		.show = progress_line_redraw, .end = progress_line_wipe, .pause_ms = DRAW_EVERY_MS};
	static const struct progress_sink other = {
		.show = progress_line_print, .pause_ms = LINE_EVERY_MS};
	return isatty(STDERR_FILENO) ? &terminal : &other;
}

static void progress_line_redraw(void *owner, const struct progress_facts *facts)
{
	(void)owner;
	print(facts, "\r\033[K", "");
}

static void progress_line_wipe(void *owner)
{
	(void)owner;
	fputs("\r\033[K", stderr);
}

static void progress_line_print(void *owner, const struct progress_facts *facts)
{
	(void)owner;
	print(facts, "", "\n");
}

static void print(const struct progress_facts *facts, const char *before, const char *behind)
{
	char done_text[QUANTITY_TEXT_BYTES];
	char total_text[QUANTITY_TEXT_BYTES];
	char rate_text[QUANTITY_TEXT_BYTES];
	char left_text[LEFT_BYTES];
	const uint64_t done = facts->done;
	const uint64_t total = facts->total;
	const uint64_t elapsed_ms = (uint64_t)facts->elapsed_ms + 1;
	const uint64_t rate = (uint64_t)((double)done * 1000 / (double)elapsed_ms);
	quantity_format(done, done_text);
	quantity_format(total, total_text);
	quantity_format(rate, rate_text);
	format_left(total > done ? total - done : 0, rate, left_text);
	const unsigned percent = total == 0 ? 100 : (unsigned)((double)done * 100 / (double)total);
	fprintf(stderr, "%s%s: %u %%, %s of %s, %s/s%s%s", before, facts->what, percent, done_text,
		total_text, rate_text, left_text, behind);
	fflush(stderr);
}

/* ", 3 m 20 s left"; empty while the rate is not known. */
static void format_left(uint64_t left_bytes, uint64_t rate, char out[LEFT_BYTES])
{
	const uint64_t seconds = rate == 0 ? 0 : left_bytes / rate + 1;
	if (rate == 0 || left_bytes == 0)
		out[0] = '\0';
	else if (seconds < 60)
		snprintf(out, LEFT_BYTES, ", %u s left", (unsigned)seconds);
	else
		snprintf(out, LEFT_BYTES, ", %llu m %u s left", (unsigned long long)seconds / 60,
			(unsigned)(seconds % 60));
}
