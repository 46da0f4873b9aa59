/* Syncs of the catalog's log, which SQLite makes below all tables of ours: the program's own
 * fdatasync and fsync count them, and fail them where told to. */
#ifndef TESTS_UNIT_STORAGE_LOG_SYNC_FIXTURE_H
#define TESTS_UNIT_STORAGE_LOG_SYNC_FIXTURE_H

int log_syncs_count(void);
/* So many of the next ones fail with EIO: the commit breaks off with its frames in the log. Before
 * each, `failing` is called, unless it is NULL. */
void log_syncs_fail(int count, void (*failing)(void));

#endif
