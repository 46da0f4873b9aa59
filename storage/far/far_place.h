/* Where packs lie at an S3 store, and with which key: s3://HOST[:PORT]/BUCKET[/PREFIX] over HTTPS,
 * s3+http://... over plain HTTP on a network that is trusted. One thread at a time. */
#ifndef STORAGE_FAR_FAR_PLACE_H
#define STORAGE_FAR_FAR_PLACE_H

#include "base/error.h"

struct far_place {
	char *endpoint; /* https://HOST[:PORT] */
	char *bucket;
	char *prefix; /* without slashes at its ends; "": none */
	char *key_id; /* NULL until far_place_take_key */
	char *secret;
};

/* invalid, with what would be right. Release the place in all cases. */
int far_place_parse(const char *text, struct far_place *place, struct error *err);
/* Takes the key from `key_file`, which has the two lines `key_id = ID` and `secret = SECRET`; NULL
 * or "": from DELTABUCKET_PACKS_KEY_ID and DELTABUCKET_PACKS_SECRET in the environment. denied when
 * other users may read the file, invalid when a part is missing. */
int far_place_take_key(struct far_place *place, const char *key_file, struct error *err);
void far_place_release(struct far_place *place); /* a zeroed one is fine */

#endif
