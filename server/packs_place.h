/* Where the settings say that packs lie: the folder DIR/packs, or an S3 store (far_place.h). */
#ifndef SERVER_PACKS_PLACE_H
#define SERVER_PACKS_PLACE_H

#include "server/configuration.h"
#include "storage/packs/backend.h"

struct packs_place { /* borrowed until the store is open */
	const struct configuration *configuration;
	const char *folder; /* the data folder */
};

/* Whether they lie at an S3 store. */
bool packs_place_is_far(const struct configuration *configuration);
/* For store_options: opens that store with its cache DIR/cache/packs. `place` is a struct
 * packs_place. invalid and denied as far_place.h says; nothing is asked of the store. */
struct backend *packs_place_open(void *place, struct error *err);
/* A check of the settings (configuration_check.h): the place and the key. */
int packs_place_check(const struct configuration *configuration, struct error *err);

#endif
