/* The MD5 of many streams at once. Each stream hands in its blocks; one helper at a time takes the first waiting block of up to MD5_LANES
 * streams and digests them side by side (base/md5.h), which takes little longer than one of them. So a lone stream never waits, and the more
 * streams there are, the less each costs. A second helper joins in when MD5_LANES streams wait. Internally locked; any thread may submit. */
#ifndef STORAGE_MD5_POOL_H
#define STORAGE_MD5_POOL_H

#include "base/md5.h"
#include "storage/helpers.h"

struct md5_pool;

struct md5_pool_job { /* embed in the block */
	struct span bytes;
	void (*done)(struct md5_pool_job *job); /* on a helper; may free the job and, with the last one, the stream */
	struct md5_pool_job *next;              /* the queue's */
};
struct md5_pool_stream { /* embed in whoever owns the blocks; zero it to begin */
	struct md5_stream *md5;
	struct md5_pool_job *first;
	struct md5_pool_job *last;
	struct md5_pool_stream *next;
	bool taken; /* a helper is at one of its blocks */
};

struct md5_pool *md5_pool_new(void);
void md5_pool_free(struct md5_pool *pool); /* after helpers_stop; NULL is fine */
/* Adds the job's bytes to the stream behind those of earlier jobs. */
void md5_pool_submit(struct md5_pool *pool, struct helpers *helpers, struct md5_pool_stream *stream, struct md5_pool_job *job);

#endif
