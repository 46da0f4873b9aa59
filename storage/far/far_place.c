#include "storage/far/far_place.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"

enum { KEY_FILE_MAX_BYTES = 4096, PLACE_MAX_BYTES = 700 };

static const char FORM[] = "s3://HOST[:PORT]/BUCKET/PREFIX, or s3+http://... for plain HTTP";

static int split(struct span rest, const char *scheme, struct far_place *place, struct error *err);
static struct span cut_slashes(struct span text);
static char *copy_span(struct span text);
static char *join(const char *front, struct span rest);
static int check_mode(const char *path, struct error *err);
static int read_key_file(struct far_place *place, const char *path, struct error *err);
static void take_line(struct far_place *place, struct span line);
static void wipe(char *text);

int far_place_parse(const char *text, struct far_place *place, struct error *err)
{
	static const struct {
		const char *begin;
		const char *scheme;
	} forms[] = {{"s3://", "https://"}, {"s3+http://", "http://"}};
	*place = (struct far_place){.endpoint = NULL};
	if (strlen(text) > PLACE_MAX_BYTES)
		return error_set(
			err, ERROR_INVALID, "packs must be at most %d bytes long", PLACE_MAX_BYTES);
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		const size_t len = strlen(forms[i].begin);
		if (strncmp(text, forms[i].begin, len) != 0)
			continue;
		if (split(span_text(text + len), forms[i].scheme, place, err) == 0)
			return 0;
		return error_set(err, ERROR_INVALID, "packs must be %s, not '%.200s'", FORM, text);
	}
	return error_set(err, ERROR_INVALID, "packs must be %s, not '%.200s'", FORM, text);
}

static int split(struct span rest, const char *scheme, struct far_place *place, struct error *err)
{
	struct span host;
	struct span bucket = {0};
	if (!span_split(&rest, '/', &host) || host.len == 0 || span_find(host, '@') >= 0 ||
		!span_split(&rest, '/', &bucket) || bucket.len == 0)
		return error_set(err, ERROR_INVALID, "a part is missing");
	for (size_t i = 0; i < host.len; i++)
		if (host.data[i] <= ' ' || strchr("?#\"'<>\\", host.data[i]) != NULL)
			return error_set(err, ERROR_INVALID, "the host is wrong");
	place->endpoint = join(scheme, host);
	place->bucket = copy_span(bucket);
	place->prefix = copy_span(cut_slashes(rest));
	return 0;
}

static struct span cut_slashes(struct span text)
{
	while (text.len > 0 && text.data[0] == '/')
		text = span_slice(text, 1, text.len - 1);
	while (text.len > 0 && text.data[text.len - 1] == '/')
		text.len--;
	return text;
}

static char *copy_span(struct span text)
{
	return join("", text);
}

static char *join(const char *front, struct span rest)
{
	const size_t len = strlen(front);
	char *const text = memory_new(len + rest.len + 1);
	memcpy(text, front, len);
	if (rest.len > 0)
		memcpy(text + len, rest.data, rest.len);
	return text;
}

int far_place_take_key(struct far_place *place, const char *key_file, struct error *err)
{
	const bool has_file = key_file != NULL && key_file[0] != '\0';
	if (has_file && read_key_file(place, key_file, err) != 0)
		return -1;
	if (!has_file) {
		place->key_id = memory_copy_text(getenv("DELTABUCKET_PACKS_KEY_ID"));
		place->secret = memory_copy_text(getenv("DELTABUCKET_PACKS_SECRET"));
	}
	if (place->key_id != NULL && place->secret != NULL)
		return 0;
	if (has_file)
		return error_set(err, ERROR_INVALID,
			"the file %s has no line \"%s = ...\"; it needs key_id and secret",
			key_file, place->key_id == NULL ? "key_id" : "secret");
	return error_set(err, ERROR_INVALID,
		"packs at an S3 store need a key: set packs_key_file, or DELTABUCKET_PACKS_KEY_ID and DELTABUCKET_PACKS_SECRET in the environment");
}

static int read_key_file(struct far_place *place, const char *path, struct error *err)
{
	struct buffer text;
	buffer_init(&text, KEY_FILE_MAX_BYTES);
	text.is_secret = true;
	const int result = check_mode(path, err) != 0 ? -1 : file_read_all(path, &text, err);
	struct span rest = buffer_span(&text);
	struct span line;
	while (result == 0 && span_split(&rest, '\n', &line))
		take_line(place, line);
	buffer_release(&text);
	return result;
}

static int check_mode(const char *path, struct error *err)
{
	struct stat facts;
	if (stat(path, &facts) != 0)
		return error_set_errno(err, "cannot read the key of packs in %s", path);
	if ((facts.st_mode & (S_IRWXO | S_IRWXG)) != 0)
		return error_set(err, ERROR_DENIED,
			"the key of packs in %s is open to others (mode %04o); make it 0600", path,
			facts.st_mode & 07777U);
	return 0;
}

/* `NAME = VALUE`; other lines mean nothing. */
static void take_line(struct far_place *place, struct span line)
{
	struct span name;
	if (line.len > 0 && line.data[line.len - 1] == '\r')
		line.len--;
	if (span_find(line, '=') < 0 || !span_split(&line, '=', &name))
		return;
	const struct span value = span_trim(line);
	char **const into = span_equal_text(span_trim(name), "key_id") ? &place->key_id
		: span_equal_text(span_trim(name), "secret")           ? &place->secret
								       : NULL;
	if (into == NULL || value.len == 0)
		return;
	wipe(*into);
	*into = copy_span(value);
}

static void wipe(char *text)
{
	if (text != NULL)
		explicit_bzero(text, strlen(text));
	free(text);
}

void far_place_release(struct far_place *place)
{
	free(place->endpoint);
	free(place->bucket);
	free(place->prefix);
	wipe(place->key_id);
	wipe(place->secret);
	*place = (struct far_place){.endpoint = NULL};
}
