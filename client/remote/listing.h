/* Parses the server's XML answers (ListObjectsV2, ListBuckets, errors) with xml_reader, under its
 * caps and one on the number of entries. The results lie in the arena. */
#ifndef CLIENT_REMOTE_LISTING_H
#define CLIENT_REMOTE_LISTING_H

#include "base/arena.h"
#include "base/error.h"

enum { LISTING_ENTRIES_MAX = 10000 };

struct listing_entry {
	struct span name; /* key, common prefix or bucket name, percent-decoded */
	bool is_prefix;
	uint64_t size;
	struct span modified; /* as the server sent it; empty for prefixes */
	struct span etag;     /* without quotes */
};

struct listing {
	struct listing_entry *entries; /* keys and prefixes in the order of the answer */
	size_t count;
	bool truncated;
	struct span next; /* continuation token; empty when there is none */
};
/* Fails with upstream when the answer is malformed, and with too_large when the arena is full. */
int listing_parse(struct span xml, struct arena *arena, struct listing *out, struct error *err);

struct listing_error {
	struct span code; /* "NoSuchKey" */
	struct span message;
};
/* False when `xml` is not an S3 error answer. */
bool listing_parse_error(struct span xml, struct arena *arena, struct listing_error *out);

#endif
