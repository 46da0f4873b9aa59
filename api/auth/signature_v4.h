/* AWS Signature Version 4: parsing and comparing. The signature comes in the Authorization header,
 * in the query (presigned_v4.h) or in a form (api/s3/post/post_signature.h). Any thread. */
#ifndef API_AUTH_SIGNATURE_V4_H
#define API_AUTH_SIGNATURE_V4_H

#include "api/auth/canonical_request.h"
#include "base/digest/digest.h"

struct signature_v4 { /* spans point into the request */
	struct span key_id;
	struct span date; /* yyyymmdd */
	struct span region;
	struct span signed_headers; /* a;b;c */
	struct span signature;      /* 64 hex digits */
};

/* Parses the Authorization header. Fails with auth_malformed, or with invalid when it is not an
 * AWS4-HMAC-SHA256 header. */
int signature_v4_parse(struct span authorization, struct signature_v4 *out, struct error *err);
/* Parses KEY/yyyymmdd/region/s3/aws4_request and sets the first three fields. Fails with
 * auth_malformed. The message is a clause without a full stop, because callers put it into their
 * own. */
int signature_v4_parse_credential(
	struct span credential, struct signature_v4 *out, struct error *err);
/* Whether the signature covers a header (name in any case). */
bool signature_v4_signs(const struct signature_v4 *signature, struct span header_name);
/* Fails with denied unless host and all x-amz-* headers of the request are signed. The header
 * `spared` may be unsigned (NULL: none). */
int signature_v4_check_headers(struct exchange *exchange, const struct signature_v4 *signature,
	const char *spared, struct error *err);

/* "20130524/us-east-1/s3/aws4_request", in the arena. */
struct span signature_v4_scope(struct arena *arena, const struct signature_v4 *signature);

/* Compares the signature with the one that the signing key (signing_key.h) gives. `amz_date` has
 * the form 20130524T000000Z. Fails with signature (with details that show a client the difference),
 * bad_uri or too_large. Sets signed_headers of its copy of `request`. */
int signature_v4_check(struct exchange *exchange, const struct signature_v4 *signature,
	const uint8_t key[SHA256_BYTES], struct span amz_date, struct canonical_request request,
	struct error *err);
/* Whether `signature` is the one that the key gives for `text`. */
bool signature_v4_matches(const uint8_t key[SHA256_BYTES], struct span text, struct span signature);

#endif
