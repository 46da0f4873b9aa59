/* A part of a checkpoint's tensors, for sharded engines. It is chosen by name (GLOB[,GLOB...], as
 * fnmatch defines them), or as one of N shares of about equal size in bytes (I/N). A share is a run
 * of neighbours in byte order of the names. */
#ifndef CLIENT_LOCAL_SUBSET_H
#define CLIENT_LOCAL_SUBSET_H

#include "weights/model/schema.h"

struct subset {
	/* "model.layers.*" or "rank 2/8", as `replicas` shows it; NULL: all tensors */
	char *text;
	const char *glob; /* NULL: by rank */
	uint64_t rank, ranks;
};

/* `glob`, which is borrowed, and `rank` may be NULL. Fails with invalid when both are given, and
 * when `rank` is malformed. */
int subset_init(struct subset *subset, const char *glob, const char *rank, struct error *err);
void subset_init_tensors(struct subset *subset, const char *glob);
void subset_init_rank(struct subset *subset, uint64_t rank, uint64_t ranks); /* rank < ranks */
void subset_release(struct subset *subset);
/* For each tensor in schema order: whether it belongs to the subset. The caller frees the array.
 * NULL with not_found when no tensor belongs to it. */
bool *subset_select(const struct subset *subset, const struct schema *schema, struct error *err);

enum { SUBSET_RANKS_MAX = 65536 };

/* Parses "I/N" with I < N <= SUBSET_RANKS_MAX. False for anything else. */
bool subset_parse_rank(const char *text, uint64_t *out_rank, uint64_t *out_ranks);

#endif
