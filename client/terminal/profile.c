/* Reading and rewriting share one pass over the lines. Reading checks every line, also of profiles
 * that are not wanted, so that a mistake is found at once. Rewriting copies every line except the
 * values of the wanted profile, so that comments and other profiles survive; the new values go
 * below the profile's header (those of `default` to the top), and a new profile goes to the end.
 * The file is replaced as a whole, so that a crash leaves the old or the new one. */
#include "client/terminal/profile.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"

enum { FILE_MAX_BYTES = 256 * 1024, NAME_MAX_BYTES = 64 };
static const char DEFAULT_NAME[] = "default";

/* One pass over the file. */
struct reading {
	const char *path;
	const char *wanted; /* the name of the profile to read or change */
	struct span rest;
	struct span line; /* the current line, without its end */
	unsigned number;  /* of the current line, from 1 */
	bool is_ours;     /* the current line belongs to the wanted profile */
	bool is_header;
	bool found; /* the wanted profile, so far */
};

static int read_text(const char *path, struct buffer *out, struct error *err);
static void begin(struct reading *reading, const char *path, const char *name, struct span text);
static bool next_line(struct reading *reading);
static int take_line(const struct reading *reading, struct profile *out, struct error *err);
static char **split_line(
	struct span line, struct profile *profile, struct span *out_key, struct span *out_value);
static char **find_member(struct profile *profile, struct span key);
static int change(const struct file_ops *files, const char *path, const char *name,
	const struct profile *profile, struct error *err);
static void rewrite(struct reading *reading, const struct profile *profile, struct buffer *out);
static void add_lines(struct buffer *out, const struct profile *profile);

int profile_check_name(const char *name, struct error *err)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	const size_t len = strlen(name);
	if (len == 0 || len > NAME_MAX_BYTES || strspn(name, letters) != len || name[0] == '.')
		return error_set(err, ERROR_INVALID,
			"\"%.80s\" is not a profile name: a name has up to %d of A-Z a-z 0-9 . _ - and does not begin with .",
			name, NAME_MAX_BYTES);
	return 0;
}

int profile_read(const char *path, const char *name, struct profile *out, struct error *err)
{
	struct buffer text;
	struct reading reading;
	*out = (struct profile){0};
	int result = read_text(path, &text, err);
	begin(&reading, path, name, buffer_span(&text));
	while (result == 0 && next_line(&reading))
		result = take_line(&reading, out, err);
	buffer_release(&text);
	if (result != 0)
		profile_release(out);
	return result != 0 ? -1 : reading.found;
}

bool profile_is_exposed(const char *path)
{
	struct stat facts;
	return stat(path, &facts) == 0 && (facts.st_mode & (S_IRGRP | S_IROTH)) != 0;
}

int profile_write(const struct file_ops *files, const char *path, const char *name,
	const struct profile *profile, struct error *err)
{
	return change(files, path, name, profile, err);
}

int profile_remove(
	const struct file_ops *files, const char *path, const char *name, struct error *err)
{
	struct profile there;
	int result = profile_read(path, name, &there, err);
	const bool is_there =
		result > 0 && (there.endpoint != NULL || there.token != NULL || there.ca != NULL);
	profile_release(&there);
	if (result < 0)
		return -1;
	return is_there ? change(files, path, name, NULL, err) == 0 ? 1 : -1 : 0;
}

void profile_release(struct profile *profile)
{
	if (profile->token != NULL)
		explicit_bzero(profile->token, strlen(profile->token));
	free(profile->endpoint);
	free(profile->token);
	free(profile->ca);
	*profile = (struct profile){0};
}

static int read_text(const char *path, struct buffer *out, struct error *err)
{
	buffer_init(out, FILE_MAX_BYTES);
	return file_exists(path) ? file_read_all(path, out, err) : 0;
}

static void begin(struct reading *reading, const char *path, const char *name, struct span text)
{
	*reading = (struct reading){
		.path = path, .wanted = name == NULL ? DEFAULT_NAME : name, .rest = text};
	reading->is_ours = strcmp(reading->wanted, DEFAULT_NAME) == 0;
	reading->found = reading->is_ours;
}

static bool next_line(struct reading *reading)
{
	if (reading->rest.len == 0 || !span_split(&reading->rest, '\n', &reading->line))
		return false;
	if (reading->line.len > 0 && reading->line.data[reading->line.len - 1] == '\r')
		reading->line.len--;
	reading->number++;
	const struct span text = span_trim(reading->line);
	reading->is_header = text.len > 1 && text.data[0] == '[' && text.data[text.len - 1] == ']';
	if (reading->is_header) {
		reading->is_ours = span_equal_text(
			span_trim(span_slice(text, 1, text.len - 2)), reading->wanted);
		reading->found = reading->found || reading->is_ours;
	}
	return true;
}

