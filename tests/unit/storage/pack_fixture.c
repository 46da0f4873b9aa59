#include "tests/unit/storage/pack_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest/digest.h"
#include "base/memory.h"
#include "storage/packs/pack_store_parts.h"
#include "tests/unit/unit.h"

static const struct pack_origin origin = {.store = {1, 2, 3, 4, 5, 6, 7, 8}, .life = 1};

static void fixture_start(struct pack_fixture *fixture)
{
	struct error err = {0};
	bool rebuild;
	char path[4096];
	snprintf(path, sizeof path, "%s/chunks.db", fixture->scratch);
	fixture->helpers = helpers_start(2);
	const struct chunk_index_options index_options = {.files = file_system(), .path = path};
	fixture->chunk_index = chunk_index_open(&index_options, &rebuild, &err);
	ck_assert_msg(fixture->chunk_index != NULL, "%s", err.text);
	struct backend *const backend = fixture->kind == PACK_FIXTURE_MEMORY ? backend_memory_new()
		: fixture->kind == PACK_FIXTURE_FAR
		? far_fixture_open(&fixture->far, &err)
		: backend_folder_open(
			  fixture->packs_folder, fixture->aside_folder, &fixture->faults.ops, &err);
	ck_assert_msg(backend != NULL, "%s", err.text);
	const struct pack_store_options options = {
		.backend = backend,
		.chunk_index = fixture->chunk_index,
		.helpers = fixture->helpers,
		.metrics = fixture->metrics,
		.log = fixture->log,
		.pack_max_bytes = fixture->pack_max_bytes,
		.index_cache_bytes = fixture->index_cache_bytes,
	};
	fixture->store = pack_store_open(&options, &err);
	ck_assert_msg(fixture->store != NULL, "%s", err.text);
	pack_store_set_origin(fixture->store, &origin);
}

static void fixture_stop(struct pack_fixture *fixture)
{
	helpers_stop(fixture->helpers);
	pack_store_close(fixture->store);
	chunk_index_close(fixture->chunk_index);
}

void pack_fixture_open(
	struct pack_fixture *fixture, enum pack_fixture_kind kind, uint64_t pack_max_bytes)
{
	*fixture = (struct pack_fixture){.kind = kind, .pack_max_bytes = pack_max_bytes};
	fixture->scratch = unit_scratch_make();
	fixture->packs_folder = memory_new(4096);
	snprintf(fixture->packs_folder, 4096, "%s/packs", fixture->scratch);
	fixture->far.folder = fixture->packs_folder;
	snprintf(fixture->aside_folder, sizeof fixture->aside_folder, "%s/set-aside",
		fixture->scratch);
	fixture->metrics = metrics_new();
	file_faults_init(&fixture->faults, 0, 0, 0);
	fixture_start(fixture);
}

void pack_fixture_close(struct pack_fixture *fixture)
{
	fixture_stop(fixture);
	metrics_free(fixture->metrics);
	free(fixture->records);
	free(fixture->packs_folder);
	unit_scratch_remove(fixture->scratch);
}

static void fixture_record(struct pack_fixture *fixture, const struct pack_record *record)
{
	for (size_t i = 0; i < fixture->record_count; i++)
		if (pack_id_equal(&fixture->records[i].id, &record->id)) {
			fixture->records[i] = *record;
			return;
		}
	fixture->records =
		memory_grow(fixture->records, fixture->record_count + 1, sizeof *fixture->records);
	fixture->records[fixture->record_count++] = *record;
}

void pack_fixture_reopen(struct pack_fixture *fixture)
{
	pack_fixture_reopen_as(fixture, &origin, true);
}

