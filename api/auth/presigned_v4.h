/* SigV4 in the query of a URL. Any thread. */
#ifndef API_AUTH_PRESIGNED_V4_H
#define API_AUTH_PRESIGNED_V4_H

#include "api/auth/signature_v4.h"

enum { PRESIGNED_V4_EXPIRES_MAX_S = 604800 };

struct presigned_v4 { /* texts in the arena */
	struct signature_v4 signature;
	struct span amz_date;
	int64_t signed_ms;
	int64_t expires_s;
	struct span payload; /* of X-Amz-Content-Sha256; NULL data when absent */
};

/* Whether the query has one of the parameters of such a signature. */
bool presigned_v4_is_present(struct exchange *exchange);
/* Fails with auth_query, with invalid_token for X-Amz-Security-Token, and with denied for an
 * X-Amz-Expires that is not from 1 second to 7 days. */
int presigned_v4_parse(struct exchange *exchange, struct presigned_v4 *out, struct error *err);
/* Fails with denied when the URL has expired or is not valid yet. */
int presigned_v4_check_time(
	struct exchange *exchange, const struct presigned_v4 *presigned, struct error *err);
/* As signature_v4_check. */
int presigned_v4_check(struct exchange *exchange, const struct presigned_v4 *presigned,
	const uint8_t key[SHA256_BYTES], struct error *err);

#endif
