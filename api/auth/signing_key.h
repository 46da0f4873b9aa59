/* SigV4's signing keys: four HMACs from a secret, the same for a whole day, so they are kept. */
#ifndef API_AUTH_SIGNING_KEY_H
#define API_AUTH_SIGNING_KEY_H

#include "base/digest/digest.h"

enum { SIGNING_KEY_DATE_BYTES = 8, SIGNING_KEY_REGION_MAX_BYTES = 32, SIGNING_KEY_SLOTS = 512 };

/* `date` as yyyymmdd. Any thread. */
void signing_key_derive(
	struct span secret, struct span date, struct span region, uint8_t out[SHA256_BYTES]);

/* A fixed table; a new key takes the place of whichever has its slot. The caller locks. Zeroed
 * memory is an empty one. */
struct signing_key_cache {
	struct signing_key_slot {
		size_t owner; /* whose key: a number of the caller's, from 1; 0: empty */
		uint8_t region_len;
		uint8_t date[SIGNING_KEY_DATE_BYTES];
		uint8_t region[SIGNING_KEY_REGION_MAX_BYTES];
		uint8_t key[SHA256_BYTES];
	} slots[SIGNING_KEY_SLOTS];
};
/* The key, from the cache or derived. A longer region than the cache holds is derived each time. */
void signing_key_find(struct signing_key_cache *cache, size_t owner, struct span secret,
	struct span date, struct span region, uint8_t out[SHA256_BYTES]);
void signing_key_wipe(struct signing_key_cache *cache);

#endif
