/* Checks the whole catalog after each start (db_check.h), and again when a page is later found
 * damaged. Nothing is deleted until everything was found sound (store_health.h). Damaged indexes
 * are rebuilt from their tables. A damaged table is reported and stays as it is. Has a thread of
 * its own. Internal to storage. */
#ifndef STORAGE_START_CATALOG_CHECKER_H
#define STORAGE_START_CATALOG_CHECKER_H

#include "storage/core/store.h"

struct catalog_checker;
struct catalog_checker *catalog_checker_start(struct store *store);
/* Call it before the committer stops. NULL is fine. */
void catalog_checker_stop(struct catalog_checker *checker);

#endif
