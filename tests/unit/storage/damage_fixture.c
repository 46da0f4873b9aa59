#include "tests/unit/storage/damage_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "storage/core/store.h"
#include "storage/db/db.h"
#include "storage/objects/object_read.h"
#include "storage/packs/pack_format.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/xet/xorb.h"
#include "tests/unit/unit.h"

static void find_chunk(struct store_fixture *fixture, const struct object *object, unsigned segment,
	struct chunk_place *out, struct pack_id *out_file)
{
	static const char sql[] =
		"SELECT p.id, coalesce(p.file, p.id), s.first FROM versions v JOIN segments s ON s.part_set ="
		" CASE WHEN coalesce(v.part_set, 0) = 0 THEN -v.sequence ELSE v.part_set END JOIN packs p ON p.number = s.pack"
		" WHERE v.sequence = ?1 ORDER BY s.number, s.start LIMIT 1 OFFSET ?2";
	struct error err = {0};
	struct db *db = store_reader_take(fixture->store, &err);
	struct db_statement *row =
		db_query(db, sql, &err, db_i64(object->sequence), db_i64(segment));
	ck_assert_msg(db_step(row, &err) == 1, "%s", err.text);
	memcpy(out->pack.bytes, db_column_blob(row, 0).data, PACK_ID_BYTES);
	memcpy(out_file->bytes, db_column_blob(row, 1).data, PACK_ID_BYTES);
	out->chunk = (uint32_t)db_column_i64(row, 2);
	db_reset(row);
	store_reader_give(fixture->store, db);
}

static char *pack_path(struct store_fixture *fixture, const struct chunk_place *place,
	const struct pack_id *file, off_t *out_offset)
{
	struct error err = {0};
	struct pack_entry entry;
	char name[PACK_NAME_BYTES];
	char relative[PACK_NAME_BYTES + 10];
	struct pack_cache *cache = store_packs(fixture->store)->cache;
	struct pack *pinned = pack_cache_pin(cache, &place->pack, false, &err);
	ck_assert_msg(pinned != NULL, "%s", err.text);
	ck_assert_uint_eq(pack_cache_copy_entries(cache, pinned, place->chunk, &entry, 1), 1);
	pack_cache_unpin(cache, pinned);
	*out_offset = entry.offset;
	pack_format_name(file, PACK_FILE_PACK, name);
	snprintf(relative, sizeof relative, "packs/%.2s/%s", name, name);
	return store_fixture_path(fixture, relative);
}

char *damage_fixture_find(struct store_fixture *fixture, const char *bucket, const char *key,
	unsigned segment, off_t *out_offset)
{
	struct error err = {0};
	struct object object;
	struct chunk_place place;
	struct pack_id file;
	ck_assert_int_eq(fixture_find(fixture, bucket, key, &object, &err), 0);
	find_chunk(fixture, &object, segment, &place, &file);
	return pack_path(fixture, &place, &file, out_offset);
}

char *damage_fixture_find_xorb(
	struct store_fixture *fixture, const struct chunk_id *xorb, off_t *out_offset)
{
	struct error err = {0};
	struct xorb found;
	ck_assert_msg(xorb_find(fixture->store, xorb, &found, &err) == 0, "%s", err.text);
	const struct chunk_place place = {.pack = found.pack, .chunk = found.first};
	return pack_path(fixture, &place, &found.pack, out_offset);
}

void damage_fixture_flip(const char *path, off_t offset)
{
	FILE *file = fopen(path, "r+b");
	ck_assert_msg(file != NULL, "%s", path);
	long at = (long)offset + PACK_RECORD_HEADER_BYTES + 5;
	ck_assert(fseek(file, at, SEEK_SET) == 0);
	int byte = fgetc(file);
	ck_assert(byte != EOF && fseek(file, at, SEEK_SET) == 0 &&
		fputc(byte ^ 0x10, file) != EOF && fclose(file) == 0);
}

static struct chunk_id chunk_id_of(
	struct store_fixture *fixture, const char *bucket, const char *key)
{
	struct error err = {0};
	struct object object;
	struct chunk_place place;
	struct pack_id file;
	struct pack_entry entry;
	struct pack_cache *cache = store_packs(fixture->store)->cache;
	ck_assert_int_eq(fixture_find(fixture, bucket, key, &object, &err), 0);
	find_chunk(fixture, &object, 0, &place, &file);
	struct pack *pinned = pack_cache_pin(cache, &place.pack, false, &err);
	ck_assert_msg(pinned != NULL, "%s", err.text);
	ck_assert_uint_eq(pack_cache_copy_entries(cache, pinned, place.chunk, &entry, 1), 1);
	pack_cache_unpin(cache, pinned);
	return entry.id;
}

/* Chunks of packs that were open enter the chunk index only after the first requests. */
static void await_found(struct store_fixture *fixture, const struct chunk_id *id)
{
	struct chunk_place place;
	struct chunk_index *index = store_chunk_index(fixture->store);
	for (int i = 0; i < 4000 && !chunk_index_find(index, id, &place); i++)
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	ck_assert(chunk_index_find(index, id, &place));
}

void damage_fixture_flip_object(struct store_fixture *fixture, const char *bucket, const char *key)
{
	off_t offset;
	char *path = damage_fixture_find(fixture, bucket, key, 0, &offset);
	const struct chunk_id id = chunk_id_of(fixture, bucket, key);
	store_fixture_stop(fixture);
	damage_fixture_flip(path, offset);
	store_fixture_start(fixture);
	await_found(fixture, &id);
	free(path);
}

static bool is_known(struct store_fixture *fixture, int64_t chunks)
{
	return fixture_count(fixture->store, "SELECT COUNT(*) FROM damaged_chunks") == chunks &&
		pack_damage_is_known(store_packs(fixture->store)->damage) == (chunks > 0);
}

void damage_fixture_await(struct store_fixture *fixture, int64_t chunks)
{
	for (int i = 0; i < 4000 && !is_known(fixture, chunks); i++)
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	ck_assert(is_known(fixture, chunks));
}
