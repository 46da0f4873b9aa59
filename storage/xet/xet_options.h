/* The operator's settings for clients that speak Xet. Internal to storage, except for the options
 * of store_open.h. */
#ifndef STORAGE_XET_XET_OPTIONS_H
#define STORAGE_XET_XET_OPTIONS_H

#include <stdint.h>

struct xet_options {
	/* How long a xorb stays at least after its upload. Clients may name it in that time without
	 * asking whether it is still stored. */
	int64_t upload_promise_ms;
	/* The same for a xorb that an answer about a chunk has named. 0: no chunk is told of. */
	int64_t answer_promise_ms;
	uint64_t made_max_bytes; /* all made files together (made_file.h) */
	uint8_t key[32];         /* the keys that hide chunk ids in answers are derived from it */
};

#endif
