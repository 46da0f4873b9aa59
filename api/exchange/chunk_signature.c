#include "api/exchange/chunk_signature.h"

#include <string.h>

#include "base/encode.h"

enum { TEXT_MAX_BYTES = 4096 };

static bool check(struct chunk_signature *chain, const char *algorithm, const char *hashes,
	struct span given);

bool chunk_signature_check(
	struct chunk_signature *chain, const uint8_t chunk_sha256[SHA256_BYTES], struct span given)
{
	static const char empty[] =
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n";
	char hashes[sizeof(empty) + SIGNATURE_V4_CHARACTERS];
	memcpy(hashes, empty, sizeof(empty) - 1);
	encode_hex(span_of(chunk_sha256, SHA256_BYTES), hashes + sizeof(empty) - 1);
	return check(chain, "AWS4-HMAC-SHA256-PAYLOAD", hashes, given);
}

bool chunk_signature_check_trailer(
	struct chunk_signature *chain, struct span lines, struct span given)
{
	uint8_t hash[SHA256_BYTES];
	char hex[SIGNATURE_V4_CHARACTERS + 1];
	sha256(lines, hash);
	encode_hex(span_of(hash, sizeof(hash)), hex);
	return check(chain, "AWS4-HMAC-SHA256-TRAILER", hex, given);
}

void chunk_signature_wipe(struct chunk_signature *chain)
{
	explicit_bzero(chain->key, sizeof(chain->key));
}

/* `hashes` is the end of the signed text, after the previous signature: one hash or two. */
static bool check(
	struct chunk_signature *chain, const char *algorithm, const char *hashes, struct span given)
{
	uint8_t expected[SHA256_BYTES];
	uint8_t parsed[SHA256_BYTES];
	struct buffer text;
	buffer_init(&text, TEXT_MAX_BYTES);
	buffer_format(&text, "%s\n%.*s\n%.*s\n%s\n%s", algorithm, (int)chain->date.len,
		(const char *)chain->date.data, (int)chain->scope.len,
		(const char *)chain->scope.data, chain->previous, hashes);
	hmac_sha256(span_of(chain->key, sizeof(chain->key)), buffer_span(&text), expected);
	const bool good = !buffer_failed(&text) && decode_hex(given, parsed, sizeof(parsed)) &&
		span_equal_secret(
			span_of(expected, sizeof(expected)), span_of(parsed, sizeof(parsed)));
	buffer_release(&text);
	if (good)
		encode_hex(span_of(expected, sizeof(expected)), chain->previous);
	return good;
}
