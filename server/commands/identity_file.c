#include "server/commands/identity_file.h"

#include <string.h>

#include "base/file.h"

enum { FILE_MAX_BYTES = 64 * 1024 };

int identity_file_read(const char *path, struct age_identities *out, struct error *err)
{
	struct buffer text;
	buffer_init(&text, FILE_MAX_BYTES);
	int result = file_read_all(path, &text, err);
	if (result == 0 && age_identities_parse(buffer_span(&text), out, err) != 0)
		result = error_wrap(err, "%s", path);
	if (text.data != NULL)
		explicit_bzero(text.data, text.capacity);
	buffer_release(&text);
	return result;
}
