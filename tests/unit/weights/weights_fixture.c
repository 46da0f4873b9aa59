#include "tests/unit/weights/weights_fixture.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "weights/model/safetensors.h"

#ifndef TEST_DATA_DIR
#define TEST_DATA_DIR "tests/data"
#endif

char *fixture_path(const char *folder, const char *name)
{
	const size_t len = strlen(folder) + 1 + strlen(name) + 1;
	char *const path = memory_new(len);
	snprintf(path, len, "%s/%s", folder, name);
	return path;
}

char *fixture_data(const char *name)
{
	const char *const set = getenv("DELTABUCKET_TEST_DATA");
	return fixture_path(set != NULL ? set : TEST_DATA_DIR, name);
}

void fixture_write(const char *path, struct span bytes)
{
	struct error err = {0};
	char *const folder = memory_copy_text(path);
	char *const slash = strrchr(folder, '/');
	ck_assert_ptr_nonnull(slash);
	*slash = 0;
	ck_assert_msg(file_make_folder(file_system(), folder, 0755, &err) == 0, "%s", err.text);
	free(folder);
	FILE *const file = fopen(path, "wb");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(bytes.data, 1, bytes.len, file), bytes.len);
	ck_assert_int_eq(fclose(file), 0);
}

void fixture_write_text(const char *path, const char *text)
{
	fixture_write(path, span_text(text));
}

struct buffer fixture_read(const char *path)
{
	struct error err = {0};
	struct buffer bytes;
	buffer_init(&bytes, (size_t)1 << 30);
	ck_assert_msg(file_read_all(path, &bytes, &err) == 0, "%s", err.text);
	return bytes;
}

bool fixture_same_file(const char *a, const char *b)
{
	struct buffer left = fixture_read(a);
	struct buffer right = fixture_read(b);
	const bool same = span_equal(buffer_span(&left), buffer_span(&right));
	buffer_release(&left);
	buffer_release(&right);
	return same;
}

static bool is_folder(const char *path)
{
	struct stat facts;
	return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

bool fixture_same_tree(const char *a, const char *b)
{
	struct error err = {0};
	char **left = NULL;
	char **right = NULL;
	size_t left_count = 0;
	size_t right_count = 0;
	if (is_folder(a) != is_folder(b))
		return false;
	if (!is_folder(a))
		return fixture_same_file(a, b);
	ck_assert_int_eq(file_list(a, &left, &left_count, &err), 0);
	ck_assert_int_eq(file_list(b, &right, &right_count, &err), 0);
	bool same = left_count == right_count;
	for (size_t i = 0; same && i < left_count; i++) {
		char *const from = fixture_path(a, left[i]);
		char *const to = fixture_path(b, right[i]);
		same = strcmp(left[i], right[i]) == 0 && fixture_same_tree(from, to);
		free(from);
		free(to);
	}
	file_names_free(left, left_count);
	file_names_free(right, right_count);
	return same;
}

size_t fixture_entries(const char *folder)
{
	struct error err = {0};
	char **names = NULL;
	size_t count = 0;
	ck_assert_msg(file_list(folder, &names, &count, &err) == 0, "%s", err.text);
	file_names_free(names, count);
	return count;
}

void fixture_write_raw(const char *path, const char *json, size_t data_size)
{
	struct buffer bytes;
	buffer_init(&bytes, (size_t)1 << 30);
	const uint64_t len = strlen(json);
	for (unsigned i = 0; i < 8; i++)
		buffer_add_byte(&bytes, (uint8_t)(len >> (8 * i)));
	buffer_add_text(&bytes, json);
	for (size_t i = 0; i < data_size; i++)
		buffer_add_byte(&bytes, (uint8_t)i);
	fixture_write(path, buffer_span(&bytes));
	buffer_release(&bytes);
}

uint16_t fixture_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint16_t)(*state >> 45);
}

static unsigned rank_of(const struct fixture_tensor *tensor)
{
	unsigned rank = 0;
	while (rank < 4 && tensor->shape[rank] != 0)
		rank++;
	return tensor->scalar ? 0 : tensor->empty ? 1 : rank;
}

static void add_data(const struct fixture_tensor *tensor, size_t bytes, struct buffer *out)
{
	if (tensor->data != NULL) {
		buffer_add(out, tensor->data, bytes);
		return;
	}
	uint64_t state = tensor->seed;
	for (const char *at = tensor->name; *at != 0; at++)
		state = state * 31 + (uint8_t)*at;
	for (size_t i = 0; i < bytes; i++)
		buffer_add_byte(out, (uint8_t)fixture_random(&state));
}

void fixture_write_tensors(
	const char *path, const struct fixture_tensor *tensors, size_t count, bool format_pt)
{
	const struct safetensors_metadata metadata = {span_text("format"), span_text("pt")};
	struct safetensors_tensor *const table = memory_new_array(count, sizeof(table[0]));
	struct buffer bytes;
	struct error err = {0};
	buffer_init(&bytes, (size_t)1 << 30);
	for (size_t i = 0; i < count; i++)
		table[i] = (struct safetensors_tensor){
			.name = span_text(tensors[i].name),
			.dtype = tensors[i].dtype,
			.rank = rank_of(&tensors[i]),
			.shape = tensors[i].shape,
		};
	ck_assert_msg(
		safetensors_write_header(table, count, &metadata, format_pt, &bytes, &err) == 0,
		"%s", err.text);
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < count; k++)
			if (span_equal_text(table[i].name, tensors[k].name))
				add_data(&tensors[k], (size_t)(table[i].end - table[i].begin),
					&bytes);
	fixture_write(path, buffer_span(&bytes));
	buffer_release(&bytes);
	free(table);
}

uint64_t fixture_random64(uint64_t *state)
{
	*state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = *state;
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}
