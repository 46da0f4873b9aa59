/* The server's XML answers (ListObjectsV2, ListBuckets, errors) over expat (the client's one home
 * of it). Bounded: entries, text and depth are capped, document types and entities are refused.
 * What is found lies in the arena. */
#ifndef CLIENT_REMOTE_LISTING_H
#define CLIENT_REMOTE_LISTING_H

#include "base/arena.h"
#include "base/error.h"

enum { LISTING_ENTRIES_MAX = 10000, LISTING_TEXT_MAX_BYTES = 16 * 1024 };

struct listing_entry {
	/* key, common prefix or bucket name; percent-decoded when the answer says encoding-type
	 * url */
	struct span name;
	bool is_prefix;
	uint64_t size;
	struct span modified; /* as sent; empty for prefixes */
	struct span etag;     /* without quotes */
};

struct listing {
	struct listing_entry *entries; /* keys and prefixes as they came */
	size_t count;
	bool truncated;
	struct span next; /* continuation token */
};
int listing_parse(struct span xml, struct arena *arena, struct listing *out, struct error *err);

struct listing_error {
	struct span code; /* "NoSuchKey" */
	struct span message;
};
/* False when `xml` is no S3 error answer. */
bool listing_parse_error(struct span xml, struct arena *arena, struct listing_error *out);

#endif
