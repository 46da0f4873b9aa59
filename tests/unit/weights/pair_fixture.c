#include "tests/unit/weights/pair_fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/unit.h"
#include "tests/unit/weights/weights_fixture.h"

enum { LARGE = (2 << 20) + 77, SMALL = 1000, FLOATS = 5000 };

/* Weights of several binades around zero. */
static void make_weights(uint16_t *into, size_t count, uint64_t seed)
{
	for (size_t i = 0; i < count; i++) {
		const uint16_t random = fixture_random(&seed);
		into[i] = (uint16_t)((random & 0x8000) | 0x3a00 | (random & 0x3ff));
	}
}

static void change(uint16_t *weights, size_t count, unsigned step)
{
	uint64_t seed = step;
	for (size_t i = step; i < count; i += 20 + fixture_random(&seed) % 150)
		weights[i] = (uint16_t)(weights[i] + (fixture_random(&seed) % 8 == 0 ? 300 : 1));
}

static void write_step(const struct pair_fixture *fixture, unsigned number, const uint16_t *large,
	const uint16_t *small, const uint8_t *floats)
{
	char *const path = pair_fixture_step(fixture, number);
	const struct fixture_tensor tensors[] = {
		{.name = "large", .dtype = DTYPE_BF16, .shape = {LARGE}, .data = large},
		{.name = "small", .dtype = DTYPE_BF16, .shape = {10, SMALL / 10}, .data = small},
		{.name = "float", .dtype = DTYPE_F32, .shape = {FLOATS}, .data = floats},
		{.name = "same", .dtype = DTYPE_BF16, .shape = {300}},
	};
	fixture_write_tensors(path, tensors, sizeof(tensors) / sizeof(tensors[0]), true);
	free(path);
}

void pair_fixture_setup(struct pair_fixture *fixture, unsigned count, bool bf16_alone)
{
	*fixture = (struct pair_fixture){.scratch = unit_scratch_make(), .bf16_alone = bf16_alone};
	uint16_t *const large = memory_new_array(LARGE, 2);
	uint16_t *const small = memory_new_array(SMALL, 2);
	uint8_t *const floats = memory_new_array(FLOATS, 4);
	make_weights(large, LARGE, 1);
	make_weights(small, SMALL, 2);
	for (unsigned i = 0; i < count; i++) {
		write_step(fixture, i, large, small, floats);
		change(large, LARGE, i);
		change(small, SMALL, i);
		for (size_t k = i; !bf16_alone && k < 4 * FLOATS; k += 9)
			floats[k]++;
	}
	free(large);
	free(small);
	free(floats);
}

void pair_fixture_teardown(struct pair_fixture *fixture)
{
	unit_scratch_remove(fixture->scratch);
	fixture->scratch = NULL;
}

char *pair_fixture_path(const struct pair_fixture *fixture, const char *name)
{
	return fixture_path(fixture->scratch, name);
}

char *pair_fixture_step(const struct pair_fixture *fixture, unsigned number)
{
	char name[16];
	snprintf(name, sizeof(name), "%u", number);
	return pair_fixture_path(fixture, name);
}

struct checkpoint *pair_fixture_open(const struct pair_fixture *fixture, unsigned number)
{
	struct error err = {0};
	char *const path = pair_fixture_step(fixture, number);
	struct checkpoint *const checkpoint = checkpoint_open(path, &err);
	ck_assert_msg(checkpoint != NULL, "%s", err.text);
	free(path);
	return checkpoint;
}

struct delta_stats pair_fixture_diff(const struct pair_fixture *fixture, unsigned from, unsigned to,
	enum delta_format format, const char *name)
{
	struct error err = {0};
	struct delta_stats stats = {0};
	struct checkpoint *const base = pair_fixture_open(fixture, from);
	struct checkpoint *const next = pair_fixture_open(fixture, to);
	char *const out = pair_fixture_path(fixture, name);
	const struct delta_diff_params params = {
		.base = base,
		.next = next,
		.format = format,
		.model_version = to,
		.has_base_step = true,
		.base_step = from,
		.threads = 3,
		.out = out,
	};
	ck_assert_msg(delta_diff(&params, &stats, &err) == 0, "%s", err.text);
	checkpoint_close(base);
	checkpoint_close(next);
	free(out);
	return stats;
}

int pair_fixture_apply(const struct pair_fixture *fixture, unsigned number, const char *delta,
	const char *out, struct error *err)
{
	struct delta_stats stats;
	struct checkpoint *const base = pair_fixture_open(fixture, number);
	char *const delta_path = pair_fixture_path(fixture, delta);
	char *const out_path = pair_fixture_path(fixture, out);
	const struct delta_apply_params params = {
		.base = base, .delta = delta_path, .out = out_path, .threads = 3};
	const int result = delta_apply(&params, &stats, err);
	checkpoint_close(base);
	free(delta_path);
	free(out_path);
	return result;
}

void pair_fixture_expect(
	const struct pair_fixture *fixture, unsigned base, const char *delta, unsigned to)
{
	struct error err = {0};
	char *const out = pair_fixture_path(fixture, "back");
	char *const wanted = pair_fixture_step(fixture, to);
	ck_assert_msg(pair_fixture_apply(fixture, base, delta, "back", &err) == 0, "%s", err.text);
	ck_assert(fixture_same_tree(out, wanted));
	ck_assert_int_eq(file_remove_tree(file_system(), out, &err), 0);
	free(out);
	free(wanted);
}

void pair_fixture_refuse(const struct pair_fixture *fixture, unsigned base, const char *delta,
	enum error_kind kind, const char *message)
{
	struct error err = {0};
	const size_t entries = fixture_entries(fixture->scratch);
	ck_assert_int_eq(pair_fixture_apply(fixture, base, delta, "back", &err), -1);
	ck_assert_msg(err.kind == kind && strstr(err.text, message) != NULL, "%s: %s (wanted: %s)",
		error_kind_name(err.kind), err.text, message);
	ck_assert_uint_eq(fixture_entries(fixture->scratch), entries);
}
