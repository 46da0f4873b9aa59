/* Streams of bytes that wait: each is one thread's to write, small ones stay in memory, the rest
 * lies in unnamed files beside the staging's target. Reading comes when writing has ended (of that
 * stream), from any thread. */
#ifndef WEIGHTS_MODEL_SPOOL_H
#define WEIGHTS_MODEL_SPOOL_H

#include "weights/model/staging.h"

struct spool;

/* `staging` must outlive it, and nobody else may use it meanwhile. Streams may be begun on several
 * threads. */
struct spool *spool_new(struct staging *staging, const struct file_ops *ops, size_t streams);
void spool_free(struct spool *spool); /* NULL is fine */

/* bytes written so far: where the next ones will lie */
uint64_t spool_end(const struct spool *spool, size_t stream);
int spool_add(struct spool *spool, size_t stream, struct span bytes, struct error *err);
int spool_read(const struct spool *spool, size_t stream, uint64_t at, uint8_t *into, size_t len,
	struct error *err);
/* The stream is empty again and keeps its memory and file. */
void spool_rewind(struct spool *spool, size_t stream);

#endif
