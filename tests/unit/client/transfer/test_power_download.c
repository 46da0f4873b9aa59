/* Downloads and power cuts: after a cut at any moment a file is the old one or the new one; once
 * the call has returned, it is the new one; and a call that resumes after a cut makes it whole. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chunker/chunk_hash.h"
#include "chunker/merkle.h"
#include "client/local/file_map.h"
#include "client/local/folder_files.h"
#include "client/local/part_file.h"
#include "client/transfer/transfer.h"
#include "client/transfer/xet_download.h"
#include "tests/unit/client/range_server.h"
#include "tests/unit/power_disk.h"

enum { CONTENT_BYTES = 30000, PART_BYTES = 7000, FILES = 2, CHUNK_BYTES = 1000, CHUNKS = 6 };

static uint8_t content[CONTENT_BYTES + 1]; /* the server may look at one byte more */
static const char OLD[] = "what was there before";
static struct range_server_faults faults;
static struct range_server *server;
static struct remote_options remote;
static char *folder;
static struct power_disk *disk;

static void write_file(const char *name, struct span bytes)
{
	struct error err = {0};
	char *const path = folder_files_join(folder, name);
	ck_assert_int_eq(file_make_parent(file_system(), path, 0755, &err), 0);
	ck_assert_int_eq(file_place(file_system(), path, bytes, 0644, &err), 0);
	free(path);
}

static void set_up(void)
{
	for (size_t i = 0; i < CONTENT_BYTES; i++)
		content[i] = (uint8_t)(i * 2654435761u >> 13);
	memset(&faults, 0, sizeof faults);
	server = range_server_start(span_of(content, CONTENT_BYTES), &faults);
	remote = (struct remote_options){.endpoint = range_server_endpoint(server)};
	folder = unit_scratch_make();
	write_file("a/x", span_text(OLD));
	write_file("b/notes", span_text(OLD));
	disk = power_disk_new(folder);
}

static void tear_down(void)
{
	power_disk_free(disk);
	unit_scratch_remove(folder);
	range_server_stop(server);
}

/* Two files in two folders; one of them replaces another file. */
static int download(
	const char *root, const struct file_ops *files, bool has_digest, struct error *err)
{
	static const char *const names[FILES] = {"a/x", "b/y"};
	static const char *const part_names[FILES] = {"a/x.part", "b/y.part"};
	const struct transfer_options options = {
		.remote = &remote, .files = files, .parallel = 2, .part_bytes = PART_BYTES};
	struct transfer_download downloads[FILES];
	for (size_t i = 0; i < FILES; i++)
		downloads[i] = (struct transfer_download){
			.target = "/b/x",
			.size = CONTENT_BYTES,
			.has_digest = has_digest,
			.digest = xxh3_128(span_of(content, CONTENT_BYTES)),
			.etag = "same",
			.path = folder_files_join(root, names[i]),
			.part_path = folder_files_join(root, part_names[i]),
		};
	const int result = transfer_download(&options, downloads, FILES, err);
	for (size_t i = 0; i < FILES; i++) {
		free((char *)downloads[i].path);
		free((char *)downloads[i].part_path);
	}
	return result;
}

/* `text` NULL: the file may be absent. */
static void check_file(const char *root, const char *name, const char *old, const char *line)
{
	struct error err = {0};
	struct buffer bytes;
	char *const path = folder_files_join(root, name);
	buffer_init(&bytes, 2 * CONTENT_BYTES);
	const bool is_there = file_exists(path);
	ck_assert_msg(!is_there || file_read_all(path, &bytes, &err) == 0, "%s", err.text);
	const bool is_old =
		old == NULL ? !is_there : is_there && strcmp(buffer_text(&bytes), old) == 0;
	const bool is_new =
		is_there && span_equal(buffer_span(&bytes), span_of(content, CONTENT_BYTES));
	ck_assert_msg(is_new || (is_old && line != NULL), "%s, cut before \"%s\"", name,
		line != NULL ? line : "nothing more");
	buffer_release(&bytes);
	free(path);
}

static void check_files(const char *root, const char *line)
{
	check_file(root, "a/x", OLD, line);
	check_file(root, "b/y", NULL, line);
}

START_TEST(a_file_is_old_or_new)
{
	struct error err = {0};
	size_t count;
	power_disk_cut_each(disk, (enum power_cut)_i);
	ck_assert_msg(download(folder, power_disk_files(disk), true, &err) == 0, "%s", err.text);
	const struct power_taken *const taken = power_disk_taken(disk, &count);
	ck_assert_uint_gt(count, 0);
	for (size_t i = 0; i < count; i++)
		check_files(taken[i].folder, taken[i].line);
	char *const survived = power_disk_cut(disk, (enum power_cut)_i);
	check_files(survived, NULL);
	unit_scratch_remove(survived);
}
END_TEST

/* The system may write anything to the disk early: here the journals and all names, but nothing of
 * the parts. */