void pack_fixture_reopen_as(
	struct pack_fixture *fixture, const struct pack_origin *last, bool is_whole)
{
	ck_assert_int_ne(fixture->kind, PACK_FIXTURE_MEMORY);
	fixture_stop(fixture);
	fixture_start(fixture);
	struct error err = {0};
	struct pack_record *sealed;
	size_t count;
	const struct pack_names names = {
		fixture->records, fixture->record_count, fixture->removals, fixture->removal_count};
	struct pack_recovery *recovery = pack_recovery_look(fixture->store, &names, last, &err);
	ck_assert_msg(recovery != NULL, "%s", err.text);
	fixture->facts = *pack_recovery_facts(recovery);
	ck_assert_msg(pack_recovery_settle(recovery, is_whole, &sealed, &count, &err) == 0, "%s",
		err.text);
	pack_recovery_free(recovery);
	for (size_t i = 0; i < count; i++)
		fixture_record(fixture, &sealed[i]);
	free(sealed);
}

void pack_fixture_store_shared(struct pack_fixture *fixture)
{
	struct error err = {0};
	struct pack_record records[4];
	struct shared_pack *const pack = pack_store_shared_take(fixture->store, INT64_MAX);
	if (pack == NULL)
		return;
	ck_assert_msg(pack_store_shared_store(pack, &err) == 0, "%s", err.text);
	pack_store_shared_give(pack, true);
	const size_t count = pack_store_shared_records(fixture->store, records, 4);
	for (size_t i = 0; i < count; i++)
		fixture_record(fixture, &records[i]);
	pack_store_shared_committed(fixture->store);
}

/* Stops the helpers, which runs all jobs: no other way waits for every lane. */
void pack_fixture_settle(struct pack_fixture *fixture)
{
	helpers_stop(fixture->helpers);
	fixture->helpers = helpers_start(2);
	fixture->store->helpers = fixture->helpers;
}

char *pack_fixture_path(
	const struct pack_fixture *fixture, const struct pack_id *pack, const char *suffix)
{
	char text[PACK_ID_TEXT_BYTES];
	pack_id_format(pack, text);
	char *const path = memory_new(4096);
	snprintf(path, 4096, "%s/%.2s/%s.%s", fixture->packs_folder, text, text, suffix);
	return path;
}

size_t pack_fixture_file_count(const struct pack_fixture *fixture)
{
	struct error err = {0};
	char **folders;
	size_t folder_count;
	size_t files = 0;
	ck_assert_msg(file_list(fixture->packs_folder, &folders, &folder_count, &err) == 0, "%s",
		err.text);
	for (size_t i = 0; i < folder_count; i++) {
		char path[4096];
		char **names;
		size_t count;
		snprintf(path, sizeof path, "%s/%s", fixture->packs_folder, folders[i]);
		ck_assert_msg(file_list(path, &names, &count, &err) == 0, "%s", err.text);
		file_names_free(names, count);
		files += count;
	}
	file_names_free(folders, folder_count);
	return files;
}

void pack_fixture_flip(const char *path, uint64_t offset)
{
	const int fd = open(path, O_RDWR);
	ck_assert_msg(fd >= 0, "%s", path);
	uint8_t byte;
	ck_assert_int_eq(pread(fd, &byte, 1, (off_t)offset), 1);
	byte ^= 0x10;
	ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)offset), 1);
	close(fd);
}

void pack_fixture_set_faults(struct pack_fixture *fixture, int kinds, int countdown)
{
	pack_fixture_settle(fixture);
	file_faults_init(&fixture->faults, kinds, countdown, EIO);
}

void pack_writer_end_init(struct pack_writer_end *end)
{
	*end = (struct pack_writer_end){0};
	lock_init(&end->lock, LOCK_EXCHANGE);
	lock_condition_init(&end->changed);
}

void pack_writer_end_release(struct pack_writer_end *end)
{
	lock_condition_release(&end->changed);
	lock_release(&end->lock);
}

static void end_room(void *owner)
{
	struct pack_writer_end *const end = owner;
	lock_enter(&end->lock);
	end->rooms++;
	lock_signal(&end->changed);
	lock_leave(&end->lock);
}

static void end_done(void *owner)
{
	struct pack_writer_end *const end = owner;
	lock_enter(&end->lock);
	ck_assert(!end->is_done);
	end->is_done = true;
	lock_signal(&end->changed);
	lock_leave(&end->lock);
}

