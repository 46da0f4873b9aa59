/* A manifest has a digest and the name of its moment, so one that can be read is right. */
#include "storage/backup/backup_about.h"

#include <stdio.h>
#include <string.h>

#include "base/encode.h"

enum { ABOUT_MAX_BYTES = 1024 };

static const char TITLE[] = "deltabucket backup 1\n";
static const char SEALED[] = "age-encryption.org/v1";

static void print_about(const struct backup_vault *vault, struct buffer *out);
static int parse_about(struct backup_vault *vault, struct span text, struct error *err);
static int prove_all(const struct backup_moments *moments, struct backup_vault *vault,
	const struct backup_vault *expected, struct error *err);
static int read_witness(
	struct backup_vault *seen, const struct backup_moment *moment, struct error *err);
static int parse_witness(struct backup_vault *seen, const struct backup_moment *moment,
	struct span text, struct error *err);
static int open_witness(
	struct backup_vault *seen, struct span sealed, struct buffer *out, struct error *err);
static bool is_damage(const struct error *err);

int backup_about_read(struct backup_vault *vault, struct error *err)
{
	struct buffer text;
	buffer_init(&text, ABOUT_MAX_BYTES);
	int result = vault->target->ops->get(vault->target, BACKUP_ABOUT, &text, err);
	if (result == 0)
		result = parse_about(vault, buffer_span(&text), err);
	else if (err->kind == ERROR_TOO_LARGE)
		result = error_set(err, ERROR_CORRUPT, "%s is damaged.", BACKUP_ABOUT);
	buffer_release(&text);
	return result;
}

int backup_about_put(const struct backup_vault *vault, struct error *err)
{
	struct backup_target *target = vault->target;
	struct buffer about;
	buffer_init(&about, ABOUT_MAX_BYTES);
	print_about(vault, &about);
	const int result = target->ops->put(target, BACKUP_ABOUT, buffer_span(&about), err);
	buffer_release(&about);
	return result;
}

int backup_about_prove(
	struct backup_vault *vault, const struct backup_vault *expected, struct error *err)
{
	struct backup_moments moments;
	if (backup_moments_list(vault->target, &moments, err) != 0)
		return -1;
	const int result = prove_all(&moments, vault, expected, err);
	backup_moments_release(&moments);
	return result;
}

static void print_about(const struct backup_vault *vault, struct buffer *out)
{
	char store[2 * BACKUP_STORE_BYTES + 1];
	char recipient[AGE_RECIPIENT_BYTES] = "none";
	encode_hex(span_of(vault->store, sizeof(vault->store)), store);
	if (vault->is_sealed)
		age_recipient_print(&vault->recipient, recipient);
	buffer_format(out, "%sstore %s\nrecipient %s\n", TITLE, store, recipient);
}

static int parse_about(struct backup_vault *vault, struct span text, struct error *err)
{
	struct span lines = span_slice(text, sizeof(TITLE) - 1, text.len);
	struct span word;
	struct span store;
	struct span recipient;
	struct error ignored;
	if (!span_starts(text, span_text(TITLE)) || !span_split(&lines, ' ', &word) ||
		!span_split(&lines, '\n', &store) ||
		!decode_hex(store, vault->store, sizeof(vault->store)) ||
		!span_split(&lines, ' ', &word) || !span_split(&lines, '\n', &recipient))
		return error_set(err, ERROR_CORRUPT,
			"%s is damaged, or a newer deltabucketd made it.", BACKUP_ABOUT);
	vault->is_sealed = !span_equal_text(recipient, "none");
	if (vault->is_sealed && age_recipient_parse(recipient, &vault->recipient, &ignored) != 0)
		return error_set(
			err, ERROR_CORRUPT, "%s is damaged: it names no public key.", BACKUP_ABOUT);
	return 0;
}

/* The newest one first: it is the one that is read anyway. */
static int prove_all(const struct backup_moments *moments, struct backup_vault *vault,
	const struct backup_vault *expected, struct error *err)
{
	size_t count = 0;
	error_set(err, ERROR_NOT_FOUND, "There is no moment.");
	for (size_t i = moments->count; i-- > 0;) {
		struct backup_vault seen = {
			.target = vault->target, .identities = vault->identities};
		struct error why = {0};
		if (read_witness(&seen, &moments->items[i], &why) != 0) {
			*err = why;
			if (is_damage(&why))
				continue;
			return -1;
		}
		if (count > 0 && memcmp(seen.store, vault->store, sizeof(seen.store)) != 0)
			return error_set(err, ERROR_CORRUPT,
				"The manifests there are of more than one store.");
		if (count++ == 0)
			*vault = seen;
		if (expected != NULL &&
			memcmp(seen.store, expected->store, sizeof(seen.store)) == 0)
			return 0;
	}
	return count > 0 ? 0 : -1;
}

static int read_witness(
	struct backup_vault *seen, const struct backup_moment *moment, struct error *err)
{
	char name[BACKUP_NAME_BYTES];
	struct buffer bytes;
	struct buffer opened;
	backup_moment_name(moment, name);
	buffer_init(&bytes, (size_t)age_sealed_bytes(BACKUP_OBJECT_MAX_BYTES));
	buffer_init(&opened, BACKUP_OBJECT_MAX_BYTES);
	int result = seen->target->ops->get(seen->target, name, &bytes, err);
	seen->is_sealed = result == 0 && span_starts(buffer_span(&bytes), span_text(SEALED));
	if (result == 0 && seen->is_sealed)
		result = open_witness(seen, buffer_span(&bytes), &opened, err);
	if (result == 0)
		result = parse_witness(
			seen, moment, buffer_span(seen->is_sealed ? &opened : &bytes), err);
	buffer_release(&bytes);
	buffer_release(&opened);
	return result == 0 ? 0 : error_wrap(err, "%s", name);
}

static int parse_witness(struct backup_vault *seen, const struct backup_moment *moment,
	struct span text, struct error *err)
{
	struct backup_manifest manifest;
	int result = backup_manifest_parse(text, &manifest, err);
	if (result == 0 && backup_moment_compare(moment, &manifest.moment) != 0)
		result = error_set(err, ERROR_CORRUPT, "It is the manifest of another moment.");
	memcpy(seen->store, manifest.store, sizeof(seen->store));
	backup_manifest_release(&manifest);
	return result;
}

/* One identity at a time: the one that opens it is the one that it was encrypted to. */
static int open_witness(
	struct backup_vault *seen, struct span sealed, struct buffer *out, struct error *err)
{
	error_set(err, ERROR_DENIED,
		"It is encrypted; name the file with its secret key with --identity.");
	for (size_t i = 0; seen->identities != NULL && i < seen->identities->count; i++) {
		struct age_identities one = {.count = 1};
		memcpy(one.keys[0], seen->identities->keys[i], AGE_KEY_BYTES);
		const int result = age_open(&one, sealed, out, err);
		age_identity_recipient(&one, 0, &seen->recipient);
		age_identities_wipe(&one);
		if (result == 0)
			return 0;
	}
	return -1;
}

/* Of one manifest, which says nothing of the others. */
static bool is_damage(const struct error *err)
{
	return err->kind == ERROR_CORRUPT || err->kind == ERROR_NOT_FOUND ||
		err->kind == ERROR_TOO_LARGE;
}
