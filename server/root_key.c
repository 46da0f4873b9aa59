/* Without variables of the environment the key is made only if the store has no root key that
 * works. If the catalog is damaged and cannot store the key, the keyring keeps it until the server
 * ends. If the store is read-only, its root key stays as it is. */
#include "server/root_key.h"

#include <string.h>

enum { ROOT_ARENA_BYTES = 64 * 1024 * 1024, SECRET_MIN_BYTES = 8 };

struct part { /* of the root key, as the environment may set it */
	const char *variable;
	bool is_secret;
};
static const struct part parts[] = {{"DELTABUCKET_ROOT_KEY_ID", false},
	{"DELTABUCKET_ROOT_SECRET", true}, {"DELTABUCKET_ROOT_TOKEN", true}};

static const char *find_variable(char *const *environment, const char *name);
static int check_part(const struct part *part, const char *value, struct error *err);
static int has_root(
	struct keyring *keyring, struct arena *arena, bool *out_found, struct error *err);
static int make_root(struct keyring *keyring, const struct keyring_new_key *root,
	const struct start_place *place, struct arena *arena, struct buffer *out_notice,
	struct error *err);
static int use_unstored_root(struct keyring *keyring, const struct keyring_made_key *made,
	struct buffer *out_notice, struct error *err);

int root_key_check(char *const *environment, struct error *err)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const char *const value = find_variable(environment, parts[i].variable);
		if (value != NULL && check_part(&parts[i], value, err) != 0)
			return -1;
	}
	return 0;
}

int root_key_prepare(struct keyring *keyring, const char *namespace, char *const *environment,
	const struct start_place *place, struct buffer *out_notice, struct error *err)
{
	const struct keyring_new_key root = {
		.name = "root",
		.namespace = namespace,
		.is_root = true,
		.id = find_variable(environment, "DELTABUCKET_ROOT_KEY_ID"),
		.secret = find_variable(environment, "DELTABUCKET_ROOT_SECRET"),
		.token = find_variable(environment, "DELTABUCKET_ROOT_TOKEN"),
	};
	struct arena *const arena = arena_new(ROOT_ARENA_BYTES);
	bool found = false;
	int outcome = 0;
	if (root.id == NULL && root.secret == NULL && root.token == NULL)
		outcome = has_root(keyring, arena, &found, err);
	if (outcome == 0 && !found)
		outcome = make_root(keyring, &root, place, arena, out_notice, err);
	arena_free(arena);
	return outcome;
}

static const char *find_variable(char *const *environment, const char *name)
{
	const size_t len = strlen(name);
	for (; *environment != NULL; environment++)
		if (strncmp(*environment, name, len) == 0 && (*environment)[len] == '=' &&
			(*environment)[len + 1] != '\0')
			return *environment + len + 1;
	return NULL;
}

static int check_part(const struct part *part, const char *value, struct error *err)
{
	if (keyring_check_texts(
		    part->is_secret ? NULL : value, part->is_secret ? value : NULL, NULL, err) != 0)
		return error_wrap(err, "environment, %s", part->variable);
	if (part->is_secret && strlen(value) < SECRET_MIN_BYTES)
		return error_set(err, ERROR_INVALID,
			"%s has %zu characters and must have at least %d, because somebody who guesses it may do"
			" everything (`openssl rand -hex 20` makes a good one)",
			part->variable, strlen(value), SECRET_MIN_BYTES);
	return 0;
}

static int has_root(
	struct keyring *keyring, struct arena *arena, bool *out_found, struct error *err)
{
	struct key_record *keys = NULL;
	size_t count = 0;
	if (keyring_list(keyring, arena, &keys, &count, err) != 0)
		return -1;
	*out_found = false;
	for (size_t i = 0; i < count; i++)
		*out_found = *out_found || (keys[i].is_root && !keys[i].is_damaged);
	return 0;
}

static int make_root(struct keyring *keyring, const struct keyring_new_key *root,
	const struct start_place *place, struct arena *arena, struct buffer *out_notice,
	struct error *err)
{
	struct keyring_made_key made;
	const int added = keyring_add(keyring, root, arena, &made, err);
	if (added != 0 && err->kind == ERROR_READ_ONLY) {
		buffer_add_text(
			out_notice, "The store is read-only: its root key stays as it is.\n");
		return 0;
	}
	if (added != 0 &&
		(err->kind != ERROR_DAMAGED ||
			use_unstored_root(keyring, &made, out_notice, err) != 0))
		return error_wrap(err, "cannot make the root key");
	if (root->id == NULL || root->secret == NULL || root->token == NULL)
		start_notice_print(place, root, &made, out_notice);
	return 0;
}

/* For a catalog whose table of keys is damaged. */
static int use_unstored_root(struct keyring *keyring, const struct keyring_made_key *made,
	struct buffer *out_notice, struct error *err)
{
	buffer_format(out_notice,
		"The root key cannot be stored and is valid until the server ends: %s\n",
		err->text);
	return keyring_set_unstored_root(keyring, made, err);
}
