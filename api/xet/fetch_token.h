/* The token in a fetch URL: for an hour it permits chunk records of certain packs, at certain
 * offsets of a shown xorb, as long as the caller it was made for may know of the bucket. With the
 * setting shared_urls it names no caller, is the same for all that ask within an hour, and ends as
 * a shared URL does (api/auth/shared_url.h). It is sealed with the server's key, because the places
 * of records tell how much all callers write. The server stores no tokens. docs/FORMAT.md, "Fetch
 * tokens". Pure; any thread. */
#ifndef API_XET_FETCH_TOKEN_H
#define API_XET_FETCH_TOKEN_H

#include "base/buffer.h"
#include "storage/packs/segment.h"

enum {
	FETCH_TOKEN_SECONDS = 3600,
	FETCH_SPANS_MAX = 32,
	FETCH_TOKEN_MAX_BYTES = 1536,
	FETCH_KEY_BYTES = 32,
	FETCH_KEY_ID_MAX = 128
};

struct fetch_span {
	struct pack_id pack;
	uint32_t first; /* chunk number in the pack */
	uint32_t count;
	uint32_t offset; /* in the shown xorb; spans rise and do not overlap */
	uint32_t length;
};
struct fetch_token {
	int64_t expires_s;
	int64_t bucket;                   /* id; the permission ends with the bucket */
	uint8_t key_id[FETCH_KEY_ID_MAX]; /* of the caller's key */
	size_t key_id_len;                /* 0: anonymous, or shared */
	bool is_shared;                   /* opens for everybody; no key is named */
	bool as_stored; /* records with private codecs are sent as they are stored */
	uint32_t total; /* bytes of the shown xorb */
	/* Not 0: the record of this inline version; one span, with offset and length only. */
	int64_t version;
	struct fetch_span spans[FETCH_SPANS_MAX];
	size_t span_count;
};
/* Adds the token's text to `out`. The token has at least one span. */
void fetch_token_print(
	const struct fetch_token *token, const uint8_t key[FETCH_KEY_BYTES], struct buffer *out);
/* False when the text is not a token that `key` has sealed. The caller checks expires_s, the key
 * and the bucket. */
bool fetch_token_parse(
	struct span text, const uint8_t key[FETCH_KEY_BYTES], struct fetch_token *out);

/* Reads the bytes inside the seal; for tests. */
bool fetch_token_decode(struct span bytes, struct fetch_token *out);

#endif
