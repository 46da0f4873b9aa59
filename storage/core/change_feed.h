/* The last changes of files, in order: a ring in memory that streams of events read
 * (api/hub/events.c). An entry says that the file under a key changed; readers look into the
 * catalog for its present state. version_change.c notes every change inside its transaction. The
 * committer shows the notes after COMMIT, or takes them back after a failure.
 *
 * Each transaction moves the bucket's updated_ms (bucket_totals.h) to a moment above all earlier
 * ones, and each entry has that moment and the one before. So a reader that knows the updated_ms of
 * a state it has seen can learn which changes came after it, even when the ring is younger than
 * that state; or that the ring no longer has them all. Only the committer's thread notes, marks,
 * takes back and shows; any thread may call the rest. Internally locked. */
#ifndef STORAGE_CORE_CHANGE_FEED_H
#define STORAGE_CORE_CHANGE_FEED_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/thread/step_watch.h"

struct change_feed;

struct change_feed_options {
	const struct clock_source *clock;
	struct step_watch *watch; /* borrowed; NULL: no thread ever waits */
	size_t changes_max;       /* older ones are forgotten; 0: 65536 */
	size_t key_bytes_max;     /* of all their keys; 0: 8 MiB */
};
struct change_feed *change_feed_new(const struct change_feed_options *options);
void change_feed_free(struct change_feed *feed); /* NULL is fine */
/* A random number that tells this feed from all others, to which its positions mean nothing. */
uint64_t change_feed_id(const struct change_feed *feed);

struct change_note {
	int64_t bucket;
	struct span key;    /* copied */
	bool existed;       /* the key had a file before */
	int64_t updated_ms; /* the bucket's, as this transaction sees it */
	int64_t now_ms;     /* the time of the change, by the clock of its maker */
};
/* Returns the moment of the change, which the caller makes the bucket's updated_ms. */
int64_t change_feed_note(struct change_feed *feed, const struct change_note *note);
/* Notes that more is known about a file whose bytes are the same; the bucket's updated_ms stays.
 * now_ms is the time at which the file was stored. A file of over 15 minutes ago is not noted. */
void change_feed_note_detail(struct change_feed *feed, const struct change_note *note);
uint64_t change_feed_mark(const struct change_feed *feed);
/* what was noted after the mark */
void change_feed_take_back(struct change_feed *feed, uint64_t mark);
void change_feed_take_back_all(struct change_feed *feed); /* what is not shown yet */
/* Shows all notes and wakes the waiters of their buckets. */
void change_feed_show(struct change_feed *feed);

/* How far a reader has seen a bucket: all changes below `number`, and all up to a moment. The
 * moment counts when the ring no longer has that number, or belongs to another feed. */
struct change_position {
	uint64_t number;
	int64_t moment_ms;
};
struct change_seen {
	struct span key;
	bool existed;
};
/* Gives the position after all changes that were there when the bucket's updated_ms was `since_ms`.
 * `updated_ms` is the present one, read from the catalog before this call. False when the ring no
 * longer has all changes since then. */
bool change_feed_seek(struct change_feed *feed, int64_t bucket, int64_t since_ms,
	int64_t updated_ms, struct change_position *out);
struct change_page {
	struct change_seen *changes; /* the caller's, with room for `limit` */
	size_t limit;                /* above 0 */
	size_t count;
	bool has_more; /* the bucket has changes beyond the limit */
};
/* Reads up to `limit` changes of the bucket from `position`, and moves it after them. Sets
 * out->count and out->has_more. The keys lie in the arena. False as above; then the position stays
 * and the page is empty. */
bool change_feed_read(struct change_feed *feed, int64_t bucket, int64_t updated_ms,
	struct change_position *position, struct arena *arena, struct change_page *out);

/* As step_watch_generation and step_watch_wait: take the generation before looking, then wait for
 * later changes, at most wait_ms. These need a watch. */
uint64_t change_feed_generation(struct change_feed *feed, int64_t bucket);
void change_feed_wait(struct change_feed *feed, int64_t bucket, uint64_t generation,
	int64_t wait_ms, struct step_waiter *waiter);
/* Waits wait_ms. Only step_watch_wake_all ends it earlier. */
void change_feed_pause(struct change_feed *feed, int64_t wait_ms, struct step_waiter *waiter);

#endif
