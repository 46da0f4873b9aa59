/* What the store holds, in a few numbers. */
#ifndef STORAGE_OVERVIEW_STORE_GLANCE_H
#define STORAGE_OVERVIEW_STORE_GLANCE_H

#include "storage/core/call.h"

struct store_glance {
	uint64_t buckets; /* those of the account, or all */
	/* of all buckets: */
	uint64_t runs;
	uint64_t logical_bytes; /* of current versions */
	uint64_t stored_bytes;  /* of packs */
};

/* A call (storage/core/call.h). `owner` is the namespace of an account; empty: all. */
struct call *store_glance_call(struct store *store, struct span owner);
/* Once the call has succeeded. */
const struct store_glance *store_glance_result(const struct call *call);

#endif
