/* The journal of a catalog: each change that commits is first a record in a log of DIR/journal,
 * with the rows that it changes. With a snapshot (journal_keeper.h) the logs make the catalog again
 * when it is lost. The connection that commits records; any thread syncs. Internal to storage.
 *
 * The catalog is the truth, and the journal a second one. Where it cannot be written changes go on,
 * so that a full disk can be emptied: the journal is then incomplete until its next snapshot.
 *
 * A record may stand in the journal although its change never committed, when the process died
 * between the two. The next life follows on the last change that the catalog has, and what lies
 * after that in older logs counts for nothing (journal_history.h). */
#ifndef STORAGE_JOURNAL_JOURNAL_H
#define STORAGE_JOURNAL_JOURNAL_H

#include "base/file.h"
#include "base/thread/log.h"
#include "storage/db/db.h"
#include "storage/journal/journal_format.h"

struct journal;

struct journal_options {
	const struct file_ops *files;
	const char *folder; /* made when it is missing */
	uint8_t store[JOURNAL_STORE_BYTES];
	uint64_t life;
	uint32_t schema;
	int64_t change;  /* the last one of the catalog */
	uint64_t sums;   /* db_sums_total after it, which tells it from others of that number */
	struct log *log; /* may be NULL */
};
/* Finds the record of that change, to follow on it. Where there is none, the journal begins anew
 * and wants a snapshot. No file is written before the first change. */
struct journal *journal_open(const struct journal_options *options, struct error *err);
/* Syncs, as far as that works. NULL is fine. The connection that records has been closed. */
void journal_close(struct journal *journal);

/* For the connection that commits (db.h). */
struct db_recorder journal_recorder(struct journal *journal);

/* Makes all changes that have committed so far survive a power cut. After a failure nothing that
 * was written is believed any more: the next change goes to another file, and a snapshot is
 * wanted. NULL is fine. */
int journal_sync(struct journal *journal, struct error *err);

/* For the keeper. */
const char *journal_folder(const struct journal *journal);
const struct file_ops *journal_files(const struct journal *journal);
/* Whether a file is of this store. */
bool journal_owns(const struct journal *journal, const struct journal_header *header);
int64_t journal_last_change(struct journal *journal);
bool journal_wants_snapshot(struct journal *journal);
/* The files of before are in doubt: the journal counts as incomplete until its next snapshot. */
void journal_doubt(struct journal *journal);
/* Whether the files lead to no catalog like the present one, until the next snapshot. */
bool journal_is_incomplete(struct journal *journal);
/* The next change begins another log. */
void journal_turn(struct journal *journal);
/* The header of a snapshot of this change, with a number of its own. False when the change is too
 * long ago, or its record is none that the journal has. */
bool journal_describe(struct journal *journal, int64_t change, struct journal_header *out);
/* A snapshot of `bytes` was made and verified. */
void journal_note_snapshot(struct journal *journal, const struct journal_point *at, uint64_t bytes);

#endif
