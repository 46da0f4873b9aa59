/* The inside of the pack cache: pack_cache.c (what is in memory), pack_hold.c (who needs a pack),
 * pack_look.c (what a pack holds), pack_checked.c (which chunks are known to be right). */
#ifndef STORAGE_PACKS_PACK_CACHE_INTERNAL_H
#define STORAGE_PACKS_PACK_CACHE_INTERNAL_H

#include "base/thread/lock.h"
#include "storage/packs/pack_cache.h"

enum { CACHE_TRIM_BATCH = 16 };

struct pack {
	struct pack *chained; /* in its bucket */
	struct pack *newer;   /* in the list of the recently used */
	struct pack *older;
	struct pack_id id;
	struct pack_id file; /* names the file */
	uint64_t length;
	unsigned references;
	unsigned reads[2]; /* by turn */
	unsigned turn;
	unsigned pins;
	unsigned form;    /* how often records of it were replaced */
	bool is_checked;  /* every chunk counts as checked: this process wrote the file */
	uint8_t *checked; /* else a bit for each that was; NULL: none was */
	uint32_t checked_bytes;
	bool known; /* exists; otherwise the node only carries holds or pins */
	bool retiring;
	/* in no bucket any more: lives for its pins, another node has its place */
	bool replaced;
	bool listed;
	enum pack_cache_mode mode;
	struct pack_index *index;
	size_t index_bytes; /* as counted in the cache's sum */
	struct backend_file *opened;
};

struct pack_cache {
	struct backend *backend;
	struct pack_cache_limits limits;
	struct lock lock;
	struct pack **buckets;
	size_t bucket_count;
	size_t pack_count;
	struct pack *newest;
	struct pack *oldest;
	size_t index_bytes;
	unsigned open_files;
};

/* What left the cache under the lock, to be let go of without it. */
struct cache_garbage {
	struct pack_index *indexes[CACHE_TRIM_BATCH];
	struct backend_file *files[CACHE_TRIM_BATCH];
	size_t count;
};

/* Under the lock: the link that leads to the pack's node, or to NULL. */
struct pack **pack_cache_link(const struct pack_cache *cache, const struct pack_id *id);
struct pack *pack_cache_find_or_add(struct pack_cache *cache, const struct pack_id *id);
/* Frees the node once nobody knows, holds or pins it. */
void pack_cache_forget_if_idle(
	struct pack_cache *cache, struct pack *pack, struct cache_garbage *garbage);
/* Leaves the lock, then lets go of the garbage. */
void pack_cache_leave(struct pack_cache *cache, struct cache_garbage *garbage);
bool pack_is_held(const struct pack *pack);

#endif
