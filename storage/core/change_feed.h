/* Which files of which buckets changed, in order: a ring in memory of the last changes, that
 * streams of events read (api/hub/events.h). A change is of what a key shows; what it shows now,
 * readers ask the catalog. version_change.c notes each inside its transaction, whoever made it, and
 * the committer shows them after COMMIT, or takes them back.
 *
 * Each transaction moves the bucket's updated_ms (bucket_totals.h) to a moment above all earlier
 * ones, and each change knows that moment and the one before. So whoever knows the updated_ms of a
 * state he has seen can be told what came since, also when the ring is younger than that; or that
 * it cannot be told. Noting, marking, taking back and showing are the committer's thread's; the
 * rest is any thread's. Internally locked. */
#ifndef STORAGE_CORE_CHANGE_FEED_H
#define STORAGE_CORE_CHANGE_FEED_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/thread/step_watch.h"

struct change_feed;

struct change_feed_options {
	const struct clock_source *clock;
	struct step_watch *watch; /* borrowed; NULL: nobody waits */
	size_t changes_max;       /* 0: 65536. Older ones are forgotten */
	size_t key_bytes_max;     /* of all their keys; 0: 8 MiB */
};
struct change_feed *change_feed_new(const struct change_feed_options *options);
void change_feed_free(struct change_feed *feed); /* NULL is fine */
/* Differs from that of every other feed: numbers of positions mean nothing to another. */
uint64_t change_feed_life(const struct change_feed *feed);

struct change_note {
	int64_t bucket;
	struct span key;    /* copied */
	bool existed;       /* the key showed a file before */
	int64_t updated_ms; /* the bucket's, as this transaction sees it */
	int64_t now_ms;     /* when, as far as its maker knows */
};
/* The moment of the change, which the bucket's updated_ms becomes. */
int64_t change_feed_note(struct change_feed *feed, const struct change_note *note);
/* More is known of a file, its bytes are the same: nothing moves. `now_ms`: when the file came; one
 * of over 15 minutes ago is not told of. */
void change_feed_note_detail(struct change_feed *feed, const struct change_note *note);
uint64_t change_feed_mark(const struct change_feed *feed);
/* what was noted behind the mark */
void change_feed_take_back(struct change_feed *feed, uint64_t mark);
void change_feed_take_back_all(struct change_feed *feed); /* what has not been shown */
/* all that is noted; wakes who waits for it */
void change_feed_show(struct change_feed *feed);

/* What somebody has seen of a bucket: all changes below `number`, and (that is what counts when the
 * ring has gone on, or is another) all up to a moment. */
struct change_position {
	uint64_t number;
	int64_t moment_ms;
};
struct change_seen {
	struct span key;
	bool existed;
};
/* The position behind all that was there when the bucket had this updated_ms. `updated_ms`: what it
 * is now, read from the catalog before. False when what came since cannot be told any more. */
bool change_feed_seek(struct change_feed *feed, int64_t bucket, int64_t since_ms,
	int64_t updated_ms, struct change_position *out);
/* Up to `limit` (above 0) changes of the bucket from `position`, which moves behind them; keys lie
 * in the arena. False as above; then nothing moved. */
bool change_feed_read(struct change_feed *feed, int64_t bucket, int64_t updated_ms,
	struct change_position *position, size_t limit, struct arena *arena,
	struct change_seen *out, size_t *out_count, bool *out_more);

/* As step_watch_generation and step_watch_wait: take the generation before looking, wait for what
 * comes behind it, wait_ms at most. */
uint64_t change_feed_generation(struct change_feed *feed, int64_t bucket);
void change_feed_wait(struct change_feed *feed, int64_t bucket, uint64_t generation,
	int64_t wait_ms, struct step_waiter *waiter);
/* For a time, whatever happens but the end. */
void change_feed_pause(struct change_feed *feed, int64_t wait_ms, struct step_waiter *waiter);

#endif
