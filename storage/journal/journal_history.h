/* The files of a journal put in order: which records follow on one another, which snapshots they
 * follow on, and where they end. Reads all logs. One thread. Internal to storage.
 *
 * Each log says in its header what it follows on. Where that is a record of before, the records
 * after that one count for nothing: an earlier life wrote them, and they never committed. Where
 * it is no record of before, there is a gap. The newest file says
 * whose journal it is; what another store left in the folder is passed over. */
#ifndef STORAGE_JOURNAL_JOURNAL_HISTORY_H
#define STORAGE_JOURNAL_JOURNAL_HISTORY_H

#include "storage/journal/journal_format.h"

struct journal_history;

enum { JOURNAL_GAP_BYTES = 512 };

/* NULL when the folder cannot be read; a folder that is missing has no files. */
struct journal_history *journal_history_read(const char *folder, struct error *err);
void journal_history_free(struct journal_history *history); /* NULL is fine */

/* The highest life of all files. */
uint64_t journal_history_life(const struct journal_history *history);
/* The highest number of a change in any file, also of those that count for nothing, and a number
 * for the next file. */
int64_t journal_history_last_change(const struct journal_history *history);
uint64_t journal_history_next_number(const struct journal_history *history);
/* How many snapshots there are; those whose header is damaged are counted apart. */
size_t journal_history_snapshots(const struct journal_history *history);
size_t journal_history_damaged(const struct journal_history *history);
/* Why the last one of those cannot be read. */
const char *journal_history_damage(const struct journal_history *history);

struct journal_way {                  /* from a snapshot to the newest change that it leads to */
	const char *snapshot;         /* its path, borrowed from the history */
	struct journal_header header; /* of the snapshot */
	size_t records;               /* how many follow on it */
	struct journal_point end;
	uint64_t sums;   /* table_sums_total at the end; without records unknown, and 0 */
	int64_t made_ms; /* of the end */
	/* Why the way ends there although more files follow; empty: it is the end of the
	 * journal. */
	char gap[JOURNAL_GAP_BYTES];
};
struct journal_goal {
	int64_t change;
	uint64_t sums; /* table_sums_total after it */
};
/* The best way first: the one that leads furthest. `number` is below journal_history_snapshots. The
 * snapshot itself is not verified here. */
void journal_history_way(
	const struct journal_history *history, size_t number, struct journal_way *out);
/* Gives the rows of each record of the way, in order. corrupt when a log has changed meanwhile. */
typedef int journal_take_fn(void *owner, struct span rows, struct error *err);
int journal_history_walk(const struct journal_history *history, const struct journal_way *way,
	journal_take_fn *take, void *owner, struct error *err);
/* Gives the files that lead from the snapshot `number` to this change and no further: the snapshot,
 * then the logs in order, each with the number of its first bytes that are needed. Returns 1; 0
 * when the snapshot does not lead there, and nothing was given; or -1. */
typedef int journal_part_fn(void *owner, const char *path, uint64_t bytes, struct error *err);
int journal_history_lead(const struct journal_history *history, size_t number,
	const struct journal_goal *goal, journal_part_fn *take, void *owner, struct error *err);

#endif
