#include "client/progress.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "client/output.h"

enum { DRAW_EVERY_MS = 200 };

struct progress {
	char *what;
	uint64_t total;
	bool drawn;
	int64_t started_ms;
	_Atomic uint64_t done;
	_Atomic int64_t next_draw_ms; /* whoever moves it on draws */
};

static int64_t now_ms(void)
{
	const struct clock_source *const clock = clock_system();
	return clock->monotonic_ms(clock);
}

struct progress *progress_new(const char *const what, const uint64_t total_bytes, const bool wanted)
{
	struct progress *const progress = memory_new(sizeof *progress);
	progress->what = memory_copy_text(what);
	progress->total = total_bytes;
	progress->drawn = wanted && isatty(STDERR_FILENO);
	progress->started_ms = now_ms();
	atomic_store(&progress->next_draw_ms, progress->started_ms + DRAW_EVERY_MS);
	return progress;
}

static void draw(const struct progress *const progress, const uint64_t done, const int64_t now)
{
	char done_text[OUTPUT_SIZE_BYTES];
	char total_text[OUTPUT_SIZE_BYTES];
	char rate_text[OUTPUT_SIZE_BYTES];
	const uint64_t elapsed_ms = (uint64_t)(now - progress->started_ms) + 1;
	output_format_size(done, done_text);
	output_format_size(progress->total, total_text);
	output_format_size((uint64_t)((double)done * 1000 / (double)elapsed_ms), rate_text);
	const unsigned percent = progress->total == 0 ? 100 : (unsigned)((double)done * 100 / (double)progress->total);
	fprintf(stderr, "\r\033[K%s: %u %%, %s of %s, %s/s", progress->what, percent, done_text, total_text, rate_text);
	fflush(stderr);
}

void progress_add(struct progress *const progress, const uint64_t bytes)
{
	if (progress == NULL)
		return;
	const uint64_t done = atomic_fetch_add(&progress->done, bytes) + bytes;
	if (!progress->drawn)
		return;
	const int64_t now = now_ms();
	int64_t next = atomic_load(&progress->next_draw_ms);
	if (now >= next && atomic_compare_exchange_strong(&progress->next_draw_ms, &next, now + DRAW_EVERY_MS))
		draw(progress, done, now);
}

void progress_take_back(struct progress *const progress, const uint64_t bytes)
{
	if (progress != NULL)
		atomic_fetch_sub(&progress->done, bytes);
}

void progress_free(struct progress *const progress)
{
	if (progress == NULL)
		return;
	if (progress->drawn)
		fputs("\r\033[K", stderr);
	free(progress->what);
	free(progress);
}
