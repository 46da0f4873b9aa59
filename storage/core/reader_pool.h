/* Reading connections of one catalog. A connection is lent for a few statements, and then kept for
 * the next loan. Internally locked; any thread. Internal to storage. */
#ifndef STORAGE_CORE_READER_POOL_H
#define STORAGE_CORE_READER_POOL_H

#include "storage/db/db.h"

struct reader_pool;

struct reader_pool *reader_pool_new(void);
void reader_pool_free(struct reader_pool *pool); /* All must have been given back. Closes them. */

/* `path` is that of the catalog, the same in each call. NULL with the error set on failure. */
struct db *reader_pool_take(struct reader_pool *pool, const char *path, struct error *err);
void reader_pool_give(struct reader_pool *pool, struct db *reader); /* NULL is fine */
/* Closes the connections that are not lent; later loans open new ones. No other thread may use the
 * pool meanwhile. */
void reader_pool_close_idle(struct reader_pool *pool);
/* Takes a mark, and tells whether all connections that were lent at that time have been given
 * back. */
uint64_t reader_pool_mark(struct reader_pool *pool);
bool reader_pool_passed(struct reader_pool *pool, uint64_t mark);

#endif
