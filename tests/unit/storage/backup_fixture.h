/* A store with content, a folder as the place of its backups, and stores restored from there. */
#ifndef TESTS_UNIT_STORAGE_BACKUP_FIXTURE_H
#define TESTS_UNIT_STORAGE_BACKUP_FIXTURE_H

#include "storage/backup/backup.h"
#include "storage/backup/restore.h"
#include "tests/unit/storage/store_fixture.h"

enum { BACKUP_SMALL = 20000, BACKUP_LARGE = 500000 };

struct backup_fixture {
	struct store_fixture store;
	char *place;
	struct age_identities identities;
	struct age_recipient recipient;
	bool is_sealed;
	uint64_t keep;
	int64_t spacing_ms;
	bool loses_hold; /* each round finds that its hold has ended */
	bool stops;      /* the next piece is not shipped any more */
	struct backup_report report; /* without its lacks */
	uint64_t lacking;
	char lack[ERROR_TEXT_BYTES]; /* the first */
	struct backup_pruned pruned;
	struct restore_report restored;
	struct error err;
};
/* A store whose journal leads to it, made once; each fixture is a copy. It has the objects
 * "large" (BACKUP_LARGE bytes, seed 1) and "small" (BACKUP_SMALL, seed 2). */
void backup_fixture_seed(void);
void backup_fixture_unseed(void);
void backup_fixture_open(struct backup_fixture *fixture);
void backup_fixture_close(struct backup_fixture *fixture);
void backup_fixture_put(
	struct backup_fixture *fixture, const char *key, size_t size, uint64_t seed);

struct backup_params backup_fixture_params(
	struct backup_fixture *fixture, const struct file_ops *files);
/* One run: a round, and then pruning if `keep` or `spacing_ms` is set. */
int backup_fixture_run(struct backup_fixture *fixture, const struct file_ops *files);
/* A run that succeeds and makes a moment. */
void backup_fixture_make(struct backup_fixture *fixture);
/* The moments of the place, the oldest first; release them. */
struct backup_moments backup_fixture_moments(struct backup_fixture *fixture);
/* Restores one of them, or with NULL the latest, to a folder. */
int backup_fixture_restore(struct backup_fixture *fixture, const struct backup_moment *moment,
	const char *folder, const struct file_ops *files);
/* Opens a store of that folder. */
void backup_fixture_open_at(struct store_fixture *out, char *folder);
void backup_fixture_close_at(struct store_fixture *store);
bool backup_fixture_holds(struct store_fixture *store, const char *key, size_t size, uint64_t seed);
/* A restore of the latest moment that succeeds. The store has all of `keys`; close it with
 * backup_fixture_drop. */
void backup_fixture_bring(struct backup_fixture *fixture, struct store_fixture *out);
void backup_fixture_drop(struct store_fixture *out);
/* Runs a shell command in a folder, which must succeed. */
void backup_fixture_shell(const char *folder, const char *script);

#endif
