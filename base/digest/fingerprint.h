/* The SHA-256 of a certificate (of its DER bytes), as people compare it. Any thread. */
#ifndef BASE_DIGEST_FINGERPRINT_H
#define BASE_DIGEST_FINGERPRINT_H

#include "base/digest/digest.h"

enum { FINGERPRINT_TEXT_BYTES = 7 + 2 * SHA256_BYTES + 1 };

struct fingerprint {
	uint8_t bytes[SHA256_BYTES];
};

/* Of the first certificate in a PEM text. False: there is none. */
bool fingerprint_of_pem(struct span pem, struct fingerprint *out);
void fingerprint_format(const struct fingerprint *fingerprint,
	char out[FINGERPRINT_TEXT_BYTES]); /* "sha256:" and lower-case digits */
/* That form, with or without "sha256:"; and what `openssl x509 -fingerprint -sha256` prints:
 * capitals, a colon between bytes. */
bool fingerprint_parse(struct span text, struct fingerprint *out);
bool fingerprint_equal(const struct fingerprint *a, const struct fingerprint *b);

#endif
