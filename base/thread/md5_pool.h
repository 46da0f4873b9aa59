/* The MD5 of many streams at once. Each stream submits its blocks. A helper takes the first waiting
 * block of up to MD5_LANES streams and digests them side by side (base/digest/md5.h), which takes
 * little longer than one of them: the more streams, the less each one costs. To come together, a
 * block waits until most of the open streams have one, or until its own stream has several or ends.
 * Streams do not wait for each other when there are too few of them to gain from it. Internally
 * locked; any thread. */
#ifndef BASE_THREAD_MD5_POOL_H
#define BASE_THREAD_MD5_POOL_H

#include "base/digest/md5.h"
#include "base/thread/helpers.h"

enum { MD5_POOL_PATIENCE = 8 }; /* a stream with this number of blocks waits no longer */

struct md5_pool;

struct md5_pool_job { /* Embed it in the block. */
	struct span bytes;
	/* on a helper; may free the job and, with the last job, the stream */
	void (*done)(struct md5_pool_job *job);
	struct md5_pool_job *next; /* owned by the queue */
};
struct md5_pool_stream { /* Embed it in the owner of the blocks, zeroed. */
	struct md5_stream *md5;
	struct md5_pool_job *first; /* owned by the pool, like all fields below */
	struct md5_pool_job *last;
	size_t jobs;
	struct md5_pool_stream *next;
	bool is_open; /* has begun and not ended */
	bool has_ended;
	bool is_taken;  /* a helper digests one of its blocks */
	bool is_urgent; /* its blocks wait no longer */
};

struct md5_pool *md5_pool_new(void);
void md5_pool_free(struct md5_pool *pool); /* after helpers_stop; NULL is fine */
/* Adds the job's bytes to the stream, after those of earlier jobs. */
void md5_pool_submit(struct md5_pool *pool, struct helpers *helpers, struct md5_pool_stream *stream,
	struct md5_pool_job *job);
/* The blocks of the stream wait no longer, neither those that are queued nor those that may still
 * come. The owner must call it at the end of every stream, while the stream surely lives. A second
 * call does nothing. */
void md5_pool_end(struct md5_pool *pool, struct helpers *helpers, struct md5_pool_stream *stream);

#endif