void pack_writer_end_options(struct pack_writer_end *end, struct ingest_options *options)
{
	options->room = end_room;
	options->done = end_done;
	options->owner = end;
}

struct ingest *pack_fixture_ingest(
	struct pack_fixture *fixture, struct pack_writer_end *end, bool want_md5)
{
	struct error err = {0};
	struct ingest_options options = {.packs = fixture->store, .want_md5 = want_md5};
	pack_writer_end_options(end, &options);
	struct ingest *const ingest = ingest_open(&options, &err);
	ck_assert_msg(ingest != NULL, "%s", err.text);
	return ingest;
}

static void end_wait_room(struct pack_writer_end *end)
{
	lock_enter(&end->lock);
	end->waits++;
	while (end->rooms == 0)
		lock_wait(&end->lock, &end->changed);
	end->rooms--;
	lock_leave(&end->lock);
}

int pack_fixture_write(struct ingest *ingest, struct pack_writer_end *end, struct span bytes,
	uint64_t seed, struct error *err)
{
	static const size_t limits[] = {1, 100, 4096, 70000, 300000, 1500000};
	uint64_t state = seed;
	for (size_t at = 0; at < bytes.len;) {
		const size_t limit = seed == 0
			? bytes.len
			: limits[fixture_random(&state) % (sizeof limits / sizeof *limits)];
		const struct span piece = span_slice(
			bytes, at, seed == 0 ? limit : 1 + fixture_random(&state) % limit);
		const enum sink_result result = ingest_write(ingest, piece, err);
		if (result == SINK_FAILED)
			return -1;
		if (result == SINK_WAIT)
			end_wait_room(end);
		else
			at += piece.len;
	}
	return 0;
}

int pack_fixture_finish(struct ingest *ingest, struct pack_writer_end *end, struct error *err)
{
	ingest_finish(ingest);
	lock_enter(&end->lock);
	while (!end->is_done)
		lock_wait(&end->lock, &end->changed);
	lock_leave(&end->lock);
	return ingest_outcome(ingest, err);
}

int pack_fixture_commit(struct pack_fixture *fixture, struct ingest *ingest, struct error *err)
{
	if (ingest_place(ingest, err) != 0 || pack_store_shared_sync(fixture->store, err) != 0) {
		pack_store_shared_abandon(fixture->store);
		return -1;
	}
	struct pack_record record;
	while (pack_store_shared_records(fixture->store, &record, 1) == 1)
		fixture_record(fixture, &record);
	const struct pack_record *own;
	const size_t count = ingest_packs(ingest, &own);
	for (size_t i = 0; i < count; i++)
		fixture_record(fixture, &own[i]);
	pack_store_shared_committed(fixture->store);
	ingest_committed(ingest);
	return 0;
}

void stored_stream_release(struct stored_stream *stream)
{
	free(stream->segments);
	stream->segments = NULL;
}

static void stored_stream_take(struct stored_stream *out, const struct stored_part *part)
{
	*out = (struct stored_stream){
		.size = part->size,
		.file_hash = part->file_hash,
		.digest = part->digest,
		.is_inline = part->is_inline,
		.segment_count = part->segment_count,
	};
	memcpy(out->md5, part->md5, sizeof out->md5);
	if (part->is_inline)
		memcpy(out->inline_bytes, part->inline_bytes.data, part->inline_bytes.len);
	if (part->segment_count > 0)
		out->segments =
			memory_copy(part->segments, part->segment_count * sizeof *part->segments);
}

