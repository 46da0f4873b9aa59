/* The hashes of files that were read earlier, so that an unchanged file costs one stat. The cache
 * is one file of fixed-size records in the user's cache folder ($XDG_CACHE_HOME/deltabucket/hashes
 * or ~/.cache/deltabucket/hashes). A record counts only while the file's size, both times, inode
 * and device are unchanged. A file is recorded only when it had not changed for two seconds before
 * it was read, because a later write could leave the times as they are. The cache is not synced:
 * damage costs only the damaged records. Several processes may use it: each adds its records to
 * those in the file when it closes. Any thread. docs/FORMAT.md, "Files of the command line". */
#ifndef CLIENT_LOCAL_HASH_CACHE_H
#define CLIENT_LOCAL_HASH_CACHE_H

#include "base/file.h"
#include "client/local/file_chunks.h"

enum { HASH_CACHE_RECORDS_MAX = 131072, HASH_CACHE_REST_MS = 2000 };

struct hash_cache;

/* The caller frees it. NULL when there is no home folder. */
char *hash_cache_default_path(void);
/* Never fails: a file that cannot be read counts as empty. With `path` NULL the cache lasts only
 * until it is closed. */
struct hash_cache *hash_cache_open(const struct file_ops *files, const char *path);
/* Tries to save the new records, and frees the cache. NULL is fine. */
void hash_cache_close(struct hash_cache *cache);

bool hash_cache_find(struct hash_cache *cache, const char *path, const struct file_facts *facts,
	struct chunk_id *out_hash);
/* `read_ms` is the wall clock, in milliseconds, from before the file was read. */
void hash_cache_add(struct hash_cache *cache, const char *path, const struct file_facts *facts,
	const struct chunk_id *hash, int64_t read_ms);
/* The file's hash, from the cache, or by reading the file, which is then recorded. */
int hash_cache_hash(struct hash_cache *cache, const char *path, const struct stop *stop,
	struct chunk_id *out_hash, struct error *err);

#endif
