/* A follower's advance, from finished downloads to the next generation, with the power cut before
 * each of its operations: `current` leads to a whole checkpoint at any moment, and to the new one
 * after the swap has returned. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/follow/follow_folder.h"
#include "client/local/folder_files.h"
#include "client/local/snapshot.h"
#include "client/transfer/catch_up.h"
#include "client/transfer/path_fetch.h"
#include "tests/unit/power_disk.h"
#include "weights/delta/delta.h"

enum { STEPS = 2, ELEMENTS = 400 };
static const char ENDPOINT[] = "https://host:9000";

/* The kinds of path to the next step. */
enum way { BY_ANCHOR, BY_DELTA, BY_DELTA_OF_A_FILE, AS_SUBSET, WAYS };

static char *scratch;
static char *into;         /* the follower's folder, on the disk */
static char *steps[STEPS]; /* the checkpoints as they were published */
/* what the generations hold; with a subset that is only a part */
static char *wanted[STEPS];
static struct snapshot snapshots[STEPS];
static struct remote_options remote;
static struct subset subset;
static struct power_disk *disk;
static bool has_links; /* the file system has hard links */

static void put(const char *folder, const char *name, struct span bytes)
{
	struct error err = {0};
	char *const path = folder_files_join(folder, name);
	ck_assert_int_eq(file_make_parent(file_system(), path, 0755, &err), 0);
	ck_assert_msg(file_place(file_system(), path, bytes, 0644, &err) == 0, "%s", err.text);
	free(path);
}

static void write_step(const char *folder, unsigned step, bool is_alone)
{
	char header[256];
	struct buffer bytes;
	buffer_init(&bytes, 100000);
	const int length = snprintf(header, sizeof header,
		"{\"a\":{\"dtype\":\"BF16\",\"shape\":[%d],\"data_offsets\":[0,%d]},"
		"\"b\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[%d,%d]}}",
		ELEMENTS, 2 * ELEMENTS, 2 * ELEMENTS, 2 * ELEMENTS + 2);
	const uint8_t prefix[8] = {(uint8_t)length};
	buffer_add(&bytes, prefix, sizeof prefix);
	buffer_add_text(&bytes, header);
	for (unsigned i = 0; i < 2 * ELEMENTS + 2; i++)
		buffer_add_byte(&bytes, (uint8_t)(i % 2 == 1 ? 0x3c : i % 14 == 0 ? i + step : i));
	put(folder, "model.safetensors", buffer_span(&bytes));
	if (!is_alone)
		put(folder, "sub/config.json", span_text("{\"a\": 1}"));
	buffer_release(&bytes);
}

static char *in_scratch(const char *name, unsigned number)
{
	char full[32];
	snprintf(full, sizeof full, "%s-%u", name, number);
	return folder_files_join(scratch, full);
}

static struct path_link make_link(enum way way, unsigned step, struct step_object *object)
{
	const bool is_anchor = way == BY_ANCHOR || step == 0;
	*object = (struct step_object){.name = span_text("model.safetensors")};
	return (struct path_link){
		.step = step,
		.from = step == 0 ? 0 : step - 1,
		.digest = snapshots[step].digest,
		.form = {.kind = is_anchor ? STEP_ANCHOR : STEP_DELTA,
			.format = span_text(is_anchor ? "full" : "ulp-class"),
			.objects = object,
			.object_count = 1},
		.files = snapshots[step].files,
		.file_count = snapshots[step].file_count,
	};
}

static void diff(const char *from, const char *to, enum delta_format format, const char *out)
{
	struct error err = {0};
	struct delta_stats stats;
	struct checkpoint *const base = checkpoint_open(from, &err);
	struct checkpoint *const next = checkpoint_open(to, &err);
	const struct delta_diff_params params = {.base = base,
		.next = next,
		.format = format,
		.model_version = 1,
		.threads = 1,
		.out = out};
	ck_assert_msg(base != NULL && next != NULL && delta_diff(&params, &stats, &err) == 0, "%s",
		err.text);
	checkpoint_close(next);
	checkpoint_close(base);
}

static void diff_files(const char *from, const char *to, const char *out)
{
	char *const base = folder_files_join(from, "model.safetensors");
	char *const next = folder_files_join(to, "model.safetensors");
	char *const delta = folder_files_join(out, "delta.safetensors");
	struct error err = {0};
	ck_assert_int_eq(file_make_parent(file_system(), delta, 0755, &err), 0);
	diff(base, next, DELTA_TRL_GAP, delta);
	free(delta);
	free(next);
	free(base);
}

/* Puts the link's objects where transfers leave them. */
static void place_link(const struct path_link *link, enum way way)
{
	struct error err = {0};
	char *const work = folder_files_join(into, "incoming");
	char *const files = path_fetch_files(work, link);
	ck_assert_int_eq(file_make_parent(file_system(), files, 0755, &err), 0);
	if (link->form.kind == STEP_ANCHOR)
		ck_assert_msg(
			snapshot_copy(file_system(), steps[link->step], NULL, files, &err) == 0,
			"%s", err.text);
	else if (way == BY_DELTA_OF_A_FILE)
		diff_files(steps[link->from], steps[link->step], files);
	else
		diff(steps[link->from], steps[link->step], DELTA_ULP_CLASS, files);
	free(files);
	free(work);
}

