/* The inside of the pack cache: pack_cache.c (what is in memory), pack_hold.c (references and
 * reads), pack_look.c (the content of a pack), pack_checked.c (chunks that are known to be
 * right). */
#ifndef STORAGE_PACKS_PACK_CACHE_INTERNAL_H
#define STORAGE_PACKS_PACK_CACHE_INTERNAL_H

#include "base/thread/lock.h"
#include "storage/packs/pack_cache.h"

enum { CACHE_TRIM_BATCH = 16 };

struct pack {
	struct pack *chained; /* next in its bucket */
	struct pack *newer;   /* in the list of the recently used */
	struct pack *older;
	struct pack_id id;
	struct pack_id file; /* the name of its file */
	uint64_t length;
	unsigned references;
	unsigned reads[2]; /* index: turn */
	unsigned turn;
	unsigned pins;
	unsigned form;    /* how often records of it were replaced */
	bool is_checked;  /* every chunk counts as checked: this process wrote the file */
	uint8_t *checked; /* otherwise a bit for each checked chunk; NULL: none */
	uint32_t checked_bytes;
	bool known; /* the pack exists; otherwise the node only carries holds or pins */
	bool retiring;
	/* In no bucket any more: it lives for its pins, and another node has its place. */
	bool replaced;
	bool listed;
	enum pack_cache_mode mode;
	struct pack_index *index;
	size_t index_bytes; /* its part of the cache's sum */
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

/* Indexes and files that left the cache under the lock, to be freed and closed without it. */
struct cache_garbage {
	struct pack_index *indexes[CACHE_TRIM_BATCH];
	struct backend_file *files[CACHE_TRIM_BATCH];
	size_t count;
};

/* Under the lock: the link to the pack's node, or to NULL. */
struct pack **pack_cache_link(const struct pack_cache *cache, const struct pack_id *id);
struct pack *pack_cache_find_or_add(struct pack_cache *cache, const struct pack_id *id);
/* Frees the node once it is neither known nor held nor pinned. */
void pack_cache_forget_if_idle(
	struct pack_cache *cache, struct pack *pack, struct cache_garbage *garbage);
/* Leaves the lock, then frees the garbage. */
void pack_cache_leave(struct pack_cache *cache, struct cache_garbage *garbage);
bool pack_is_held(const struct pack *pack);

#endif