static int take_line(const struct reading *reading, struct profile *out, struct error *err)
{
	struct profile other = {0};
	struct span key = {0};
	struct span value = {0};
	const struct span text = span_trim(reading->line);
	if (text.len == 0 || text.data[0] == '#' || reading->is_header)
		return 0;
	char **const member = split_line(text, reading->is_ours ? out : &other, &key, &value);
	if (key.data == NULL)
		return error_set(err, ERROR_INVALID,
			"%s, line %u: this is not a `key = value` line", reading->path,
			reading->number);
	if (member == NULL)
		return error_set(err, ERROR_INVALID,
			"%s, line %u: there is no key \"%.*s\"; the keys are endpoint, token and ca",
			reading->path, reading->number, (int)span_slice(key, 0, 60).len,
			(const char *)key.data);
	if (value.len == 0)
		return error_set(err, ERROR_INVALID, "%s, line %u: %.*s has no value",
			reading->path, reading->number, (int)key.len, (const char *)key.data);
	if (reading->is_ours && *member == NULL) {
		*member = memory_new(value.len + 1);
		memcpy(*member, value.data, value.len);
	}
	return 0;
}

/* The member that the line sets, and its value. NULL when it sets none; then *out_key has the key
 * if the line has one. */
static char **split_line(
	struct span line, struct profile *profile, struct span *out_key, struct span *out_value)
{
	struct span rest = span_trim(line);
	if (rest.len == 0 || rest.data[0] == '#' || span_find(rest, '=') < 0 ||
		!span_split(&rest, '=', out_key))
		return NULL;
	*out_key = span_trim(*out_key);
	*out_value = span_trim(rest);
	return find_member(profile, *out_key);
}

/* The member for the key; NULL when there is no such key. */
static char **find_member(struct profile *profile, struct span key)
{
	const struct {
		const char *key;
		char **value;
	} members[] = {
		{"endpoint", &profile->endpoint}, {"token", &profile->token}, {"ca", &profile->ca}};
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (span_equal_text(key, members[i].key))
			return members[i].value;
	return NULL;
}

static int change(const struct file_ops *files, const char *path, const char *name,
	const struct profile *profile, struct error *err)
{
	struct buffer text;
	struct buffer changed;
	struct reading reading;
	buffer_init(&changed, FILE_MAX_BYTES);
	int result = read_text(path, &text, err);
	begin(&reading, path, name, buffer_span(&text));
	rewrite(&reading, profile, &changed);
	if (result == 0)
		result = buffer_check(&changed, path, err);
	if (result == 0)
		result = file_make_parent(files, path, 0755, err);
	if (result == 0)
		result = file_publish(files, path, buffer_span(&changed), 0600, err);
	buffer_release(&changed);
	buffer_release(&text);
	return result;
}

/* The text with the values of the wanted profile replaced. With `profile` NULL they are removed,
 * and the profile's header too. */
static void rewrite(struct reading *reading, const struct profile *profile, struct buffer *out)
{
	struct profile ignored = {0};
	struct span key;
	struct span value;
	ASSERT(reading->number == 0);            /* a fresh pass */
	if (reading->is_ours && profile != NULL) /* `default`: it has no header */
		add_lines(out, profile);
	while (next_line(reading)) {
		const bool is_own_header = reading->is_ours && reading->is_header;
		const bool is_own_value = reading->is_ours && !reading->is_header &&
			split_line(reading->line, &ignored, &key, &value) != NULL;
		if (is_own_value || (is_own_header && profile == NULL))
			continue;
		buffer_add_span(out, reading->line);
		buffer_add_byte(out, '\n');
		if (is_own_header) /* then `profile` is not NULL */
			add_lines(out, profile);
	}
	if (reading->found || profile == NULL)
		return;
	buffer_format(out, "%s[%s]\n", out->len > 0 ? "\n" : "", reading->wanted);
	add_lines(out, profile);
}

static void add_lines(struct buffer *out, const struct profile *profile)
{
	ASSERT(profile != NULL);
	if (profile->endpoint != NULL)
		buffer_format(out, "endpoint = %s\n", profile->endpoint);
	if (profile->token != NULL)
		buffer_format(out, "token = %s\n", profile->token);
	if (profile->ca != NULL)
		buffer_format(out, "ca = %s\n", profile->ca);
}
