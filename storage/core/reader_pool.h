/* Reading connections of one catalog, lent for the time of a few statements and kept for the next.
 * Internally locked. Internal to storage. */
#ifndef STORAGE_CORE_READER_POOL_H
#define STORAGE_CORE_READER_POOL_H

#include "storage/db/db.h"

struct reader_pool;

struct reader_pool *reader_pool_new(void);
void reader_pool_free(struct reader_pool *pool); /* all have been given back; closes them */

/* Of the catalog at `path`, always the same. NULL with the error set. */
struct db *reader_pool_take(struct reader_pool *pool, const char *path, struct error *err);
void reader_pool_give(struct reader_pool *pool, struct db *reader); /* NULL is fine */
/* Closes those that nobody has: later ones are opened anew. */
void reader_pool_close_idle(struct reader_pool *pool);
/* Whether all connections that were out at `mark` have been given back. */
uint64_t reader_pool_mark(struct reader_pool *pool);
bool reader_pool_passed(struct reader_pool *pool, uint64_t mark);

#endif