static void bring_journals(void)
{
	static const char *const names[] = {"a/x.part.journal", "b/y.part.journal"};
	struct error err = {0};
	const struct file_ops *const files = power_disk_files(disk);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		char *const path = folder_files_join(folder, names[i]);
		const int fd = open(path, O_WRONLY | O_CLOEXEC);
		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(file_sync(files, fd, path, &err), 0);
		ck_assert_int_eq(file_sync_name(files, path, &err), 0);
		close(fd);
		free(path);
	}
}

/* Some parts and their lines in the journals are written, and the cut can damage them in any way.
 * Without a digest only the lines show which parts are complete. */
START_TEST(a_download_goes_on_with_what_is_left)
{
	struct error err = {0};
	const bool has_digest = _i % 2 == 0;
	atomic_store(&faults.good, 4); /* of five parts */
	atomic_store(&faults.die, true);
	ck_assert_int_eq(download(folder, power_disk_files(disk), has_digest, &err), -1);
	atomic_store(&faults.die, false);
	if (!has_digest)
		bring_journals();
	char *const survived = power_disk_cut(disk, (enum power_cut)(_i / 2));
	ck_assert_msg(download(survived, file_system(), has_digest, &err) == 0, "%s", err.text);
	check_files(survived, NULL);
	unit_scratch_remove(survived);
}
END_TEST

START_TEST(what_came_before_a_lost_connection_lasts)
{
	struct error err = {0};
	atomic_store(&faults.good, 5); /* the first file */
	atomic_store(&faults.die, true);
	ck_assert_int_eq(download(folder, power_disk_files(disk), true, &err), -1);
	char *const survived = power_disk_cut(disk, POWER_CUT_DROPS_ALL);
	check_file(survived, "a/x", OLD, NULL);
	unit_scratch_remove(survived);
}
END_TEST

