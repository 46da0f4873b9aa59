#include "storage/backup/backup_vault.h"

#include <stdio.h>
#include <string.h>

#include "base/encode.h"

enum { ABOUT_MAX_BYTES = 1024 };

static const char ABOUT[] = "about/store";
static const char TITLE[] = "deltabucket backup 1\n";

static void print_about(const struct backup_vault *vault, struct buffer *out);
static int read_about(struct backup_vault *vault, struct error *err);
static int parse_about(struct backup_vault *vault, struct span text, struct error *err);
static int check_same(
	const struct backup_vault *wanted, const struct backup_vault *found, struct error *err);
static int open_sealed(struct backup_vault *vault, const char *name, struct span sealed,
	struct buffer *out, struct error *err);
static bool has_key(const struct backup_vault *vault);

int backup_vault_begin(struct backup_vault *out, struct backup_target *target,
	const uint8_t store[BACKUP_STORE_BYTES], const struct age_recipient *recipient,
	struct error *err)
{
	struct backup_vault found = {.target = target};
	struct buffer about;
	const struct age_identities *identities = out->identities;
	*out = (struct backup_vault){
		.target = target, .is_sealed = recipient != NULL, .identities = identities};
	memcpy(out->store, store, BACKUP_STORE_BYTES);
	if (recipient != NULL)
		out->recipient = *recipient;
	if (read_about(&found, err) == 0)
		return check_same(out, &found, err);
	if (err->kind != ERROR_NOT_FOUND)
		return -1;
	buffer_init(&about, ABOUT_MAX_BYTES);
	print_about(out, &about);
	const int result = target->ops->put(target, ABOUT, buffer_span(&about), err);
	buffer_release(&about);
	return result;
}

int backup_vault_find(struct backup_vault *out, struct backup_target *target, struct error *err)
{
	const struct age_identities *identities = out->identities;
	*out = (struct backup_vault){.target = target, .identities = identities};
	if (read_about(out, err) == 0)
		return 0;
	return err->kind != ERROR_NOT_FOUND
		? -1
		: error_set(err, ERROR_NOT_FOUND, "There is no backup: the object %s is missing.",
			  ABOUT);
}

int backup_vault_put(
	struct backup_vault *vault, const char *name, struct span bytes, struct error *err)
{
	struct backup_target *target = vault->target;
	struct buffer sealed;
	if (!vault->is_sealed)
		return target->ops->put(target, name, bytes, err);
	buffer_init(&sealed, (size_t)age_sealed_bytes(bytes.len));
	age_seal(&vault->recipient, bytes, &sealed);
	const int result = target->ops->put(target, name, buffer_span(&sealed), err);
	buffer_release(&sealed);
	return result;
}

int backup_vault_get(
	struct backup_vault *vault, const char *name, struct buffer *out, struct error *err)
{
	struct backup_target *target = vault->target;
	struct buffer sealed;
	if (!vault->is_sealed)
		return target->ops->get(target, name, out, err);
	if (vault->identities == NULL)
		return error_set(err, ERROR_DENIED,
			"The backup is encrypted; name the file with its secret key with --identity.");
	buffer_init(&sealed, (size_t)age_sealed_bytes(out->cap));
	int result = target->ops->get(target, name, &sealed, err);
	if (result == 0)
		result = open_sealed(vault, name, buffer_span(&sealed), out, err);
	buffer_release(&sealed);
	return result;
}

int backup_vault_check(const struct backup_vault *vault, struct error *err)
{
	struct backup_vault again = {.target = vault->target};
	return backup_vault_find(&again, vault->target, err);
}

uint64_t backup_vault_bytes(const struct backup_vault *vault, uint64_t plain)
{
	return vault->is_sealed ? age_sealed_bytes(plain) : plain;
}

int backup_vault_manifest(struct backup_vault *vault, const struct backup_moment *moment,
	struct backup_manifest *out, struct error *err)
{
	char name[BACKUP_NAME_BYTES];
	struct buffer text;
	*out = (struct backup_manifest){.count = 0};
	backup_moment_name(moment, name);
	buffer_init(&text, BACKUP_OBJECT_MAX_BYTES);
	int result = backup_vault_get(vault, name, &text, err);
	if (result == 0 && backup_manifest_parse(buffer_span(&text), out, err) != 0)
		result = error_wrap(err, "%s", name);
	if (result == 0 &&
		(backup_moment_compare(moment, &out->moment) != 0 ||
			memcmp(out->store, vault->store, sizeof(out->store)) != 0))
		result = error_set(
			err, ERROR_CORRUPT, "%s is the manifest of another moment.", name);
	buffer_release(&text);
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

static int read_about(struct backup_vault *vault, struct error *err)
{
	struct buffer text;
	buffer_init(&text, ABOUT_MAX_BYTES);
	int result = vault->target->ops->get(vault->target, ABOUT, &text, err);
	if (result == 0)
		result = parse_about(vault, buffer_span(&text), err);
	buffer_release(&text);
	return result;
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
			"%s is damaged, or a newer deltabucketd made it.", ABOUT);
	vault->is_sealed = !span_equal_text(recipient, "none");
	if (vault->is_sealed && age_recipient_parse(recipient, &vault->recipient, &ignored) != 0)
		return error_set(err, ERROR_CORRUPT, "%s names no public key.", ABOUT);
	return 0;
}

static int check_same(
	const struct backup_vault *wanted, const struct backup_vault *found, struct error *err)
{
	char recipient[AGE_RECIPIENT_BYTES];
	if (memcmp(wanted->store, found->store, sizeof(wanted->store)) != 0)
		return error_set(err, ERROR_INVALID,
			"The backups there are of another store; use another folder or prefix.");
	if (found->is_sealed)
		age_recipient_print(&found->recipient, recipient);
	if (found->is_sealed &&
		(!wanted->is_sealed ||
			memcmp(wanted->recipient.key, found->recipient.key, AGE_KEY_BYTES) != 0))
		return error_set(err, ERROR_INVALID,
			"The backups there are encrypted to %s; name it with --recipient, or use another"
			" folder or prefix.",
			recipient);
	return found->is_sealed == wanted->is_sealed
		? 0
		: error_set(err, ERROR_INVALID,
			  "The backups there are not encrypted; use another folder or prefix for those"
			  " that are.");
}

static int open_sealed(struct backup_vault *vault, const char *name, struct span sealed,
	struct buffer *out, struct error *err)
{
	if (age_open(vault->identities, sealed, out, err) == 0)
		return 0;
	if (err->kind == ERROR_DENIED && has_key(vault))
		return error_set(err, ERROR_CORRUPT, "%s is damaged: it does not decrypt.", name);
	return error_wrap(err, "%s", name);
}

/* A bit that is flipped where an object says whom it is for makes it one for somebody else. */
static bool has_key(const struct backup_vault *vault)
{
	for (size_t i = 0; i < vault->identities->count; i++) {
		struct age_recipient own;
		age_identity_recipient(vault->identities, i, &own);
		if (memcmp(own.key, vault->recipient.key, AGE_KEY_BYTES) == 0)
			return true;
	}
	return false;
}
