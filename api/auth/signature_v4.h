/* AWS Signature Version 4: taken apart and compared. The signature stands in the Authorization
 * header, in the query (presigned_v4.h) or in a form (s3/post_policy.h). s3.md 2.1. Any thread. */
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

/* The Authorization header. auth_malformed; invalid when it is no AWS4-HMAC-SHA256 header at
 * all. */
int signature_v4_parse(struct span authorization, struct signature_v4 *out, struct error *err);
/* KEY/yyyymmdd/region/s3/aws4_request: sets the first three fields; auth_malformed. */
int signature_v4_parse_credential(
	struct span credential, struct signature_v4 *out, struct error *err);
/* name in any case */
bool signature_v4_signs(const struct signature_v4 *signature, struct span header_name);
/* Are host and all x-amz-* headers of the request signed, except one named `spared` (NULL: none)?
 * denied. */
int signature_v4_check_headers(struct exchange *exchange, const struct signature_v4 *signature,
	const char *spared, struct error *err);

/* "20130524/us-east-1/s3/aws4_request", in the arena. */
struct span signature_v4_scope(struct arena *arena, const struct signature_v4 *signature);

/* `amz_date` as 20130524T000000Z; `key` is the signing key (signing_key.h). 0 when the signature is
 * the one that it makes; signature (with the details that show a client where it differs), bad_uri,
 * too_large. The request's signed_headers are set here. */
int signature_v4_check(struct exchange *exchange, const struct signature_v4 *signature,
	const uint8_t key[SHA256_BYTES], struct span amz_date, struct canonical_request request,
	struct error *err);
/* Is it the signature of `text`? */
bool signature_v4_matches(const uint8_t key[SHA256_BYTES], struct span text, struct span signature);

#endif
