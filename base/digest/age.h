/* Encrypts bytes to a public key in the format of age (age-encryption.org/v1) with recipients of
 * type X25519, so that the program `age` opens what this makes, and the reverse. Over nettle. The
 * whole text is in memory. Any thread. */
#ifndef BASE_DIGEST_AGE_H
#define BASE_DIGEST_AGE_H

#include "base/buffer.h"

enum { AGE_KEY_BYTES = 32, AGE_RECIPIENT_BYTES = 64, AGE_IDENTITIES_MAX = 16 };

struct age_recipient { /* a public key: "age1..." */
	uint8_t key[AGE_KEY_BYTES];
};
struct age_identities { /* secret keys */
	uint8_t keys[AGE_IDENTITIES_MAX][AGE_KEY_BYTES];
	size_t count;
};

/* Both fail with invalid. The second one reads a file as age-keygen writes it: lines of
 * AGE-SECRET-KEY-1..., empty lines, and comments behind '#'. */
int age_recipient_parse(struct span text, struct age_recipient *out, struct error *err);
int age_identities_parse(struct span text, struct age_identities *out, struct error *err);
void age_identities_wipe(struct age_identities *identities);
/* The public key of the identity `number`, and its text. */
void age_identity_recipient(
	const struct age_identities *identities, size_t number, struct age_recipient *out);
void age_recipient_print(const struct age_recipient *recipient, char out[AGE_RECIPIENT_BYTES]);

/* How many bytes age_seal makes of this many. */
uint64_t age_sealed_bytes(uint64_t plain);
/* Appends to `out`, whose cap must allow it. */
void age_seal(const struct age_recipient *recipient, struct span plain, struct buffer *out);
/* Appends the text to `out`, only if all of it is right. denied: it is for another identity;
 * corrupt: it is damaged, or no file of age. */
int age_open(const struct age_identities *identities, struct span sealed, struct buffer *out,
	struct error *err);

#endif
