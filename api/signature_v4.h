/* AWS Signature Version 4 in the Authorization header: taken apart, rebuilt in canonical form, compared. Works on the request as sent,
 * never on decoded forms of somebody else's making (s3.md 2.2). Any thread. */
#ifndef API_SIGNATURE_V4_H
#define API_SIGNATURE_V4_H

#include "api/exchange.h"

struct signature_v4 { /* spans point into the header's value */
	struct span key_id;
	struct span date;           /* yyyymmdd */
	struct span region;
	struct span signed_headers; /* a;b;c */
	struct span signature;      /* 64 hex digits */
};

/* auth_malformed; invalid when it is no AWS4-HMAC-SHA256 header at all. */
int signature_v4_parse(struct span authorization, struct signature_v4 *out, struct error *err);
bool signature_v4_signs(const struct signature_v4 *signature, struct span header_name); /* name in any case */

/* The pieces of the canonical request. bad_uri when an escape is malformed or hides a NUL. */
int signature_v4_canonical_path(struct span path, struct buffer *out, struct error *err);
int signature_v4_canonical_query(struct span query, struct buffer *out, struct error *err);
void signature_v4_canonical_value(struct span value, struct buffer *out); /* trimmed, inner runs of spaces made one */

/* `amz_date` as 20130524T000000Z; `payload` is the text of the payload hash. 0 when the signature is the one that `secret` makes;
 * signature, bad_uri, too_large. */
int signature_v4_check(struct exchange *exchange, const struct signature_v4 *signature, struct span secret, struct span amz_date,
	struct span payload, struct error *err);

#endif
