/* The signature of an upload form's policy: SigV4 (x-amz-credential, x-amz-signature) or SigV2
 * (AWSAccessKeyId, signature). */
#ifndef API_S3_POST_POST_SIGNATURE_H
#define API_S3_POST_POST_SIGNATURE_H

#include "api/s3/post/post_form.h"

/* With a policy: checks its signature and sets exchange->principal to the key that signed it.
 * Without a policy the principal stays the one that the headers give, mostly none. invalid when
 * fields are missing or malformed, invalid_request when version 2 is switched off, unknown_key_id,
 * signature, invalid_token. */
int post_signature_check(
	struct exchange *exchange, const struct post_form *form, struct error *err);

#endif
