/* Streams of bytes that wait for their place in a file. One thread writes a stream. Small streams
 * stay in memory; the rest lies in unnamed files beside the staging's target. A stream may be read,
 * from any thread, once its writing has ended. */
#ifndef WEIGHTS_MODEL_SPOOL_H
#define WEIGHTS_MODEL_SPOOL_H

#include "weights/model/staging.h"

struct spool;

/* `staging` must outlive the spool, and only the spool may use it meanwhile. Several threads may
 * write their own streams at once. */
struct spool *spool_new(struct staging *staging, const struct file_ops *ops, size_t streams);
void spool_free(struct spool *spool); /* NULL is fine */

/* The count of bytes written so far, which is the place of the next byte. */
uint64_t spool_end(const struct spool *spool, size_t stream);
int spool_add(struct spool *spool, size_t stream, struct span bytes, struct error *err);
int spool_read(const struct spool *spool, size_t stream, uint64_t at, uint8_t *into, size_t len,
	struct error *err);
/* Makes the stream empty again. It keeps its memory and file. */
void spool_rewind(struct spool *spool, size_t stream);

#endif
