#include "server/packs_place.h"

#include <stdlib.h>

#include "base/memory.h"
#include "server/data_folder.h"
#include "storage/far/far_backend.h"
#include "storage/packs/place_note.h"

static struct backend *open_far(
	const struct packs_place *place, const struct far_place *far, struct error *err);
static int read_place(
	const struct configuration *configuration, struct far_place *far, struct error *err);

bool packs_place_is_far(const struct configuration *configuration)
{
	return configuration->packs != NULL && configuration->packs[0] != '\0';
}

struct backend *packs_place_open(void *place, struct error *err)
{
	const struct packs_place *const wanted = place;
	struct far_place far;
	const bool is_ready = read_place(wanted->configuration, &far, err) == 0 &&
		place_note_set(NULL, wanted->folder, wanted->configuration->packs, err) == 0;
	struct backend *const backend = is_ready ? open_far(wanted, &far, err) : NULL;
	far_place_release(&far);
	return backend;
}

static struct backend *open_far(
	const struct packs_place *place, const struct far_place *far, struct error *err)
{
	char *const cache = data_folder_path(place->folder, "cache/packs");
	const struct far_options options = {.place = far,
		.ca_file = place->configuration->packs_ca,
		.region = place->configuration->packs_region,
		.cache_folder = cache,
		.cache_bytes = place->configuration->packs_cache << 30};
	struct backend *const backend = far_backend_open(&options, err);
	free(cache);
	return backend;
}

static int read_place(
	const struct configuration *configuration, struct far_place *far, struct error *err)
{
	return far_place_parse(configuration->packs, far, err) != 0
		? -1
		: far_place_take_key(far, configuration->packs_key_file, err);
}

int packs_place_check(const struct configuration *configuration, struct error *err)
{
	struct far_place far;
	struct error ignored;
	if (!packs_place_is_far(configuration))
		return 0;
	const int result = far_place_parse(configuration->packs, &far, &ignored) != 0
		? 0
		: far_place_take_key(&far, configuration->packs_key_file, err);
	far_place_release(&far);
	return result;
}
