/* MD5 is the dear part of a PUT. A stream within INGEST_SMALL_BYTES digests as it comes; a longer one hands its bytes, copied into
 * blocks, to a helper lane. Without MD5 or SHA a copy would cost more than XXH3 and CRCs themselves, so those run as the bytes come. */
#include "storage/ingest_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static bool is_dear(const enum checksum_algorithm algorithm)
{
	return algorithm == CHECKSUM_SHA1 || algorithm == CHECKSUM_SHA256 || algorithm == CHECKSUM_SHA512 || algorithm == CHECKSUM_MD5;
}

void ingest_digest_init(struct ingest *const ingest)
{
	const enum checksum_algorithm algorithms[] = {ingest->options.checksum, ingest->options.declared};
	ingest->xxh3 = xxh3_stream_new();
	if (ingest->options.want_md5)
		ingest->md5 = md5_stream_new();
	ingest->is_dear = ingest->options.want_md5;
	for (size_t i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++) {
		if (algorithms[i] == CHECKSUM_NONE)
			continue;
		ingest->checksums[i] = checksum_stream_new(algorithms[i]);
		ingest->is_dear = ingest->is_dear || is_dear(algorithms[i]);
	}
}

void ingest_digest_release(struct ingest *const ingest)
{
	ASSERT(ingest->blocks_out == 0);
	free(ingest->block);
	while (ingest->spare != NULL) {
		struct ingest_block *const block = ingest->spare;
		ingest->spare = block->next;
		free(block);
	}
	xxh3_stream_free(ingest->xxh3);
	for (size_t i = 0; i < 2; i++)
		checksum_stream_free(ingest->checksums[i]);
	if (ingest->md5 != NULL)
		md5_stream_free(ingest->md5);
}

static void digest_bytes(struct ingest *const ingest, const struct span bytes)
{
	xxh3_stream_add(ingest->xxh3, bytes);
	for (size_t i = 0; i < 2; i++) {
		if (ingest->checksums[i] != NULL)
			checksum_stream_add(ingest->checksums[i], bytes);
	}
	if (ingest->md5 != NULL)
		md5_stream_add(ingest->md5, bytes);
}

static void digest_block_done(struct ingest *const ingest, struct ingest_block *const block)
{
	lock_enter(&ingest->lock);
	block->next = ingest->spare;
	ingest->spare = block;
	ingest->blocks_out--;
	ingest_offer_room(ingest);
	lock_leave(&ingest->lock);
}

static void digest_run(struct helper_job *const job)
{
	struct ingest_block *const block = (struct ingest_block *)job;
	struct ingest *const ingest = block->ingest;
	if (!atomic_load(&ingest->abandoned))
		digest_bytes(ingest, span_of(block->bytes, block->len));
	digest_block_done(ingest, block);
	ingest_job_ends(ingest);
}

static struct ingest_block *digest_new_block(struct ingest *const ingest)
{
	lock_enter(&ingest->lock);
	struct ingest_block *block = ingest->spare;
	if (block != NULL)
		ingest->spare = block->next;
	lock_leave(&ingest->lock);
	if (block == NULL)
		block = memory_new(sizeof *block);
	block->job.run = digest_run;
	block->ingest = ingest;
	block->len = 0;
	return block;
}

static void digest_submit_block(struct ingest *const ingest)
{
	struct ingest_block *const block = ingest->block;
	ingest->block = NULL;
	lock_enter(&ingest->lock);
	ingest->blocks_out++;
	lock_leave(&ingest->lock);
	ingest_job_begins(ingest);
	helpers_submit(ingest->store->helpers, &ingest->digest_lane, &block->job);
}

void ingest_digest_add(struct ingest *const ingest, const struct span bytes)
{
	if (!ingest->is_dear || (ingest->size <= INGEST_SMALL_BYTES)) {
		digest_bytes(ingest, bytes);
		return;
	}
	for (size_t at = 0; at < bytes.len;) {
		if (ingest->block == NULL)
			ingest->block = digest_new_block(ingest);
		struct ingest_block *const block = ingest->block;
		const struct span piece = span_slice(bytes, at, INGEST_BLOCK_BYTES - block->len);
		memcpy(block->bytes + block->len, piece.data, piece.len);
		block->len += piece.len;
		at += piece.len;
		if (block->len == INGEST_BLOCK_BYTES)
			digest_submit_block(ingest);
	}
}

static void digest_conclude(struct ingest *const ingest)
{
	struct stored_part *const part = &ingest->part;
	part->digest = xxh3_stream_result(ingest->xxh3);
	part->has_md5 = ingest->md5 != NULL;
	if (part->has_md5)
		md5_stream_result(ingest->md5, part->md5);
	if (ingest->checksums[0] != NULL)
		checksum_stream_result(ingest->checksums[0], &part->checksum);
	if (ingest->checksums[1] != NULL)
		checksum_stream_result(ingest->checksums[1], &part->declared);
	part->file_hash = part_builder_file_hash(&ingest->part_builder);
}

static void digest_conclude_run(struct helper_job *const job)
{
	struct ingest *const ingest = (struct ingest *)((uint8_t *)job - offsetof(struct ingest, conclude));
	if (!atomic_load(&ingest->abandoned))
		digest_conclude(ingest);
	ingest_job_ends(ingest);
}

void ingest_digest_end(struct ingest *const ingest)
{
	if (ingest->size <= INGEST_SMALL_BYTES) {
		digest_conclude(ingest);
		return;
	}
	if (ingest->block != NULL)
		digest_submit_block(ingest);
	ingest->conclude.run = digest_conclude_run;
	ingest_job_begins(ingest);
	helpers_submit(ingest->store->helpers, &ingest->digest_lane, &ingest->conclude);
}
