/* XXH3 and CRCs cost less than a copy of the bytes, so the writer's thread computes them at once.
 * For MD5 and SHA, which are costly, the bytes are copied into blocks. Blocks pass through the
 * stream's digest lane if it wants a SHA, and then through the MD5 pool, which digests blocks of
 * several streams side by side. A stream of up to INGEST_SMALL_BYTES fills one block, which is
 * digested at the end of the stream on the thread that ends it. */
#include "storage/ingest/ingest_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static bool comes_from_part(enum checksum_algorithm algorithm);
static bool is_costly(enum checksum_algorithm algorithm);
static void add_to_all(struct checksum_stream *const streams[INGEST_CHECKSUMS], struct span bytes);
static bool has_costly_checksum(const struct ingest *ingest);
static void digest_copy(struct ingest *ingest, struct span bytes);
static void digest_submit_block(struct ingest *ingest);
static void digest_submit_md5(struct ingest_block *block);
static void digest_block_done(struct ingest_block *block);
static struct ingest_block *digest_new_block(struct ingest *ingest);
static void ingest_digest_run(struct helper_job *job);
static void ingest_digest_md5_done(struct md5_pool_job *job);
static void digest_small(struct ingest *ingest);
static void ingest_digest_conclude_run(struct helper_job *job);
static void checksum_result(
	struct ingest *ingest, size_t i, enum checksum_algorithm algorithm, struct checksum *out);
static struct checksum checksum_from_part(
	const struct ingest *ingest, enum checksum_algorithm algorithm);

void ingest_digest_init(struct ingest *ingest)
{
	const struct ingest_options *const options = &ingest->options;
	const enum checksum_algorithm second =
		options->declared != options->checksum ? options->declared : CHECKSUM_NONE;
	const enum checksum_algorithm algorithms[INGEST_CHECKSUMS] = {options->checksum, second};
	ingest->xxh3 = xxh3_stream_new();
	if (options->want_md5 || options->checksum == CHECKSUM_MD5 ||
		options->declared == CHECKSUM_MD5)
		ingest->md5.md5 = md5_stream_new();
	for (size_t i = 0; i < INGEST_CHECKSUMS; i++) {
		if (algorithms[i] == CHECKSUM_NONE || comes_from_part(algorithms[i]))
			continue;
		struct checksum_stream *const stream = checksum_stream_new(algorithms[i]);
		if (is_costly(algorithms[i]))
			ingest->costly[i] = stream;
		else
			ingest->cheap[i] = stream;
	}
}

void ingest_digest_release(struct ingest *ingest)
{
	ASSERT(ingest->blocks_out == 0);
	ingest_spares_give_block(ingest->store->spares, ingest->block);
	xxh3_stream_free(ingest->xxh3);
	md5_stream_free(ingest->md5.md5);
	for (size_t i = 0; i < INGEST_CHECKSUMS; i++) {
		checksum_stream_free(ingest->cheap[i]);
		checksum_stream_free(ingest->costly[i]);
	}
}

void ingest_digest_add(struct ingest *ingest, struct span bytes)
{
	xxh3_stream_add(ingest->xxh3, bytes);
	add_to_all(ingest->cheap, bytes);
	if (ingest->md5.md5 != NULL || has_costly_checksum(ingest))
		digest_copy(ingest, bytes);
}

void ingest_digest_hurry(struct ingest *ingest)
{
	if (ingest->md5.md5 != NULL)
		md5_pool_end(ingest->store->md5_pool, ingest->store->helpers, &ingest->md5);
}

void ingest_digest_end(struct ingest *ingest)
{
	if (ingest->size <= INGEST_SMALL_BYTES) {
		digest_small(ingest);
		ingest->part.file_hash = part_builder_file_hash(&ingest->part_builder);
		return;
	}
	if (ingest->block != NULL)
		digest_submit_block(ingest);
	ingest_digest_hurry(ingest);
	ingest->conclude.run = ingest_digest_conclude_run;
	ingest_job_begins(ingest);
	helpers_submit(ingest->store->helpers, &ingest->digest_lane, &ingest->conclude);
}

void ingest_digest_results(struct ingest *ingest)
{
	struct stored_part *const part = &ingest->part;
	part->digest = xxh3_stream_result(ingest->xxh3);
	part->has_md5 = ingest->options.want_md5;
	if (ingest->md5.md5 != NULL)
		md5_stream_result(ingest->md5.md5, part->md5);
	checksum_result(ingest, 0, ingest->options.checksum, &part->checksum);
	if (ingest->options.declared == ingest->options.checksum)
		part->declared = part->checksum;
	else
		checksum_result(ingest, 1, ingest->options.declared, &part->declared);
}

/* Whether the part's own digests give this checksum too. */
static bool comes_from_part(enum checksum_algorithm algorithm)
{
	return algorithm == CHECKSUM_MD5 || algorithm == CHECKSUM_XXHASH3 ||
		algorithm == CHECKSUM_XXHASH128;
}

static bool is_costly(enum checksum_algorithm algorithm)
{
	return algorithm == CHECKSUM_SHA1 || algorithm == CHECKSUM_SHA256 ||
		algorithm == CHECKSUM_SHA512;
}

