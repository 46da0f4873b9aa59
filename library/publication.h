/* What the caller wants published, as the client's code takes it: a publish_order. */
#ifndef LIBRARY_PUBLICATION_H
#define LIBRARY_PUBLICATION_H

#include "client/publish/rank_publisher.h"
#include "library/deltabucket.h"

struct library_publication { /* stays in its place: its parts point to each other */
	struct deltabucket_publication given;
	struct publish_order order; /* what the caller says of this step; the rest is zero */
	struct rank_order rank;     /* ranks 0: the publisher is alone */
	struct memory_parts parts;
	struct memory_tensor *tensors;
	struct memory_file *files;
	struct buffer metadata;
};

/* invalid when members contradict each other, or when a tensor, the anchor, the format, the label,
 * the rank or the metadata breaks a rule. Release it also after a failure. */
int library_publication_read(struct library_publication *publication,
	const struct deltabucket_publication *given, struct error *err);
void library_publication_release(struct library_publication *publication);
/* The checkpoint's bytes: those of its files, or of its tensors; of a rank those of its part. */
int library_publication_bytes(
	const struct library_publication *publication, uint64_t *out, struct error *err);

#endif
