/* The look at the whole catalog behind each start (db_check.h), and again when a page is found
 * damaged later on. Until it has found everything sound, nothing is deleted (store_health.h).
 * Damaged indexes are rebuilt from their tables; a damaged table is named, and stays as it is. A
 * thread of its own. Internal to storage. */
#ifndef STORAGE_START_CATALOG_CHECKER_H
#define STORAGE_START_CATALOG_CHECKER_H

#include "storage/core/store.h"

struct catalog_checker;
struct catalog_checker *catalog_checker_start(struct store *store);
/* NULL is fine; before the committer stops */
void catalog_checker_stop(struct catalog_checker *checker);

#endif
