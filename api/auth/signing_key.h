/* The signing keys of SigV4. A key takes four HMACs to derive from a secret and is the same for a
 * whole day, so keys are cached. */
#ifndef API_AUTH_SIGNING_KEY_H
#define API_AUTH_SIGNING_KEY_H

#include "base/digest/digest.h"

enum { SIGNING_KEY_DATE_BYTES = 8, SIGNING_KEY_REGION_MAX_BYTES = 32, SIGNING_KEY_SLOTS = 512 };

/* `date` has the form yyyymmdd. Any thread. */
void signing_key_derive(
	struct span secret, struct span date, struct span region, uint8_t out[SHA256_BYTES]);

/* A table of fixed size. A new key replaces the one in its slot. The caller must lock. Zeroed
 * memory is an empty cache. */
struct signing_key_cache {
	struct signing_key_slot {
		size_t owner; /* the caller's number for the secret, from 1; 0: the slot is empty */
		uint8_t region_len;
		uint8_t date[SIGNING_KEY_DATE_BYTES];
		uint8_t region[SIGNING_KEY_REGION_MAX_BYTES];
		uint8_t key[SHA256_BYTES];
	} slots[SIGNING_KEY_SLOTS];
};
/* Gives the key from the cache, or derives it. Keys of regions over SIGNING_KEY_REGION_MAX_BYTES
 * are derived each time. */
void signing_key_find(struct signing_key_cache *cache, size_t owner, struct span secret,
	struct span date, struct span region, uint8_t out[SHA256_BYTES]);
void signing_key_wipe(struct signing_key_cache *cache);

#endif
