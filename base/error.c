/* Texts are formatted in a local buffer first, because the old text may be among the arguments
 * (error_wrap), and are shortened to the fixed size afterwards. The names of the kinds are a table
 * whose size is checked against error.def. */
#include "base/error.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 160, WHOLE_MAX_BYTES = 16 * 1024 };
static const char GAP[] = " [...] ";

static bool is_inside_letter(char byte)
{
	return ((unsigned char)byte & 0xC0) == 0x80;
}

/* Keeps the head and the end of a text, without cutting a UTF-8 letter. */
static void shorten(const char *whole, size_t len, char out[ERROR_TEXT_BYTES])
{
	ASSERT(len >= ERROR_TEXT_BYTES && len < WHOLE_MAX_BYTES);
	size_t head = HEAD_BYTES;
	size_t tail = len - (ERROR_TEXT_BYTES - 1 - HEAD_BYTES - (sizeof(GAP) - 1));
	while (head > 0 && is_inside_letter(whole[head]))
		head--;
	while (tail < len && is_inside_letter(whole[tail]))
		tail++;
	snprintf(out, ERROR_TEXT_BYTES, "%.*s%s%s", (int)head, whole, GAP, whole + tail);
}

static void __attribute__((format(printf, 2, 0)))
print(char out[ERROR_TEXT_BYTES], const char *const format, va_list arguments)
{
	char whole[WHOLE_MAX_BYTES]; /* not `out`, which may be among the arguments */
	vsnprintf(whole, sizeof(whole), format, arguments);
	const size_t len = strlen(whole);
	if (len < ERROR_TEXT_BYTES)
		memcpy(out, whole, len + 1);
	else
		shorten(whole, len, out);
}

int error_set_list(struct error *err, enum error_kind kind, const char *format, va_list arguments)
{
	print(err->text, format, arguments);
	err->kind = kind;
	err->os_errno = 0;
	err->request_id[0] = '\0';
	return -1;
}

int error_set(struct error *err, enum error_kind kind, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	error_set_list(err, kind, format, arguments);
	va_end(arguments);
	return -1;
}

static enum error_kind kind_of_errno(int os_errno)
{
	static const struct {
		int os_errno;
		enum error_kind kind;
	} kinds[] = {
		{ENOENT, ERROR_NOT_FOUND},
		{ENOSPC, ERROR_NO_SPACE},
		{EDQUOT, ERROR_NO_SPACE},
		{ENOMEM, ERROR_NO_MEMORY},
		{EACCES, ERROR_DENIED},
		{EPERM, ERROR_DENIED},
		{EROFS, ERROR_READ_ONLY},
	};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].os_errno == os_errno)
			return kinds[i].kind;
	return ERROR_IO;
}

int error_set_errno(struct error *err, const char *format, ...)
{
	const int os_errno = errno;
	char text[ERROR_TEXT_BYTES];
	char reason[128];
	va_list arguments;
	va_start(arguments, format);
	print(text, format, arguments);
	va_end(arguments);
	error_set(err, kind_of_errno(os_errno), "%s: %s", text,
		strerror_r(os_errno, reason, sizeof(reason)));
	err->os_errno = os_errno;
	return -1;
}

int error_reword(struct error *err, enum error_kind kind, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	print(err->text, format, arguments);
	va_end(arguments);
	err->kind = kind;
	return -1;
}

int error_wrap(struct error *err, const char *format, ...)
{
	char doing[ERROR_TEXT_BYTES];
	va_list arguments;
	va_start(arguments, format);
	print(doing, format, arguments);
	va_end(arguments);
	return error_reword(err, err->kind, "%s: %s", doing, err->text);
}

int error_advise(struct error *err, const char *format, ...)
{
	char advice[ERROR_TEXT_BYTES];
	va_list arguments;
	va_start(arguments, format);
	print(advice, format, arguments);
	va_end(arguments);
	const size_t len = strlen(err->text);
	const int kept = (int)(len > 0 && err->text[len - 1] == '.' ? len - 1 : len);
	return error_reword(err, err->kind, "%.*s; %s", kept, err->text, advice);
}

/* The preprocessor cannot lower the case of a name, so the table repeats them in lower case. Its
 * number of rows is checked: a new kind without a name does not compile. */
