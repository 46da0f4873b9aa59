/* What files hashed to when they were last read, so that an unchanged one costs a stat. One file of
 * fixed records in the user's cache folder ($XDG_CACHE_HOME/deltabucket/hashes or
 * ~/.cache/deltabucket/hashes): a record counts only while size, both times, inode and device are
 * what they were, and only where the file had rested for two seconds when it was read (a later
 * write could leave the times as they are). It is not synced: damage costs the records it hits.
 * Several processes may use it: the one that closes last adds to what the others wrote. Any thread.
 * docs/FORMAT.md, "Files of the command line". */
#ifndef CLIENT_LOCAL_HASH_CACHE_H
#define CLIENT_LOCAL_HASH_CACHE_H

#include "base/file.h"
#include "client/local/file_chunks.h"

enum { HASH_CACHE_RECORDS_MAX = 131072, HASH_CACHE_REST_MS = 2000 };

struct hash_cache;

/* Heap, the caller's; NULL when there is no home folder. */
char *hash_cache_default_path(void);
/* Never fails: what cannot be read is empty. `path` NULL remembers only until it is closed. */
struct hash_cache *hash_cache_open(const struct file_ops *files, const char *path);
/* Saves what was added, as well as it can, and frees. */
void hash_cache_close(struct hash_cache *cache);

bool hash_cache_find(struct hash_cache *cache, const char *path, const struct file_facts *facts,
	struct chunk_id *out_hash);
/* `read_ms`: wall clock before the file was read. */
void hash_cache_add(struct hash_cache *cache, const char *path, const struct file_facts *facts,
	const struct chunk_id *hash, int64_t read_ms);
/* The file's hash, from the cache or by reading the file (and then remembered). */
int hash_cache_hash(struct hash_cache *cache, const char *path, const struct interrupt *interrupt,
	struct chunk_id *out_hash, struct error *err);

#endif
