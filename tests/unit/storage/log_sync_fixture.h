/* Counts the syncs of the catalog's log, and lets some fail. SQLite makes them without the table of
 * base/file.h, so the test program has its own fdatasync and fsync. */
#ifndef TESTS_UNIT_STORAGE_LOG_SYNC_FIXTURE_H
#define TESTS_UNIT_STORAGE_LOG_SYNC_FIXTURE_H

int log_syncs_count(void);
/* Lets the next `count` syncs of the committer fail with EIO: each commit breaks off with its
 * frames in the log. `failing` is called before each, unless it is NULL. */
void log_syncs_fail(int count, void (*failing)(void));

#endif
