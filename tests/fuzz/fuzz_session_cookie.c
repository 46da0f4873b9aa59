/* The header Cookie: what is read is printed and read again as the same. */
#include "api/auth/session_cookie.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct session_cookie cookie;
	struct session_cookie again;
	struct buffer printed;
	struct arena *const arena = arena_new(1024 * 1024);
	const bool is_secure = len > 0 && data[0] == '_';
	if (session_cookie_parse(span_of(data, len), is_secure, arena, &cookie)) {
		buffer_init(&printed, 4096);
		session_cookie_print(&cookie, is_secure, &printed);
		struct span rest = buffer_span(&printed);
		struct span pair = {NULL, 0};
		span_split(&rest, ';', &pair);
		ASSERT(session_cookie_parse(pair, is_secure, arena, &again));
		ASSERT(span_equal(cookie.key_id, again.key_id));
		ASSERT(memcmp(cookie.bytes, again.bytes, sizeof(cookie.bytes)) == 0);
		buffer_release(&printed);
	}
	arena_free(arena);
	return 0;
}
