#include "storage/scrub/scrub_state.h"

#include <string.h>

#include "base/digest/xxh3.h"
#include "base/little_endian.h"

enum {
	STATE_VERSION = 1,
	REPORT_NUMBERS = 6,
	NUMBERS = 5 + 2 * REPORT_NUMBERS,
	NUMBERS_AT = 16,
	SUM_AT = NUMBERS_AT + 8 * NUMBERS,
	STATE_BYTES = SUM_AT + 8
};
static const char magic[8] = "DBKTSCRB";

static int decode(struct span bytes, const char *path, struct scrub_state *out, struct error *err);
static void take_numbers(const struct scrub_state *state, uint64_t out[NUMBERS]);
static void take_report(const struct scrub_report *report, uint64_t out[REPORT_NUMBERS]);
static void give_numbers(const uint64_t numbers[NUMBERS], struct scrub_state *out);
static void give_report(const uint64_t numbers[REPORT_NUMBERS], struct scrub_report *out);

int scrub_state_read(const char *path, struct scrub_state *out, struct error *err)
{
	struct buffer bytes;
	*out = (struct scrub_state){0};
	if (!file_exists(path))
		return 0;
	buffer_init(&bytes, STATE_BYTES + 1);
	int result = file_read_all(path, &bytes, err);
	if (result == 0)
		result = decode(buffer_span(&bytes), path, out, err);
	buffer_release(&bytes);
	return result;
}

int scrub_state_write(const struct file_ops *files, const char *path,
	const struct scrub_state *state, struct error *err)
{
	uint8_t bytes[STATE_BYTES] = {0};
	uint64_t numbers[NUMBERS];
	memcpy(bytes, magic, sizeof(magic));
	little_endian_put(bytes + sizeof(magic), STATE_VERSION, 2);
	take_numbers(state, numbers);
	for (size_t i = 0; i < NUMBERS; i++)
		little_endian_put(bytes + NUMBERS_AT + 8 * i, numbers[i], 8);
	little_endian_put(bytes + SUM_AT, xxh3_64(span_of(bytes, SUM_AT)), 8);
	return file_place(files, path, span_of(bytes, sizeof(bytes)), 0600, err);
}

static int decode(struct span bytes, const char *path, struct scrub_state *out, struct error *err)
{
	uint64_t numbers[NUMBERS];
	if (bytes.len != STATE_BYTES || memcmp(bytes.data, magic, sizeof(magic)) != 0 ||
		little_endian_get(bytes.data + sizeof(magic), 2) != STATE_VERSION ||
		little_endian_get(bytes.data + SUM_AT, 8) != xxh3_64(span_slice(bytes, 0, SUM_AT)))
		return error_set(err, ERROR_CORRUPT,
			"%s is not a whole state of scrub, version %d.", path, STATE_VERSION);
	for (size_t i = 0; i < NUMBERS; i++)
		numbers[i] = little_endian_get(bytes.data + NUMBERS_AT + 8 * i, 8);
	give_numbers(numbers, out);
	return 0;
}

static void take_numbers(const struct scrub_state *state, uint64_t out[NUMBERS])
{
	out[0] = (uint64_t)state->began_ms;
	out[1] = (uint64_t)state->pack;
	out[2] = state->chunk;
	take_report(&state->report, out + 3);
	out[3 + REPORT_NUMBERS] = (uint64_t)state->last_began_ms;
	out[4 + REPORT_NUMBERS] = (uint64_t)state->last_ended_ms;
	take_report(&state->last, out + 5 + REPORT_NUMBERS);
}

static void take_report(const struct scrub_report *report, uint64_t out[REPORT_NUMBERS])
{
	out[0] = report->packs;
	out[1] = report->bytes;
	out[2] = report->chunks_damaged;
	out[3] = report->chunks_healed;
	out[4] = report->packs_failed;
	out[5] = report->packs_mended;
}

static void give_numbers(const uint64_t numbers[NUMBERS], struct scrub_state *out)
{
	out->began_ms = (int64_t)numbers[0];
	out->pack = (int64_t)numbers[1];
	out->chunk = (uint32_t)numbers[2];
	give_report(numbers + 3, &out->report);
	out->last_began_ms = (int64_t)numbers[3 + REPORT_NUMBERS];
	out->last_ended_ms = (int64_t)numbers[4 + REPORT_NUMBERS];
	give_report(numbers + 5 + REPORT_NUMBERS, &out->last);
}

static void give_report(const uint64_t numbers[REPORT_NUMBERS], struct scrub_report *out)
{
	*out = (struct scrub_report){.packs = numbers[0],
		.bytes = numbers[1],
		.chunks_damaged = numbers[2],
		.chunks_healed = numbers[3],
		.packs_failed = numbers[4],
		.packs_mended = numbers[5]};
}