static int no_link(const struct file_ops *ops, const char *from, const char *to)
{
	(void)ops, (void)from, (void)to;
	errno = EPERM;
	return -1;
}

/* Does what follower.c does: makes the generation, swaps, trims. */
static void advance(const struct file_ops *files, enum way way, unsigned step)
{
	struct error err = {0};
	struct follow_folder folder;
	struct step_object object;
	struct path_link link = make_link(way, step, &object);
	struct path_message path = {.from_nothing = link.form.kind == STEP_ANCHOR,
		.to_step = step,
		.links = &link,
		.link_count = 1};
	struct catch_up_result result = {0};
	char *name;
	char *out;
	ck_assert_msg(follow_folder_open(&folder, files, into, ENDPOINT, "b/r", &err) == 0, "%s",
		err.text);
	follow_folder_next(&folder, step, &name, &out);
	char *const work = follow_folder_incoming(&folder);
	char *const base = folder.has_current ? follow_folder_current(&folder) : NULL;
	const struct catch_up_params params = {
		.transfer = {.remote = &remote, .files = files},
		.path = &path,
		.base = base,
		.work = work,
		.out = out,
		.threads = 1,
		.subset = way == AS_SUBSET ? &subset : NULL,
		.base_digest = snapshots[0].digest,
		.tensor_digests = span_of(snapshots[step].tensor_digests,
			snapshots[step].tensor_count * sizeof(struct digest128)),
	};
	ck_assert_msg(catch_up_make(&params, &result, &err) == 0, "%s", err.text);
	const struct proven_files none = {0};
	const struct follow_swap swap = {.name = name,
		.step = step,
		.digest = link.digest,
		.label = "",
		.held = link.digest,
		.files = &none};
	ck_assert_msg(follow_folder_swap(&folder, &swap, &err) == 0, "%s", err.text);
	ck_assert_msg(follow_folder_trim(&folder, 0, &err) == 0, "%s", err.text);
	follow_folder_close(&folder);
	free(base);
	free(work);
	free(out);
	free(name);
}

/* Reads the generation as it is now, for comparison. */
static void keep_wanted(unsigned step)
{
	struct error err = {0};
	char *const current = folder_files_join(into, "current");
	wanted[step] = in_scratch("wanted", step);
	char command[9000];
	snprintf(command, sizeof command, "cp -a %s/. %s", current, wanted[step]);
	ck_assert_int_eq(system(command), 0);
	ck_assert_int_eq(file_sync_folder(file_system(), wanted[step], &err), 0);
	free(current);
}

static void begin(enum way way)
{
	struct error err = {0};
	struct step_object objects[STEPS];
	struct follow_folder folder;
	scratch = unit_scratch_make();
	into = folder_files_join(scratch, "into");
	ck_assert_int_eq(
		follow_folder_open(&folder, file_system(), into, ENDPOINT, "b/r", &err), 0);
	follow_folder_close(&folder);
	ck_assert_int_eq(subset_init(&subset, "a", NULL, &err), 0);
	for (unsigned step = 0; step < STEPS; step++) {
		steps[step] = in_scratch("step", step);
		write_step(steps[step], step, way == BY_DELTA_OF_A_FILE);
		ck_assert_msg(
			snapshot_open(&snapshots[step], steps[step], NULL, 1, NULL, &err) == 0,
			"%s", err.text);
		const struct path_link link = make_link(way, step, &objects[step]);
		place_link(&link, way);
		if (step == 0) {
			advance(file_system(), way, 0);
			keep_wanted(0);
		}
	}
	disk = power_disk_new(into);
}

static void end(void)
{
	power_disk_free(disk);
	for (unsigned step = 0; step < STEPS; step++) {
		snapshot_close(&snapshots[step]);
		free(steps[step]);
		free(wanted[step]);
	}
	subset_release(&subset);
	free(into);
	unit_scratch_remove(scratch);
}

static bool same_file(const char *left, const char *right)
{
	struct error err = {0};
	struct digest128 a;
	struct digest128 b;
	return transfer_file_digest(left, &a, &err) == 0 &&
		transfer_file_digest(right, &b, &err) == 0 && digest128_equal(&a, &b);
}

static bool same_tree(const char *left, const char *right)
{
	struct error err = {0};
	struct folder_files a;
	struct folder_files b;
	ck_assert_msg(folder_files_read(left, &a, &err) == 0, "%s", err.text);
	ck_assert_msg(folder_files_read(right, &b, &err) == 0, "%s", err.text);
	bool same = a.count == b.count;
	for (size_t i = 0; i < a.count && same; i++)
		same = strcmp(a.files[i].name, b.files[i].name) == 0 &&
			same_file(a.files[i].path, b.files[i].path);
	folder_files_release(&a);
	folder_files_release(&b);
	return same;
}

