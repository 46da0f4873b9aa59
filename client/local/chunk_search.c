/* Two passes. The first walks through the file and asks about rare chunks; while they are unknown,
 * it asks ever more rarely, so it can miss the beginning of a known stretch. The second pass walks
 * backwards from the end of each unknown run: while its last indexed chunk is a hit, the run
 * shrinks and is looked at again. */
#include "client/local/chunk_search.h"

enum { SPACING_FIRST = 16, SPACING_MOST = 1024, EDGE_MISSES_MOST = 16 };

static const struct table_place NOWHERE = {.xorb = CHUNK_TABLE_NOWHERE};

struct walk {
	uint64_t spacing;     /* ask about ids that are multiples of this */
	unsigned edge_misses; /* misses in a row directly after known chunks */
	bool after_known;     /* the chunk before is known */
};

static int walk_through(const struct chunk_search *search, struct error *err);
static bool is_worth_asking(const struct walk *walk, size_t number, const struct chunk_id *id);
static bool is_multiple(const struct chunk_id *id, uint64_t of);
static void learn(struct walk *walk, size_t number, bool known);
static int look_back(
	const struct chunk_search *search, size_t first, size_t end, struct error *err);

int chunk_search(const struct chunk_search *search, struct error *err)
{
	struct table_place place = NOWHERE;
	size_t first = 0;
	ASSERT(search->table != NULL && search->ask != NULL);
	if (walk_through(search, err) != 0)
		return -1;
	for (size_t i = 0; i <= search->count; i++) {
		const bool known = i < search->count &&
			chunk_table_find(search->table, &search->entries[i].id, place, &place);
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

static int walk_through(const struct chunk_search *search, struct error *err)
{
	struct walk walk = {.spacing = SPACING_FIRST};
	struct table_place place = NOWHERE;
	for (size_t i = 0; i < search->count; i++) {
		const struct chunk_id *const id = &search->entries[i].id;
		bool known = chunk_table_find(search->table, id, place, &place);
		if (!known && is_worth_asking(&walk, i, id)) {
			const int answer = search->ask(search->owner, id, err);
			if (answer < 0)
				return -1;
			learn(&walk, i, answer > 0);
			known = answer > 0 && chunk_table_find(search->table, id, NOWHERE, &place);
		}
		if (!known)
			place = NOWHERE;
		walk.after_known = known;
	}
	return 0;
}

/* The chunks that an earlier upload changed lie in a xorb of their own. The index has its first
 * chunk, and that is where the known chunks end: so a chunk after a known one is worth asking. */
static bool is_worth_asking(const struct walk *walk, size_t number, const struct chunk_id *id)
{
	return number == 0 || is_multiple(id, walk->spacing) ||
		(walk->after_known && walk->edge_misses < EDGE_MISSES_MOST);
}

static bool is_multiple(const struct chunk_id *id, uint64_t of)
{
	return chunk_id_modulo_word(id) % of == 0;
}

static void learn(struct walk *walk, size_t number, bool known)
{
	if (known) {
		walk->spacing = SPACING_FIRST;
		walk->edge_misses = 0;
	} else if (walk->after_known) {
		walk->edge_misses++;
	} else if (walk->spacing < SPACING_MOST && number != 0) {
		walk->spacing *= 2;
	}
}

/* Looks at the unknown run [first, end) from behind: asks about the last chunk that the index may
 * have. After a hit the run is shorter, and is looked at again. */
static int look_back(const struct chunk_search *search, size_t first, size_t end, struct error *err)
{
	struct table_place place;
	ASSERT(first < end && end <= search->count);
	while (end > first) {
		size_t at = end;
		while (at > first && !is_multiple(&search->entries[at - 1].id, SPACING_FIRST))
			at--;
		if (at == first || is_multiple(&search->entries[at - 1].id, SPACING_MOST))
			return 0;
		const int known = search->ask(search->owner, &search->entries[at - 1].id, err);
		if (known <= 0)
			return known;
		while (end > first &&
			(end >= at ||
				chunk_table_find(search->table, &search->entries[end - 1].id,
					NOWHERE, &place)))
			end--;
	}
	return 0;
}
