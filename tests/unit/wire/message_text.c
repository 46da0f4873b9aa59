#include "tests/unit/wire/message_text.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

char *message_text_replace(const char *text, const char *old, const char *with)
{
	const char *const at = strstr(text, old);
	ck_assert_msg(at != NULL, "the test's own text holds no %s", old);
	char *const changed = calloc(1, strlen(text) + strlen(with) + 1);
	memcpy(changed, text, (size_t)(at - text));
	strcat(changed, with);
	strcat(changed, at + strlen(old));
	return changed;
}