static const struct {
	enum error_kind kind;
	const char *name;
} kind_names[] = {
	{ERROR_NONE, "none"},
	{ERROR_NOT_FOUND, "not_found"},
	{ERROR_EXISTS, "exists"},
	{ERROR_INVALID, "invalid"},
	{ERROR_DENIED, "denied"},
	{ERROR_TOO_LARGE, "too_large"},
	{ERROR_RANGE, "range"},
	{ERROR_CORRUPT, "corrupt"},
	{ERROR_NO_SPACE, "no_space"},
	{ERROR_IO, "io"},
	{ERROR_BUSY, "busy"},
	{ERROR_UPSTREAM, "upstream"},
	{ERROR_UNSUPPORTED, "unsupported"},
	{ERROR_NO_MEMORY, "no_memory"},
	{ERROR_PRECONDITION, "precondition"},
	{ERROR_NO_BUCKET, "no_bucket"},
	{ERROR_NO_KEY, "no_key"},
	{ERROR_NO_RUN, "no_run"},
	{ERROR_NO_STEP, "no_step"},
	{ERROR_BUCKET_OWNED, "bucket_owned"},
	{ERROR_BUCKET_TAKEN, "bucket_taken"},
	{ERROR_BUCKET_NOT_EMPTY, "bucket_not_empty"},
	{ERROR_BUCKET_HAS_RUNS, "bucket_has_runs"},
	{ERROR_BAD_NAME, "bad_name"},
	{ERROR_KEY_TOO_LONG, "key_too_long"},
	{ERROR_METADATA_TOO_LARGE, "metadata_too_large"},
	{ERROR_BAD_DIGEST, "bad_digest"},
	{ERROR_SHA256_MISMATCH, "sha256_mismatch"},
	{ERROR_INCOMPLETE_BODY, "incomplete_body"},
	{ERROR_INVALID_DIGEST, "invalid_digest"},
	{ERROR_LENGTH_REQUIRED, "length_required"},
	{ERROR_BAD_URI, "bad_uri"},
	{ERROR_METHOD, "method"},
	{ERROR_MALFORMED_XML, "malformed_xml"},
	{ERROR_NO_VERSION, "no_version"},
	{ERROR_NO_CREDENTIALS, "no_credentials"},
	{ERROR_UNKNOWN_KEY_ID, "unknown_key_id"},
	{ERROR_SIGNATURE, "signature"},
	{ERROR_SKEW, "skew"},
	{ERROR_AUTH_MALFORMED, "auth_malformed"},
	{ERROR_AUTH_QUERY, "auth_query"},
	{ERROR_CHUNK_SIZE, "chunk_size"},
	{ERROR_MALFORMED_TRAILER, "malformed_trailer"},
	{ERROR_INVALID_REQUEST, "invalid_request"},
	{ERROR_INVALID_TOKEN, "invalid_token"},
	{ERROR_HEADERS_TOO_LARGE, "headers_too_large"},
	{ERROR_HEAD_MOVED, "head_moved"},
	{ERROR_STEP_DIFFERS, "step_differs"},
	{ERROR_BASE_MISSING, "base_missing"},
	{ERROR_STALE_EPOCH, "stale_epoch"},
	{ERROR_SCHEMA_MISMATCH, "schema_mismatch"},
	{ERROR_INCOMPLETE_ANCHOR, "incomplete_anchor"},
	{ERROR_DIGEST_MISMATCH, "digest_mismatch"},
	{ERROR_COLLECTED, "collected"},
	{ERROR_NOT_READY, "not_ready"},
	{ERROR_CHAIN_IN_USE, "chain_in_use"},
	{ERROR_STEP_FAILED, "step_failed"},
	{ERROR_PARTS_MISMATCH, "parts_mismatch"},
	{ERROR_WRONG_BASE, "wrong_base"},
	{ERROR_NO_PART, "no_part"},
	{ERROR_BAD_TAG, "bad_tag"},
	{ERROR_TOO_MANY_TAGS, "too_many_tags"},
	{ERROR_NO_UPLOAD, "no_upload"},
	{ERROR_INVALID_PART, "invalid_part"},
	{ERROR_PART_ORDER, "part_order"},
	{ERROR_PART_TOO_SMALL, "part_too_small"},
	{ERROR_SNAPSHOT_FORMAT, "snapshot_format"},
	{ERROR_DAMAGED, "damaged"},
	{ERROR_READ_ONLY, "read_only"},
	{ERROR_CONTENT_DAMAGED, "content_damaged"},
	{ERROR_UNTRUSTED, "untrusted"},
};

enum {
	KIND_COUNT = 1
#define ERROR_KIND(name, number, meaning) +1
#include "base/error.def"
#undef ERROR_KIND
};
_Static_assert(sizeof(kind_names) / sizeof(kind_names[0]) == KIND_COUNT,
	"every row of error.def has its lower-case name");

const char *error_kind_name(enum error_kind kind)
{
	for (size_t i = 0; i < KIND_COUNT; i++)
		if (kind_names[i].kind == kind)
			return kind_names[i].name;
	return "unknown";
}

void error_assert_failed(const char *condition, const char *file, int line)
{
	fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
	abort();
}