static void add_to_all(struct checksum_stream *const streams[INGEST_CHECKSUMS], struct span bytes)
{
	for (size_t i = 0; i < INGEST_CHECKSUMS; i++)
		if (streams[i] != NULL)
			checksum_stream_add(streams[i], bytes);
}

static bool has_costly_checksum(const struct ingest *ingest)
{
	return ingest->costly[0] != NULL || ingest->costly[1] != NULL;
}

static void digest_copy(struct ingest *ingest, struct span bytes)
{
	for (size_t at = 0; at < bytes.len;) {
		if (ingest->block != NULL && ingest->block->len == INGEST_BLOCK_BYTES)
			digest_submit_block(ingest);
		if (ingest->block == NULL)
			ingest->block = digest_new_block(ingest);
		struct ingest_block *const block = ingest->block;
		const struct span piece = span_slice(bytes, at, INGEST_BLOCK_BYTES - block->len);
		memcpy(block->bytes + block->len, piece.data, piece.len);
		block->len += piece.len;
		at += piece.len;
	}
}

static void digest_submit_block(struct ingest *ingest)
{
	struct ingest_block *const block = ingest->block;
	ingest->block = NULL;
	lock_enter(&ingest->lock);
	ingest->blocks_out++;
	lock_leave(&ingest->lock);
	ingest_job_begins(ingest);
	if (has_costly_checksum(ingest))
		helpers_submit(ingest->store->helpers, &ingest->digest_lane, &block->job);
	else
		digest_submit_md5(block);
}

static void digest_submit_md5(struct ingest_block *block)
{
	struct ingest *const ingest = block->ingest;
	if (ingest->md5.md5 == NULL || atomic_load(&ingest->abandoned)) {
		digest_block_done(block);
		return;
	}
	block->md5_job.bytes = span_of(block->bytes, block->len);
	md5_pool_submit(
		ingest->store->md5_pool, ingest->store->helpers, &ingest->md5, &block->md5_job);
}

static void digest_block_done(struct ingest_block *block)
{
	struct ingest *const ingest = block->ingest;
	ingest_spares_give_block(ingest->store->spares, block);
	lock_enter(&ingest->lock);
	ASSERT(ingest->blocks_out > 0);
	ingest->blocks_out--;
	ingest_offer_room(ingest);
	lock_leave(&ingest->lock);
	ingest_job_ends(ingest);
}

static struct ingest_block *digest_new_block(struct ingest *ingest)
{
	struct ingest_block *const block = ingest_spares_take_block(ingest->store->spares);
	block->job.run = ingest_digest_run;
	block->md5_job.done = ingest_digest_md5_done;
	block->ingest = ingest;
	block->len = 0;
	return block;
}

static void ingest_digest_run(struct helper_job *job)
{
	struct ingest_block *const block = (struct ingest_block *)job;
	if (!atomic_load(&block->ingest->abandoned))
		add_to_all(block->ingest->costly, span_of(block->bytes, block->len));
	digest_submit_md5(block);
}

static void ingest_digest_md5_done(struct md5_pool_job *job)
{
	digest_block_done(
		(struct ingest_block *)((uint8_t *)job - offsetof(struct ingest_block, md5_job)));
}

static void digest_small(struct ingest *ingest)
{
	if (ingest->block == NULL)
		return;
	const struct span bytes = span_of(ingest->block->bytes, ingest->block->len);
	add_to_all(ingest->costly, bytes);
	if (ingest->md5.md5 != NULL)
		md5_stream_add(ingest->md5.md5, bytes);
}

static void ingest_digest_conclude_run(struct helper_job *job)
{
	struct ingest *const ingest =
		(struct ingest *)((uint8_t *)job - offsetof(struct ingest, conclude));
	if (!atomic_load(&ingest->abandoned))
		ingest->part.file_hash = part_builder_file_hash(&ingest->part_builder);
	ingest_job_ends(ingest);
}

static void checksum_result(
	struct ingest *ingest, size_t i, enum checksum_algorithm algorithm, struct checksum *out)
{
	if (comes_from_part(algorithm))
		*out = checksum_from_part(ingest, algorithm);
	else if (algorithm != CHECKSUM_NONE)
		checksum_stream_result(
			ingest->cheap[i] != NULL ? ingest->cheap[i] : ingest->costly[i], out);
}

/* Takes the checksum from a digest of the part. */
static struct checksum checksum_from_part(
	const struct ingest *ingest, enum checksum_algorithm algorithm)
{
	struct checksum checksum = {
		.algorithm = algorithm, .len = (uint8_t)checksum_length(algorithm)};
	const uint64_t xxh3 = xxh3_stream_result_64(ingest->xxh3);
	if (algorithm == CHECKSUM_MD5)
		memcpy(checksum.bytes, ingest->part.md5, sizeof(ingest->part.md5));
	else if (algorithm == CHECKSUM_XXHASH128)
		memcpy(checksum.bytes, ingest->part.digest.bytes,
			sizeof(ingest->part.digest.bytes));
	else
		for (size_t i = 0; i < checksum.len; i++)
			checksum.bytes[i] = (uint8_t)(xxh3 >> (56 - 8 * i));
	return checksum;
}
