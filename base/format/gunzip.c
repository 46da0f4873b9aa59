#include "base/format/gunzip.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>

#include "base/memory.h"

enum { PIECE_BYTES = 64 * 1024 };

static int decode(struct inflate_state *state, struct buffer *out, struct error *err);

int gunzip(struct span member, struct buffer *out, struct error *err)
{
	if (member.len > UINT32_MAX)
		return error_set(err, ERROR_TOO_LARGE, "it is over 4 GiB");
	struct inflate_state *const state = memory_new(sizeof(*state));
	isal_inflate_init(state);
	state->crc_flag = ISAL_GZIP;
	state->next_in = (uint8_t *)(uintptr_t)member.data;
	state->avail_in = (uint32_t)member.len;
	const int result = decode(state, out, err);
	free(state);
	return result;
}

static int decode(struct inflate_state *state, struct buffer *out, struct error *err)
{
	do {
		uint8_t piece[PIECE_BYTES];
		const size_t before = state->avail_in;
		state->next_out = piece;
		state->avail_out = sizeof(piece);
		const int fault = isal_inflate(state);
		const size_t made = sizeof(piece) - state->avail_out;
		const bool ended = state->block_state == ISAL_BLOCK_FINISH;
		if (fault != ISAL_DECOMP_OK || (!ended && made == 0 && state->avail_in == before))
			return error_set(err, ERROR_INVALID, "it is not gzip, or is damaged");
		buffer_add(out, piece, made);
		if (buffer_check(out, "its unpacked content", err) != 0)
			return -1;
	} while (state->block_state != ISAL_BLOCK_FINISH);
	if (state->avail_in > 0)
		return error_set(err, ERROR_INVALID, "bytes follow its gzip member");
	return 0;
}