/* An earlier call was killed after it had renamed the file and before it synced the name. */
START_TEST(what_is_there_already_is_made_to_last)
{
	struct error err = {0};
	struct file_ops files = *power_disk_files(disk);
	ck_assert_int_eq(download(folder, &files, true, &err), 0);
	power_disk_free(disk);
	char *const survived = unit_scratch_make();
	char *const inner = folder_files_join(survived, "in");
	disk = power_disk_new(survived);
	ck_assert_int_eq(file_make_folder(power_disk_files(disk), inner, 0755, &err), 0);
	char *const from = folder_files_join(folder, "b/y");
	char *const to = folder_files_join(inner, "y");
	char *const part = folder_files_join(inner, "y.part");
	ck_assert_int_eq(file_clone(power_disk_files(disk), from, to, &err), 0);
	const int fd = open(to, O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(file_sync(power_disk_files(disk), fd, to, &err), 0);
	close(fd);
	const struct transfer_options options = {
		.remote = &remote, .files = power_disk_files(disk)};
	const struct transfer_download same = {.target = "/b/x",
		.size = CONTENT_BYTES,
		.has_digest = true,
		.digest = xxh3_128(span_of(content, CONTENT_BYTES)),
		.path = to,
		.part_path = part};
	ck_assert_msg(transfer_download(&options, &same, 1, &err) == 0, "%s", err.text);
	char *const left = power_disk_cut(disk, POWER_CUT_DROPS_ALL);
	check_file(left, "in/y", NULL, NULL);
	unit_scratch_remove(left);
	free(part);
	free(to);
	free(from);
	free(inner);
	unit_scratch_remove(survived);
}
END_TEST

/* The other kind of download; an empty file needs no server. */
START_TEST(an_empty_file_lasts_as_well)
{
	struct error err = {0};
	struct merkle merkle;
	merkle_init(&merkle);
	char *const path = folder_files_join(folder, "b/empty");
	char *const part = folder_files_join(folder, "b/empty.part");
	struct hash_cache *const cache = hash_cache_open(file_system(), NULL);
	const struct xet_download_file file = {
		.hash = merkle_file(&merkle), .path = path, .part_path = part};
	const struct xet_download whole = {
		.files = power_disk_files(disk), .options = &remote, .parallel = 1, .cache = cache};
	ck_assert_msg(xet_download(&whole, &file, 1, &err) == 0, "%s", err.text);
	char *const survived = power_disk_cut(disk, (enum power_cut)_i);
	char *const left = folder_files_join(survived, "b/empty");
	ck_assert(file_exists(left));
	free(left);
	unit_scratch_remove(survived);
	hash_cache_close(cache);
	free(part);
	free(path);
}
END_TEST

/* One of two files is refused: the other one exists all the same, and outlasts a power cut. */
START_TEST(what_came_before_a_failure_lasts)
{
	struct error err = {0};
	struct merkle merkle;
	merkle_init(&merkle);
	char *const paths[] = {
		folder_files_join(folder, "a/good"), folder_files_join(folder, "b/bad")};
	char *const parts[] = {
		folder_files_join(folder, "a/good.part"), folder_files_join(folder, "b/bad.part")};
	struct hash_cache *const cache = hash_cache_open(file_system(), NULL);
	const struct xet_download_file wanted[] = {
		{.hash = merkle_file(&merkle), .path = paths[0], .part_path = parts[0]},
		{.hash = {{1}}, .path = paths[1], .part_path = parts[1]},
	};
	const struct xet_download both = {
		.files = power_disk_files(disk), .options = &remote, .parallel = 1, .cache = cache};
	ck_assert_int_eq(xet_download(&both, wanted, 2, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DIGEST_MISMATCH);
	char *const survived = power_disk_cut(disk, POWER_CUT_DROPS_ALL);
	char *const left = folder_files_join(survived, "a/good");
	ck_assert(file_exists(left));
	free(left);
	unit_scratch_remove(survived);
	hash_cache_close(cache);
	for (size_t i = 0; i < 2; i++) {
		free(paths[i]);
		free(parts[i]);
	}
}
END_TEST

static struct map_chunk chunk_of(unsigned number)
{
	const struct span bytes = span_of(content + (size_t)number * CHUNK_BYTES, CHUNK_BYTES);
	return (struct map_chunk){.offset = (uint64_t)number * CHUNK_BYTES,
		.size = CHUNK_BYTES,
		.id = chunk_hash(bytes)};
}

/* The journal may have reached the disk and the chunks not, or the other way round. */
START_TEST(a_map_believes_only_bytes_that_are_there)
{
	struct error err = {0};
	struct file_map map;
	const struct file_ops *const files = power_disk_files(disk);
	char *const part = folder_files_join(folder, "a/z.part");
	char *const journal = folder_files_join(folder, "a/z.part.chunks");
	const int fd = part_file_open(files, part, CHUNKS * CHUNK_BYTES, &err);
	ck_assert_int_ge(fd, 0);
	struct file_map_params params = {
		.size = CHUNKS * CHUNK_BYTES, .hash = {{1}}, .journal_path = journal, .fd = fd};
	ck_assert_int_eq(file_map_open(&map, files, &params, &err), 0);
	for (unsigned i = 0; i < CHUNKS; i++) {
		const struct map_chunk chunk = chunk_of(i);
		ck_assert_int_eq(
			file_write_at(files, fd, span_of(content + chunk.offset, chunk.size),
				(off_t)chunk.offset, part, &err),
			0);
		ck_assert_int_eq(file_map_add(&map, &chunk, 1, &err), 0);
		if (i == 2)
			ck_assert_int_eq(
				file_sync(files, _i % 2 == 0 ? fd : map.journal_fd, part, &err), 0);
	}
	file_map_close(&map);
	close(fd);
	char *const survived = power_disk_cut(disk, (enum power_cut)(_i / 2));
	char *const left = folder_files_join(survived, "a/z.part");
	char *const left_journal = folder_files_join(survived, "a/z.part.chunks");
	const int found = part_file_open(file_system(), left, CHUNKS * CHUNK_BYTES, &err);
	params.journal_path = left_journal;
	params.fd = found;
	ck_assert_int_eq(file_map_open(&map, file_system(), &params, &err), 0);
	for (size_t i = 0; i < map.count; i++) {
		uint8_t bytes[CHUNK_BYTES];
		const struct iovec into = {.iov_base = bytes, .iov_len = CHUNK_BYTES};
		ck_assert_int_eq(file_read_at(file_system(), found, into,
					 (off_t)map.chunks[i].offset, left, &err),
			0);
		ck_assert_mem_eq(bytes, content + map.chunks[i].offset, CHUNK_BYTES);
	}
	if (_i / 2 == POWER_CUT_KEEPS_ALL)
		ck_assert_uint_eq(file_map_bytes(&map), CHUNKS * CHUNK_BYTES);
	file_map_close(&map);
	close(found);
	free(left_journal);
	free(left);
	unit_scratch_remove(survived);
	free(journal);
	free(part);
}
END_TEST

Suite *test_power_download_suite(void);
Suite *test_power_download_suite(void)
{
	Suite *const suite = suite_create("power_download");
	TCase *const tests = tcase_create("power_download");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, a_file_is_old_or_new, 0, POWER_CUTS);
	tcase_add_loop_test(tests, a_download_goes_on_with_what_is_left, 0, 2 * POWER_CUTS);
	tcase_add_test(tests, what_came_before_a_lost_connection_lasts);
	tcase_add_test(tests, what_is_there_already_is_made_to_last);
	tcase_add_loop_test(tests, an_empty_file_lasts_as_well, 0, POWER_CUTS);
	tcase_add_test(tests, what_came_before_a_failure_lasts);
	tcase_add_loop_test(tests, a_map_believes_only_bytes_that_are_there, 0, 2 * POWER_CUTS);
	suite_add_tcase(suite, tests);
	return suite;
}