int pack_fixture_try_put(struct pack_fixture *fixture, struct span bytes, uint64_t seed,
	struct stored_stream *out, struct error *err)
{
	struct pack_writer_end end;
	pack_writer_end_init(&end);
	struct ingest *const ingest = pack_fixture_ingest(fixture, &end, true);
	int result = pack_fixture_write(ingest, &end, bytes, seed, err);
	if (result == 0)
		result = pack_fixture_finish(ingest, &end, err);
	if (result == 0)
		result = pack_fixture_commit(fixture, ingest, err);
	if (result == 0)
		stored_stream_take(out, ingest_part(ingest));
	ingest_free(ingest);
	if (result != 0)
		pack_fixture_settle(fixture); /* the last job may still use it */
	pack_writer_end_release(&end);
	return result;
}

void pack_fixture_put(
	struct pack_fixture *fixture, struct span bytes, uint64_t seed, struct stored_stream *out)
{
	struct error err = {0};
	ck_assert_msg(pack_fixture_try_put(fixture, bytes, seed, out, &err) == 0, "%s", err.text);
	uint8_t md5[MD5_BYTES];
	struct md5_stream *const stream = md5_stream_new();
	md5_stream_add(stream, bytes);
	md5_stream_result(stream, md5);
	md5_stream_free(stream);
	const struct digest128 digest = xxh3_128(bytes);
	ck_assert_uint_eq(out->size, bytes.len);
	ck_assert_mem_eq(out->md5, md5, sizeof md5);
	ck_assert(digest128_equal(&out->digest, &digest));
	ck_assert_int_eq(out->is_inline, bytes.len <= INLINE_MAX_BYTES);
}

int pack_fixture_try_get(struct pack_fixture *fixture, const struct stored_stream *stream,
	uint64_t offset, uint64_t length, size_t piece, uint8_t *into, struct error *err)
{
	struct body_source *const source = stream->is_inline
		? assemble_open_inline(span_of(stream->inline_bytes + offset, length))
		: assemble_open(fixture->store, stream->segments, stream->segment_count, offset,
			  length, err);
	if (source == NULL)
		return -1;
	uint64_t at = 0;
	ptrdiff_t len;
	while ((len = source->read(
			source, into + at, length - at < piece ? length - at : piece, err)) > 0)
		at += (uint64_t)len;
	source->close(source);
	if (len == 0)
		ck_assert_uint_eq(at, length);
	return len == 0 ? 0 : -1;
}

void pack_fixture_expect_range(struct pack_fixture *fixture, const struct stored_stream *stream,
	struct span expected, uint64_t offset, uint64_t length, size_t piece)
{
	struct error err = {0};
	uint8_t *const got = memory_new(length + 1);
	ck_assert_msg(pack_fixture_try_get(fixture, stream, offset, length, piece, got, &err) == 0,
		"%s", err.text);
	ck_assert_msg(length == 0 || memcmp(got, expected.data + offset, length) == 0,
		"bytes %llu+%llu in pieces of %zu differ", (unsigned long long)offset,
		(unsigned long long)length, piece);
	free(got);
}

void pack_fixture_expect(
	struct pack_fixture *fixture, const struct stored_stream *stream, struct span expected)
{
	pack_fixture_expect_range(fixture, stream, expected, 0, expected.len, ASSEMBLE_BLOCK_BYTES);
}

uint64_t fixture_random(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint8_t *fixture_bytes(enum fixture_content content, uint64_t seed, size_t len)
{
	static const char *const words[] = {
		"step ", "loss ", "reward ", "0.125 ", "0.5 ", "epoch ", "\n", "rollout "};
	uint64_t state = seed;
	uint8_t *const bytes = memory_new(len + 8);
	for (size_t i = 0; i < len;) {
		const uint64_t value = fixture_random(&state);
		if (content == FIXTURE_TEXT) {
			const char *const word = words[value % 8];
			for (size_t k = 0; word[k] != '\0' && i < len; k++)
				bytes[i++] = (uint8_t)word[k];
			continue;
		}
		for (size_t k = 0; k < 8 && i < len; k++, i++)
			bytes[i] = (uint8_t)(content == FIXTURE_BF16 && k % 2 == 1
					? 0x3c + (value >> (8 * k)) % 3
					: value >> (8 * k));
	}
	return bytes;
}
