/* Fetch tokens, signed or not. What decodes rises and lies in its xorb, and printed again it says
 * the same. */
#include "api/xet/fetch_token.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const uint8_t key[FETCH_KEY_BYTES] = {7};

static void check_sound(const struct fetch_token *token)
{
	uint64_t end = 0;
	ASSERT(token->span_count >= 1 && token->span_count <= FETCH_SPANS_MAX);
	for (size_t i = 0; i < token->span_count; i++) {
		ASSERT(token->spans[i].offset >= end && token->spans[i].length > 0);
		end = (uint64_t)token->spans[i].offset + token->spans[i].length;
	}
	ASSERT(end <= token->total);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fetch_token token;
	struct fetch_token again;
	/* nobody guesses a signature */
	ASSERT(!fetch_token_parse(span_of(data, len), key, &token));
	if (!fetch_token_decode(span_of(data, len), &token))
		return 0;
	check_sound(&token);
	struct buffer text;
	buffer_init(&text, 8 * FETCH_TOKEN_MAX_BYTES);
	fetch_token_print(&token, key, &text);
	ASSERT(fetch_token_parse(buffer_span(&text), key, &again));
	ASSERT(memcmp(&token, &again, sizeof(token)) == 0);
	buffer_release(&text);
	return 0;
}
