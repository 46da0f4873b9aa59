/* The server cuts the bytes of one PUT in one way, so that the digest proves the chunks too. The
 * chunks of other versions depend on how they came. For these the decoded bytes also go through a
 * file hasher, which cuts them at the ends of the parts that the derived version will have, and the
 * result must be the version's file hash. */
#include "storage/derive/derive_proof.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/files/file_hash_find.h"
#include "storage/files/file_hasher.h"
#include "storage/versions/derived_parts.h"

enum { PROOF_PIECE_BYTES = 1024 * 1024, PROOF_PARTS_MAX_BYTES = 2 * 1024 * 1024 };

static int decode_chunked(struct store *store, const struct version *version,
	const struct derived_recipe *recipe, struct digest128 *out_digest, bool *out_same,
	struct error *err);
static int find_file_hash(struct store *store, const struct version *version, struct chunk_id *out,
	struct error *err);
static int load_ends(struct store *store, const struct version *version, struct part_ends *out,
	struct error *err);
static int decode(struct store *store, const struct derived_recipe *recipe, struct part_ends *ends,
	struct digest128 *out_digest, struct chunk_id *out_file, struct error *err);
static int read_all(struct body_source *source, struct xxh3_stream *digest,
	struct file_hasher *hasher, struct error *err);

int derive_proof(struct store *store, const struct version *version,
	const struct derived_recipe *recipe, const struct digest128 *digest, struct error *err)
{
	struct digest128 made;
	bool same_file = true;
	ASSERT(recipe != NULL && digest != NULL);
	/* one PUT, or a copy of one */
	const bool was_cut_here = version->kind == VERSION_SINGLE && version->part_set < 0;
	const int result = was_cut_here
		? derived_recipe_digest(store, recipe, &made, err)
		: decode_chunked(store, version, recipe, &made, &same_file, err);
	if (result != 0)
		return err->kind == ERROR_CORRUPT || err->kind == ERROR_PRECONDITION ? 0 : -1;
	return same_file && digest128_equal(&made, digest) &&
			(!version->has_digest || digest128_equal(digest, &version->digest))
		? 1
		: 0;
}

static int decode_chunked(struct store *store, const struct version *version,
	const struct derived_recipe *recipe, struct digest128 *out_digest, bool *out_same,
	struct error *err)
{
	struct part_ends ends = {.ends = NULL};
	struct chunk_id expected;
	struct chunk_id file;
	if (find_file_hash(store, version, &expected, err) != 0 ||
		load_ends(store, version, &ends, err) != 0)
		return -1;
	const int result = decode(store, recipe, &ends, out_digest, &file, err);
	*out_same = result == 0 && chunk_id_equal(&file, &expected);
	part_ends_release(&ends);
	return result;
}

static int find_file_hash(
	struct store *store, const struct version *version, struct chunk_id *out, struct error *err)
{
	struct file_hash_facts facts;
	*out = version->file_hash;
	if (version->has_file_hash)
		return 0;
	if (file_hash_find(store, version->sequence, NULL, &facts, err) != 0)
		return -1;
	*out = facts.state == FILE_HASH_FOUND ? facts.found.hash : facts.hash;
	if (facts.state == FILE_HASH_FOUND)
		return file_hash_write(store, &facts.found, 1, err);
	if (facts.has_hash) /* the hash worker has given it meanwhile */
		return 0;
	return error_set(
		err, ERROR_PRECONDITION, "Version %lld is gone.", (long long)version->sequence);
}

/* The ends of the parts at which the version will be cut once it is derived. */
static int load_ends(struct store *store, const struct version *version, struct part_ends *out,
	struct error *err)
{
	struct buffer parts;
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	buffer_init(&parts, PROOF_PARTS_MAX_BYTES);
	const int result = derived_parts_collect(db, version, &parts, err);
	store_reader_give(store, db);
	if (result == 0)
		part_ends_read(buffer_span(&parts), out);
	buffer_release(&parts);
	return result;
}

/* The digest and the file hash of what the recipe makes. */
static int decode(struct store *store, const struct derived_recipe *recipe, struct part_ends *ends,
	struct digest128 *out_digest, struct chunk_id *out_file, struct error *err)
{
	struct body_source *const source =
		derived_open_recipe(store, recipe, 0, derived_recipe_size(recipe), err);
	if (source == NULL)
		return -1;
	struct xxh3_stream *const digest = xxh3_stream_new();
	struct file_hasher *const hasher = file_hasher_new(ends);
	const int result = read_all(source, digest, hasher, err);
	if (result == 0) {
		*out_digest = xxh3_stream_result(digest);
		*out_file = file_hasher_result(hasher);
	}
	file_hasher_free(hasher);
	xxh3_stream_free(digest);
	source->close(source);
	return result;
}

static int read_all(struct body_source *source, struct xxh3_stream *digest,
	struct file_hasher *hasher, struct error *err)
{
	uint8_t *const piece = memory_new(PROOF_PIECE_BYTES);
	ptrdiff_t got;
	while ((got = source->read(source, piece, PROOF_PIECE_BYTES, err)) > 0) {
		ASSERT(got <= PROOF_PIECE_BYTES);
		xxh3_stream_add(digest, span_of(piece, (size_t)got));
		file_hasher_add(hasher, span_of(piece, (size_t)got));
	}
	free(piece);
	return got < 0 ? -1 : 0;
}
