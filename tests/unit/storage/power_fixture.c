#include "tests/unit/storage/power_fixture.h"

#include <string.h>

#include "storage/open/store_open.h"
#include "tests/unit/unit.h"

enum { ARENA_BYTES = 64 * 1024 * 1024 };

static void open_store(struct store_fixture *fixture, const char *line)
{
	struct error err = {0};
	const struct store_options options = {
		.folder = fixture->folder,
		.files = fixture->files,
		.pack_max_bytes = 1024 * 1024,
		.derive = {.enabled = fixture->derives, .min_bytes = 64 * 1024, .interval_ms = 5},
		.xet = {.upload_promise_ms = fixture->promise_ms},
	};
	fixture->store = store_open(&options, &err);
	ck_assert_msg(fixture->store != NULL, "cut before \"%s\": %s", line, err.text);
	fixture_await_start(fixture->store);
}

struct power_disk *power_fixture_begin(struct store_fixture *fixture, enum power_cut cut)
{
	struct power_disk *const disk = power_disk_new(fixture->folder);
	fixture->files = power_disk_files(disk);
	power_disk_cut_each(disk, cut);
	open_store(fixture, "the start");
	return disk;
}

static void check_left(char *folder, unsigned mark, const char *line, power_check_fn *check)
{
	struct store_fixture left = {.folder = folder, .arena = arena_new(ARENA_BYTES)};
	open_store(&left, line);
	check(&left, mark, line);
	store_close(left.store);
	arena_free(left.arena);
}

void power_fixture_end(struct store_fixture *fixture, struct power_disk *disk, unsigned mark,
	power_check_fn *check)
{
	size_t count;
	store_close(fixture->store);
	fixture->store = NULL;
	power_disk_mark(disk, mark);
	power_disk_cut_now(disk, "nothing more");
	const struct power_taken *const taken = power_disk_taken(disk, &count);
	ck_assert_uint_gt(count, 1);
	const size_t stride = (size_t)unit_stride(9);
	for (size_t i = (count - 1) % stride; i < count; i += stride)
		check_left(taken[i].folder, taken[i].mark, taken[i].line, check);
	power_disk_free(disk);
	fixture->files = NULL;
}
