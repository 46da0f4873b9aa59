/* Part of a checkpoint's tensors, for engines that are sharded: by name (GLOB[,GLOB...] as fnmatch
 * has it) or as one of N shares of about the same bytes (I/N: neighbours in byte order of the names
 * stay together). */
#ifndef CLIENT_LOCAL_SUBSET_H
#define CLIENT_LOCAL_SUBSET_H

#include "weights/model/schema.h"

struct subset {
	char *text; /* "model.layers.*" or "rank 2/8": what the fleet view shows; NULL: there is no subset, all is held */
	const char *glob; /* NULL: by rank */
	uint64_t rank, ranks;
};

/* Both may be NULL. invalid for both at once, and for what is neither. `glob` is borrowed. */
int subset_init(struct subset *subset, const char *glob, const char *rank, struct error *err);
void subset_release(struct subset *subset);
/* Of each tensor in schema order: whether it belongs to it. Heap, the caller's. NULL with not_found
 * when none does. */
bool *subset_select(const struct subset *subset, const struct schema *schema, struct error *err);

/* "I/N" with I < N <= 65536. False for anything else. */
bool subset_parse_rank(const char *text, uint64_t *out_rank, uint64_t *out_ranks);

#endif
