/* usage: route_list   prints every route of the server (route_text.h), from the tables that it has. */
#include <stdio.h>

#include "tests/support/route_text.h"

int main(void)
{
	struct buffer text;
	buffer_init(&text, ROUTE_TEXT_MAX_BYTES);
	route_text_print(&text);
	const bool good =
		!buffer_failed(&text) && fwrite(text.data, 1, text.len, stdout) == text.len;
	buffer_release(&text);
	return good ? 0 : 1;
}
