/* Threads add to an atomic counter. The thread that moves next_draw_ms on by compare-and-swap draws
 * the line: so no thread waits for another, and one draws in each interval. */
#include "client/terminal/progress.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "client/terminal/interrupt.h"
#include "client/terminal/output.h"

enum { DRAW_EVERY_MS = 200, LINE_EVERY_MS = 10 * 1000, LEFT_BYTES = 48 };

struct progress {
	struct work_watch watch;           /* must be first: progress_step casts it back */
	const struct interrupt *interrupt; /* asked by progress_step */
	char *what;
	uint64_t total;
	bool is_wanted;
	bool is_terminal;
	int64_t started_ms;
	_Atomic uint64_t done;
	_Atomic int64_t next_draw_ms; /* the thread that moves it on draws */
};

static int64_t pause_ms(const struct progress *progress);
static void draw(const struct progress *progress, uint64_t done, int64_t now);
static void format_left(uint64_t left_bytes, uint64_t rate, char out[LEFT_BYTES]);
static int progress_step(struct work_watch *watch, uint64_t bytes, struct error *err);

struct progress *progress_new(const char *what, uint64_t total_bytes, bool wanted)
{
	ASSERT(what != NULL);
	struct progress *const progress = memory_new(sizeof(*progress));
	progress->what = memory_copy_text(what);
	progress->total = total_bytes;
	progress->is_wanted = wanted;
	progress->is_terminal = isatty(STDERR_FILENO);
	progress->started_ms = clock_monotonic_ms();
	atomic_store(&progress->next_draw_ms, progress->started_ms + pause_ms(progress));
	return progress;
}

void progress_add(struct progress *progress, uint64_t bytes)
{
	if (progress == NULL)
		return;
	const uint64_t done = atomic_fetch_add(&progress->done, bytes) + bytes;
	if (!progress->is_wanted)
		return;
	const int64_t now = clock_monotonic_ms();
	int64_t next = atomic_load(&progress->next_draw_ms);
	if (now >= next &&
		atomic_compare_exchange_strong(
			&progress->next_draw_ms, &next, now + pause_ms(progress)))
		draw(progress, done, now);
}

void progress_take_back(struct progress *progress, uint64_t bytes)
{
	if (progress != NULL)
		atomic_fetch_sub(&progress->done, bytes);
}

struct work_watch *progress_watch(struct progress *progress, const struct interrupt *interrupt)
{
	ASSERT(progress != NULL);
	progress->watch.step = progress_step;
	progress->interrupt = interrupt;
	return &progress->watch;
}

void progress_free(struct progress *progress)
{
	if (progress == NULL)
		return;
	if (progress->is_wanted && progress->is_terminal)
		fputs("\r\033[K", stderr);
	free(progress->what);
	free(progress);
}

static int64_t pause_ms(const struct progress *progress)
{
	return progress->is_terminal ? DRAW_EVERY_MS : LINE_EVERY_MS;
}

static void draw(const struct progress *progress, uint64_t done, int64_t now)
{
	char done_text[OUTPUT_SIZE_BYTES];
	char total_text[OUTPUT_SIZE_BYTES];
	char rate_text[OUTPUT_SIZE_BYTES];
	char left_text[LEFT_BYTES];
	const uint64_t elapsed_ms = (uint64_t)(now - progress->started_ms) + 1;
	const uint64_t rate = (uint64_t)((double)done * 1000 / (double)elapsed_ms);
	output_format_size(done, done_text);
	output_format_size(progress->total, total_text);
	output_format_size(rate, rate_text);
	format_left(progress->total > done ? progress->total - done : 0, rate, left_text);
	const unsigned percent = progress->total == 0
		? 100
		: (unsigned)((double)done * 100 / (double)progress->total);
	fprintf(stderr, "%s%s: %u %%, %s of %s, %s/s%s%s", progress->is_terminal ? "\r\033[K" : "",
		progress->what, percent, done_text, total_text, rate_text, left_text,
		progress->is_terminal ? "" : "\n");
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

static int progress_step(struct work_watch *watch, uint64_t bytes, struct error *err)
{
	struct progress *const progress = (struct progress *)watch;
	progress_add(progress, bytes);
	return interrupt_check(progress->interrupt, err);
}