/* Checks what engines read while no follower runs. */
static void check_current(const char *folder, const char *line)
{
	char *const current = folder_files_join(folder, "current");
	ck_assert_msg(file_exists(current), "cut before \"%s\": current leads nowhere", line);
	ck_assert_msg(same_tree(current, wanted[0]) || same_tree(current, wanted[1]),
		"cut before \"%s\": current is in pieces", line);
	free(current);
}

static void check_generation(const char *folder, unsigned step, const char *line)
{
	char name[64];
	snprintf(name, sizeof name, "generations/%06u", step);
	char *const generation = folder_files_join(folder, name);
	ck_assert_msg(!file_exists(generation) || same_tree(generation, wanted[step]),
		"cut before \"%s\": %s is in pieces", line, name);
	free(generation);
}

/* Returns the step that a follower finds to be current. */
static uint64_t check_survived(const char *survived, const char *line)
{
	struct error err = {0};
	struct follow_folder folder;
	check_current(survived, line);
	check_generation(survived, 1, line); /* it appears whole */
	ck_assert_msg(
		follow_folder_open(&folder, file_system(), survived, ENDPOINT, "b/r", &err) == 0,
		"cut before \"%s\": %s", line, err.text);
	ck_assert_msg(folder.has_current, "cut before \"%s\": nothing is current", line);
	const uint64_t step = folder.current.step;
	char *const current = follow_folder_current(&folder);
	ck_assert_msg(same_tree(current, wanted[step]), "cut before \"%s\": step %u is another",
		line, (unsigned)step);
	check_generation(survived, 0, line); /* opening has removed what lacks a sidecar */
	check_generation(survived, 1, line);
	free(current);
	follow_folder_close(&folder);
	return step;
}

static void check_advance(enum way way, enum power_cut cut)
{
	size_t count;
	begin(way);
	struct file_ops files = *power_disk_files(disk);
	if (!has_links)
		files.link = no_link;
	power_disk_cut_each(disk, cut);
	advance(&files, way, 1);
	keep_wanted(1);
	const struct power_taken *const taken = power_disk_taken(disk, &count);
	ck_assert_uint_gt(count, 0);
	for (size_t i = 0; i < count; i += (size_t)unit_stride(3))
		check_survived(taken[i].folder, taken[i].line);
	char *const survived = power_disk_cut(disk, cut);
	ck_assert_uint_eq(check_survived(survived, "nothing more"), 1);
	unit_scratch_remove(survived);
	end();
}

START_TEST(current_leads_to_a_whole_checkpoint)
{
	has_links = true;
	check_advance((enum way)(_i / POWER_CUTS), (enum power_cut)(_i % POWER_CUTS));
}
END_TEST

START_TEST(also_where_there_are_no_hard_links)
{
	static const enum way ways[] = {BY_ANCHOR, AS_SUBSET};
	has_links = false;
	check_advance(ways[_i / POWER_CUTS], (enum power_cut)(_i % POWER_CUTS));
}
END_TEST

/* The very first start: whatever is left is accepted as a follower's folder again. */
START_TEST(a_new_folder_is_never_foreign)
{
	struct error err = {0};
	struct follow_folder folder;
	size_t count;
	scratch = unit_scratch_make();
	into = folder_files_join(scratch, "into");
	disk = power_disk_new(scratch);
	power_disk_cut_each(disk, (enum power_cut)_i);
	ck_assert_int_eq(
		follow_folder_open(&folder, power_disk_files(disk), into, ENDPOINT, "b/r", &err),
		0);
	follow_folder_close(&folder);
	const struct power_taken *const taken = power_disk_taken(disk, &count);
	for (size_t i = 0; i < count; i++) {
		char *const left = folder_files_join(taken[i].folder, "into");
		ck_assert_msg(follow_folder_open(
				      &folder, file_system(), left, ENDPOINT, "b/r", &err) == 0,
			"cut before \"%s\": %s", taken[i].line, err.text);
		follow_folder_close(&folder);
		free(left);
	}
	power_disk_free(disk);
	free(into);
	unit_scratch_remove(scratch);
}
END_TEST

Suite *test_power_follow_suite(void);
Suite *test_power_follow_suite(void)
{
	Suite *const suite = suite_create("power_follow");
	TCase *const tests = tcase_create("power_follow");
	tcase_add_loop_test(tests, current_leads_to_a_whole_checkpoint, 0, WAYS * POWER_CUTS);
	tcase_add_loop_test(tests, also_where_there_are_no_hard_links, 0, 2 * POWER_CUTS);
	tcase_add_loop_test(tests, a_new_folder_is_never_foreign, 0, POWER_CUTS);
	suite_add_tcase(suite, tests);
	return suite;
}
