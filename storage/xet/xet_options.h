/* What the operator has set for clients that speak Xet. Internal to storage, but for the options of
 * store_open.h. */
#ifndef STORAGE_XET_XET_OPTIONS_H
#define STORAGE_XET_XET_OPTIONS_H

#include <stdint.h>

struct xet_options {
	/* how long a xorb that a client has sent stays at least: it may be named without being
	 * asked for */
	int64_t upload_promise_ms;
	int64_t answer_promise_ms; /* the same of a xorb that an answer about a chunk has named */
	uint64_t made_max_bytes;   /* of derived objects that are kept as records for a while */
	uint8_t key[32];           /* what answers hide chunk ids with is worked out from it */
};

#endif
