#include "client/chunk_search.h"

enum { SPACING_FIRST = 16, SPACING_MOST = 1024 };

static const struct chunk_place NOWHERE = {.xorb = CHUNK_TABLE_NOWHERE};

static bool is_multiple(const struct chunk_id *const id, const uint64_t of)
{
	return chunk_id_modulo_word(id) % of == 0;
}

static int walk(const struct chunk_search *const search, struct error *const err)
{
	uint64_t spacing = SPACING_FIRST;
	struct chunk_place place = NOWHERE;
	for (size_t i = 0; i < search->count; i++) {
		const struct chunk_id *const id = &search->entries[i].id;
		if (chunk_table_find(search->table, id, place, &place))
			continue;
		place = NOWHERE;
		if (i != 0 && !is_multiple(id, spacing))
			continue;
		const int known = search->ask(search->owner, id, err);
		if (known < 0)
			return -1;
		if (known > 0)
			spacing = SPACING_FIRST;
		else if (spacing < SPACING_MOST && i != 0)
			spacing *= 2;
		if (known > 0)
			chunk_table_find(search->table, id, NOWHERE, &place);
	}
	return 0;
}

/* A known stretch that begins while questions are rare may be passed over. It is met from behind: the last chunk of each unknown run that the index may
 * know is asked about, and while that is a hit, the run got shorter and is looked at again. */
static int look_back(const struct chunk_search *const search, const size_t first, size_t end, struct error *const err)
{
	struct chunk_place place;
	while (end > first) {
		size_t at = end;
		while (at > first && !is_multiple(&search->entries[at - 1].id, SPACING_FIRST))
			at--;
		if (at == first || is_multiple(&search->entries[at - 1].id, SPACING_MOST))
			return 0;
		const int known = search->ask(search->owner, &search->entries[at - 1].id, err);
		if (known <= 0)
			return known;
		while (end > first && (end >= at || chunk_table_find(search->table, &search->entries[end - 1].id, NOWHERE, &place)))
			end--;
	}
	return 0;
}

int chunk_search(const struct chunk_search *const search, struct error *const err)
{
	struct chunk_place place = NOWHERE;
	size_t first = 0;
	if (walk(search, err) != 0)
		return -1;
	for (size_t i = 0; i <= search->count; i++) {
		const bool known = i < search->count && chunk_table_find(search->table, &search->entries[i].id, place, &place);
		if (!known)
			place = NOWHERE;
		if (i < search->count && !known)
			continue;
		if (i > first && look_back(search, first, i, err) != 0)
			return -1;
		first = i + 1;
	}
	return 0;
}
