#include "client/remote/run_name.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/encode.h"
#include "base/memory.h"

enum { BUCKET_MAX_BYTES = 255, RUN_MAX_BYTES = 128, TARGET_MAX_BYTES = 2048 };

static bool is_run(const char *run);
static bool is_run_byte(char byte);
static char *make_target(const char *bucket, const char *run);

int run_name_init(struct run_name *name, const char *text, struct error *err)
{
	*name = (struct run_name){0};
	if (text == NULL)
		return error_set(err, ERROR_BAD_NAME, "say which run: --run BUCKET/RUN");
	const char *const slash = strchr(text, '/');
	const size_t bucket_len = slash == NULL ? 0 : (size_t)(slash - text);
	if (bucket_len == 0 || bucket_len > BUCKET_MAX_BYTES)
		return error_set(err, ERROR_BAD_NAME,
			"\"%s\" does not name a run: the form is BUCKET/RUN", text);
	if (!is_run(slash + 1))
		return error_set(err, ERROR_BAD_NAME,
			"\"%s\" cannot name a run: a name has up to %d of A-Z a-z 0-9 . _ - and does not begin with . or -",
			slash + 1, RUN_MAX_BYTES);
	name->text = memory_copy_text(text);
	name->bucket = memory_copy_text(text);
	name->bucket[bucket_len] = '\0';
	name->run = memory_copy_text(slash + 1);
	name->target = make_target(name->bucket, name->run);
	return 0;
}

void run_name_release(struct run_name *name)
{
	free(name->text);
	free(name->bucket);
	free(name->run);
	free(name->target);
	*name = (struct run_name){0};
}

static bool is_run(const char *run)
{
	if (run[0] == '\0' || run[0] == '.' || run[0] == '-' || strlen(run) > RUN_MAX_BYTES)
		return false;
	for (const char *at = run; *at != '\0'; at++)
		if (!is_run_byte(*at))
			return false;
	return true;
}

static bool is_run_byte(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
		(byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == '-';
}

static char *make_target(const char *bucket, const char *run)
{
	struct buffer target;
	buffer_init(&target, TARGET_MAX_BYTES);
	buffer_add_text(&target, "/v1/runs/");
	encode_percent(span_text(bucket), false, &target);
	buffer_add_byte(&target, '/');
	encode_percent(span_text(run), false, &target);
	ASSERT(!buffer_failed(&target));
	char *const text = memory_copy_text(buffer_text(&target));
	buffer_release(&target);
	return text;
}
