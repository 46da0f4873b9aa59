/* Lists the runs of records that the versions lead to and that were not checked since the start, or
 * are known to be damaged. A derived version is followed to its sources. Each run holds its pack,
 * so that the reads may come long after the snapshot. Steps then read the runs one after the
 * other. */
#include "storage/versions/content_proof.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/packs/pack_damage.h"
#include "storage/packs/pack_store.h"
#include "storage/versions/content_damage.h"
#include "storage/versions/derived_row.h"
#include "storage/versions/part.h"

enum { STEP_CHUNKS = 1024 }; /* about 64 MiB */

struct proof_run {
	struct pack_run run;
	unsigned turn; /* of the hold on its pack */
};
struct content_proof {
	struct store *store;
	struct proof_run *runs; /* those before `at` are proven */
	size_t count;
	size_t capacity;
	size_t at;
};

static int add_version(struct content_proof *proof, struct db *db, const struct version *version,
	unsigned levels, struct error *err);
static int add_derived(struct content_proof *proof, struct db *db, const struct version *version,
	unsigned levels, struct error *err);
static int add_source(struct content_proof *proof, struct db *db, int64_t sequence, unsigned levels,
	struct error *err);
static int add_set(struct content_proof *proof, struct db *db, const struct version *version,
	struct error *err);
static void add_run(struct content_proof *proof, const struct segment *segment);

struct content_proof *content_proof_new(struct store *store)
{
	struct content_proof *proof = memory_new(sizeof(*proof));
	proof->store = store;
	return proof;
}

void content_proof_free(struct content_proof *proof)
{
	if (proof == NULL)
		return;
	for (size_t i = 0; i < proof->count; i++)
		pack_store_unhold(
			store_packs(proof->store), &proof->runs[i].run.pack, proof->runs[i].turn);
	free(proof->runs);
	free(proof);
}

int content_proof_add(struct content_proof *proof, struct db *db, const struct version *version,
	struct error *err)
{
	return add_version(proof, db, version, DERIVED_DEPTH_MAX, err);
}

int content_proof_step(struct content_proof *proof, struct span name, struct error *err)
{
	uint32_t chunks = 0;
	ASSERT(proof->at <= proof->count);
	for (; proof->at < proof->count && chunks < STEP_CHUNKS; proof->at++) {
		const struct pack_run *run = &proof->runs[proof->at].run;
		if (pack_store_prove_records(store_packs(proof->store), run, err) != 0)
			return pack_damage_is(err) ? content_damage_error(name, err) : -1;
		chunks += run->chunks;
	}
	return proof->at < proof->count;
}

int content_proof_end(struct content_proof *proof, struct span name, struct error *err)
{
	int result;
	do
		result = content_proof_step(proof, name, err);
	while (result == 1);
	return result;
}

static int add_version(struct content_proof *proof, struct db *db, const struct version *version,
	unsigned levels, struct error *err)
{
	if (version->kind == VERSION_INLINE || version->size == 0)
		return 0;
	return version->kind == VERSION_DERIVED ? add_derived(proof, db, version, levels, err)
						: add_set(proof, db, version, err);
}

static int add_derived(struct content_proof *proof, struct db *db, const struct version *version,
	unsigned levels, struct error *err)
{
	if (levels == 0)
		return error_set(err, ERROR_CORRUPT,
			"Derived versions are nested more than %d deep.", DERIVED_DEPTH_MAX);
	struct derived_recipe *recipe =
		derived_row_load(db, version->sequence, version->contents, err);
	int result = recipe == NULL ? -1 : 0;
	for (size_t i = 0; result == 0 && i < recipe->source_count; i++)
		result = add_source(proof, db, recipe->sources[i].version, levels - 1, err);
	derived_recipe_free(recipe);
	return result;
}

static int add_source(struct content_proof *proof, struct db *db, int64_t sequence, unsigned levels,
	struct error *err)
{
	struct version source;
	int found = version_find_sequence(db, sequence, NULL, &source, err);
	if (found != 1)
		return found < 0 ? -1
				 : error_set(err, ERROR_CORRUPT,
					   "A source version of a derived object does not exist.");
	return add_version(proof, db, &source, levels, err);
}

static int add_set(struct content_proof *proof, struct db *db, const struct version *version,
	struct error *err)
{
	struct part_range range = {.length = version->size};
	int result =
		part_set_load(db, version->part_set, version->size, version->contents, &range, err);
	for (size_t i = 0; result == 0 && i < range.segment_count; i++)
		add_run(proof, &range.segments[i]);
	free(range.segments);
	return result;
}

static void add_run(struct content_proof *proof, const struct segment *segment)
{
	struct pack_store *packs = store_packs(proof->store);
	const struct pack_run run = {
		.pack = segment->pack, .first = segment->first, .chunks = segment->count};
	if (pack_store_is_checked(packs, &run) && !pack_store_is_damaged(packs, &run))
		return;
	proof->runs =
		memory_make_room(proof->runs, proof->count, &proof->capacity, sizeof(*proof->runs));
	proof->runs[proof->count++] =
		(struct proof_run){.run = run, .turn = pack_store_hold(packs, &run.pack)};
}
