/* The last changes of runs, in order: a ring in memory that streams of events read
 * (api/live/live_runs.h). An entry says that something about a run changed; readers look into the
 * catalog for its present state. Code that changes a run in the catalog notes it in the same
 * transaction. The committer shows the notes when the transaction has ended, well or not, because a
 * note too many costs only a look. The committer's thread alone notes and shows; any thread may
 * call the rest. Internally locked. */
#ifndef STORAGE_CORE_RUN_FEED_H
#define STORAGE_CORE_RUN_FEED_H

#include "base/arena.h"

enum { RUN_FEED_CHANGES = 8192 }; /* older ones are forgotten */

struct run_feed;
struct run_feed *run_feed_new(void);
void run_feed_free(struct run_feed *feed); /* NULL is fine */

/* The number of the run's row. NULL feed: does nothing; the same below. */
void run_feed_note(struct run_feed *feed, int64_t run);
/* The same for a run whose name is taken away, or whose bucket's is. `has_ended` is taken as true;
 * the names are copied. */
struct run_change {
	int64_t run;
	bool has_ended; /* then with its bucket and its names at that time: */
	int64_t bucket_id;
	struct span bucket;
	struct span name;
};
void run_feed_note_end(struct run_feed *feed, const struct run_change *end);
void run_feed_show(struct run_feed *feed);

/* The number of the last change; 0 before the first. */
uint64_t run_feed_last(struct run_feed *feed);
/* Up to `limit` changes, above *after and up to `until`, which is a number that run_feed_last gave.
 * Of several of a run only the first, beside those that took its name away. Moves *after behind the
 * last that was looked at. Texts lie in the arena. False when changes after *after were forgotten;
 * then nothing is read. */
struct run_feed_page {
	uint64_t after;
	uint64_t until;
	size_t limit; /* above 0 */
	size_t count;
};
bool run_feed_read(struct run_feed *feed, struct run_feed_page *page, struct arena *arena,
	struct run_change *out);

#endif
