/* The MD5 of many streams at once. Each stream hands in its blocks; a helper takes the first
 * waiting block of up to MD5_LANES streams and digests them side by side (base/digest/md5.h), which
 * takes little longer than one of them: the more streams, the less each costs. So that they come
 * together, a block waits until most of the open streams have one, or its stream has several or
 * ends. Fewer streams than pay side by side do not wait for each other. Internally locked; any
 * thread may call. */
#ifndef BASE_THREAD_MD5_POOL_H
#define BASE_THREAD_MD5_POOL_H

#include "base/digest/md5.h"
#include "base/thread/helpers.h"

enum { MD5_POOL_PATIENCE = 8 }; /* blocks that a stream lets wait for other streams */

struct md5_pool;

struct md5_pool_job { /* embed in the block */
	struct span bytes;
	/* on a helper; may free the job and, with the last one, the stream */
	void (*done)(struct md5_pool_job *job);
	struct md5_pool_job *next; /* the queue's */
};
struct md5_pool_stream { /* embed in whoever owns the blocks; zero it to begin */
	struct md5_stream *md5;
	struct md5_pool_job *first; /* the pool's, from here on */
	struct md5_pool_job *last;
	size_t jobs;
	struct md5_pool_stream *next;
	bool is_open; /* it has begun and not ended */
	bool has_ended;
	bool is_taken;  /* a helper is at one of its blocks */
	bool is_urgent; /* its blocks wait no longer */
};

struct md5_pool *md5_pool_new(void);
void md5_pool_free(struct md5_pool *pool); /* after helpers_stop; NULL is fine */
/* Adds the job's bytes to the stream behind those of earlier jobs. */
void md5_pool_submit(struct md5_pool *pool, struct helpers *helpers, struct md5_pool_stream *stream,
	struct md5_pool_job *job);
/* The stream's blocks wait no longer, neither those that are there nor those that may still come.
 * To be called at the end of every stream, while it surely lives; twice does no harm. */
void md5_pool_end(struct md5_pool *pool, struct helpers *helpers, struct md5_pool_stream *stream);

#endif
