/* The SHA-256 of a certificate's DER bytes, as people compare it. Any thread. */
#ifndef BASE_DIGEST_FINGERPRINT_H
#define BASE_DIGEST_FINGERPRINT_H

#include "base/digest/digest.h"

enum { FINGERPRINT_TEXT_BYTES = 7 + 2 * SHA256_BYTES + 1 };

struct fingerprint {
	uint8_t bytes[SHA256_BYTES];
};

/* Takes the first certificate of a PEM text. False when there is none. */
bool fingerprint_of_pem(struct span pem, struct fingerprint *out);
void fingerprint_format(const struct fingerprint *fingerprint,
	char out[FINGERPRINT_TEXT_BYTES]); /* "sha256:" and lower-case digits */
/* Accepts the form above, with or without "sha256:", and the form that `openssl x509 -fingerprint
 * -sha256` prints: upper-case digits with a colon between bytes. */
bool fingerprint_parse(struct span text, struct fingerprint *out);
bool fingerprint_equal(const struct fingerprint *a, const struct fingerprint *b);

#endif
