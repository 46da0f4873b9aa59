/* Keeps the journal short and complete: makes a snapshot of the catalog when the journal wants one,
 * reads it back before it counts, and then removes what lies before the last two. A thread with a
 * connection of its own. Internal to storage. */
#ifndef STORAGE_JOURNAL_JOURNAL_KEEPER_H
#define STORAGE_JOURNAL_JOURNAL_KEEPER_H

#include "base/metrics.h"
#include "base/thread/work_notes.h"
#include "storage/journal/journal.h"

struct journal_keeper;

/* `log`, `metrics` and `notes` may be NULL. */
struct journal_keeper *journal_keeper_start(struct journal *journal, const char *catalog_path,
	struct log *log, struct metrics *metrics, struct work_notes *notes);
/* Makes a last snapshot if the journal is incomplete. NULL is fine. */
void journal_keeper_stop(struct journal_keeper *keeper);

#endif
