/* The inside of the block cache: block_cache.c (files), block_read.c (reads and their waits),
 * block_fetch.c (the threads that fetch), block_room.c (the bound, and descriptors), block_scan.c
 * (what the last process left).
 *
 *   ABSENT --asked--> QUEUED --a thread takes it--> FETCHING --> HELD, LOOSE or FAILED
 *   HELD --evicted--> LEAVING --> ABSENT      HELD, LOOSE --forgotten--> ABSENT
 *
 * The lock is never held during I/O. */
#ifndef STORAGE_FAR_BLOCK_CACHE_INTERNAL_H
#define STORAGE_FAR_BLOCK_CACHE_INTERNAL_H

#include <pthread.h>

#include "base/thread/lock.h"
#include "storage/far/block_cache.h"

enum { BLOCK_BUCKETS = 16 * 1024, BLOCK_PATH_BYTES = 4096 };
enum { BLOCK_PREFIX = 2 }; /* characters of a name that name its folder */

enum block_state {
	BLOCK_ABSENT,
	BLOCK_QUEUED,
	BLOCK_FETCHING,
	BLOCK_HELD,   /* on the local disk, and counted */
	BLOCK_LOOSE,  /* in memory alone, because the disk did not take it */
	BLOCK_FAILED, /* reads fail at once for a moment */
	BLOCK_LEAVING /* evicted; its bytes are on their way out */
};
struct block_bytes { /* of a loose block; freed with the last use */
	unsigned uses;
	size_t len;
	uint8_t data[];
};
struct block_wait { /* a fetch that was asked for */
	struct block_wait *next;
	struct block_file *file;
	uint64_t offset;
	uint64_t length;
	block_wake_fn *wake;
	void *owner;
};
struct block {
	struct block_file *file;
	uint32_t number;
	enum block_state state;
	unsigned pins;       /* readers of its bytes on the disk, and threads that wait for it */
	bool is_stale;       /* forgotten while it was fetched */
	bool is_unkept;      /* the disk gave it back wrong: it stays in memory */
	struct block *newer; /* HELD: among all; LOOSE: among the loose ones */
	struct block *older;
	struct block *behind; /* in the queue */
	struct block_wait *waits;
	struct block_bytes *loose;
	struct error *failure;
	int64_t failed_until_ms;
};
struct block_list { /* from the newest to the oldest */
	struct block *newest;
	struct block *oldest;
	size_t count;
};
struct block_file {
	struct block_cache *cache;
	struct block_file *chained;
	unsigned users;
	uint64_t length;
	bool has_length;
	bool is_measured; /* the length is the source's, and not that of a file left here */
	bool is_new;      /* written here and not stored */
	bool is_sent;     /* the source may have it */
	bool is_removed;  /* in no bucket any more */
	bool is_leaving;  /* its local file is being removed */
	int fd;           /* -1: not open */
	unsigned fd_users;
	struct block_file *fd_newer;
	struct block_file *fd_older;
	struct block **blocks;
	uint32_t capacity;
	uint32_t present; /* blocks that are not NULL */
	uint32_t last;    /* the block that was read last */
	unsigned run;     /* how many were read one after the other */
	char name[];
};
struct block_cache {
	char *folder;
	const struct file_ops *files;
	struct block_source *source;
	uint64_t max_bytes;
	uint32_t block_bytes;
	unsigned open_max;
	struct lock lock; /* guards all that follows */
	struct lock_condition queued;
	struct lock_condition moved; /* a block or a file changed its state */
	struct block_file *buckets[BLOCK_BUCKETS];
	struct block_list held;
	struct block_list loose;
	struct block *first; /* the queue */
	struct block *last;
	size_t queue_length;
	uint64_t bytes; /* of held and leaving blocks, of those being kept, and of new files */
	struct block_file *fd_newest;
	struct block_file *fd_oldest;
	unsigned open_files;
	bool is_ending;
	pthread_t *threads;
	unsigned thread_count;
};

/* --- block_cache.c; under the lock */
struct block_file *block_cache_find(struct block_cache *cache, const char *name);
struct block_file *block_cache_add(struct block_cache *cache, const char *name);
/* Frees the file when nobody uses it and nothing of it is here. */
void block_cache_settle_file(struct block_file *file);
struct block *block_cache_block(struct block_file *file, uint32_t number);
/* NULL when nothing is known of it. */
struct block *block_cache_peek(const struct block_file *file, uint32_t number);
/* Makes it ABSENT from a state in which nobody works on it, and frees it when nobody needs it. */
void block_cache_drop(struct block *block);
/* All blocks of a file that nobody fetches or evicts; without `is_all` not those on the disk. */
void block_cache_drop_all(struct block_file *file, bool is_all);
void block_cache_settle_block(struct block *block);
void block_cache_hold(struct block *block);                                  /* makes it HELD */
void block_cache_release(struct block_bytes *bytes);                         /* NULL is fine */
uint32_t block_cache_length(const struct block_file *file, uint32_t number); /* of the block */
/* without the lock */
void block_cache_path(const struct block_file *file, bool is_new, char out[BLOCK_PATH_BYTES]);

/* --- block_read.c; under the lock */
/* Puts the wait into *over when a read would not wait any more. */
void block_read_begin_wait(struct block_wait *wait, struct block_wait **over);
/* The waits of the block that are over go into *out; the others wait for another block. */
void block_read_end_waits(struct block *block, struct block_wait **out);
void block_read_wake(struct block_wait *over); /* without the lock */

/* --- block_fetch.c */
void *block_fetch_run(void *cache);
void block_fetch_queue(struct block *block, bool is_urgent); /* under the lock */

/* --- block_room.c */
void block_room_add(struct block_list *list, struct block *block);  /* under the lock */
void block_room_take(struct block_list *list, struct block *block); /* the same */
/* Without the lock: counts `bytes` and evicts what is over the bound. False: there is no room, and
 * they are not counted. */
bool block_room_make(struct block_cache *cache, uint64_t bytes);
/* Without the lock: evicts some blocks, however many there are, since the disk is full. */
void block_room_relieve(struct block_cache *cache);
/* Without the lock: the descriptor of the local file, to be given back. `is_made`: made when it is
 * absent, with the file's length. */
int block_room_open(struct block_file *file, bool is_made, int *out_fd, struct error *err);
void block_room_give(struct block_file *file);
void block_room_set_fd(struct block_file *file, int fd); /* under the lock */
/* Under the lock: takes the descriptor out of the file; -1: it has none, or it is used. The caller
 * closes it without the lock. */
int block_room_take_fd(struct block_file *file);

/* --- block_scan.c; before the threads begin */
int block_scan_run(struct block_cache *cache, struct error *err);

#endif
