/* A balanced tree (tsearch) of files, each with its few pieces. */
#include "storage/backup/backup_known.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct known_piece {
	struct backup_piece piece;
	bool is_there;
	bool is_needed;
};
struct known_file {
	char key[BACKUP_KEY_BYTES]; /* first */
	struct known_piece *pieces;
	size_t count;
	size_t capacity;
};
struct backup_known {
	void *files; /* the root of the tree */
};

static int backup_known_compare(const void *a, const void *b);
static void backup_known_free_file(void *node);
static void backup_known_doubt_file(const void *node, VISIT visit, void *ignored);
static void backup_known_count_file(const void *node, VISIT visit, void *count);
static struct known_file *find_file(const struct backup_known *known, const char *key);
static struct known_file *make_file(struct backup_known *known, const char *key);
static struct known_piece *find_piece(
	const struct known_file *file, const struct backup_piece *piece);
static struct known_piece *make_piece(struct known_file *file, const struct backup_piece *piece);
static const struct backup_piece *find_next(
	const struct known_file *known, const struct backup_file *file);

struct backup_known *backup_known_new(void)
{
	return memory_new(sizeof(struct backup_known));
}

void backup_known_free(struct backup_known *known)
{
	if (known == NULL)
		return;
	tdestroy(known->files, backup_known_free_file);
	free(known);
}

void backup_known_add(struct backup_known *known, const char *key, const struct backup_piece *piece)
{
	struct known_file *file = make_file(known, key);
	if (find_piece(file, piece) == NULL)
		make_piece(file, piece);
}

void backup_known_add_all(struct backup_known *known, const struct backup_manifest *manifest)
{
	for (size_t i = 0; i < manifest->count; i++)
		for (size_t j = 0; j < manifest->files[i].count; j++)
			backup_known_add(
				known, manifest->files[i].key, &manifest->files[i].pieces[j]);
}

void backup_known_need_all(struct backup_known *known, const struct backup_manifest *manifest)
{
	for (size_t i = 0; i < manifest->count; i++)
		for (size_t j = 0; j < manifest->files[i].count; j++) {
			const struct backup_file *file = &manifest->files[i];
			backup_known_add(known, file->key, &file->pieces[j]);
			find_piece(find_file(known, file->key), &file->pieces[j])->is_needed = true;
		}
}

void backup_known_doubt(struct backup_known *known)
{
	twalk_r(known->files, backup_known_doubt_file, NULL);
}

void backup_known_confirm(
	struct backup_known *known, const char *key, const struct backup_piece *piece)
{
	const struct known_file *file = find_file(known, key);
	struct known_piece *found = file != NULL ? find_piece(file, piece) : NULL;
	if (found != NULL)
		found->is_there = true;
}

void backup_known_add_there(
	struct backup_known *known, const char *key, const struct backup_piece *piece)
{
	struct known_file *file = make_file(known, key);
	struct known_piece *found = find_piece(file, piece);
	if (found == NULL)
		found = make_piece(file, piece);
	found->piece = *piece;
	found->is_there = true;
}

void backup_known_drop(
	struct backup_known *known, const char *key, const struct backup_piece *piece)
{
	struct known_file *file = find_file(known, key);
	struct known_piece *found = file != NULL ? find_piece(file, piece) : NULL;
	if (found == NULL)
		return;
	*found = file->pieces[--file->count];
	if (file->count > 0)
		return;
	tdelete(file, &known->files, backup_known_compare);
	backup_known_free_file(file);
}

bool backup_known_has_piece(
	const struct backup_known *known, const char *key, const struct backup_piece *piece)
{
	const struct known_file *file = find_file(known, key);
	return file != NULL && find_piece(file, piece) != NULL;
}

bool backup_known_has(const struct backup_known *known, const char *key)
{
	return find_file(known, key) != NULL;
}

bool backup_known_is_there(
	const struct backup_known *known, const char *key, const struct backup_piece *piece)
{
	const struct known_file *file = find_file(known, key);
	const struct known_piece *found = file != NULL ? find_piece(file, piece) : NULL;
	return found != NULL && found->is_there &&
		memcmp(found->piece.digest, piece->digest, sizeof(piece->digest)) == 0;
}

bool backup_known_next_missing(const struct backup_known *known, const char *key, size_t *at,
	struct backup_piece *out)
{
	const struct known_file *file = find_file(known, key);
	while (file != NULL && *at < file->count) {
		const struct known_piece *piece = &file->pieces[(*at)++];
		*out = piece->piece;
		if (piece->is_needed && !piece->is_there)
			return true;
	}
	return false;
}

uint64_t backup_known_count_missing(const struct backup_known *known)
{
	uint64_t count = 0;
	twalk_r(known->files, backup_known_count_file, &count);
	return count;
}

/* Of those that begin at a byte the longest is taken: fewer are needed. */
void backup_known_fill(const struct backup_known *known, struct backup_file *file)
{
	const struct known_file *found = find_file(known, file->key);
	const struct backup_piece *next;
	while (found != NULL && (next = find_next(found, file)) != NULL)
		backup_file_add(file, next);
}

static int backup_known_compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void backup_known_free_file(void *node)
{
	struct known_file *file = node;
	free(file->pieces);
	free(file);
}

static void backup_known_doubt_file(const void *node, VISIT visit, void *ignored)
{
	struct known_file *file = *(struct known_file *const *)node;
	(void)ignored;
	if (visit == postorder || visit == leaf)
		for (size_t i = 0; i < file->count; i++)
			file->pieces[i].is_there = file->pieces[i].is_needed = false;
}

static void backup_known_count_file(const void *node, VISIT visit, void *count)
{
	const struct known_file *file = *(struct known_file *const *)node;
	if (visit == postorder || visit == leaf)
		for (size_t i = 0; i < file->count; i++)
			*(uint64_t *)count +=
				file->pieces[i].is_needed && !file->pieces[i].is_there;
}

static struct known_file *find_file(const struct backup_known *known, const char *key)
{
	void *const *found = tfind(key, &known->files, backup_known_compare);
	return found != NULL ? *found : NULL;
}

static struct known_file *make_file(struct backup_known *known, const char *key)
{
	struct known_file *file = find_file(known, key);
	if (file != NULL)
		return file;
	file = memory_new(sizeof(*file));
	snprintf(file->key, sizeof(file->key), "%s", key);
	if (tsearch(file, &known->files, backup_known_compare) == NULL)
		abort(); /* no memory */
	return file;
}

static struct known_piece *find_piece(
	const struct known_file *file, const struct backup_piece *piece)
{
	for (size_t i = 0; i < file->count; i++)
		if (file->pieces[i].piece.from == piece->from &&
			file->pieces[i].piece.to == piece->to)
			return &file->pieces[i];
	return NULL;
}

static struct known_piece *make_piece(struct known_file *file, const struct backup_piece *piece)
{
	file->pieces =
		memory_make_room(file->pieces, file->count, &file->capacity, sizeof(*file->pieces));
	file->pieces[file->count] = (struct known_piece){.piece = *piece};
	return &file->pieces[file->count++];
}

static const struct backup_piece *find_next(
	const struct known_file *known, const struct backup_file *file)
{
	const uint64_t at = backup_file_covered(file);
	const struct backup_piece *best = NULL;
	for (size_t i = 0; i < known->count; i++) {
		const struct backup_piece *piece = &known->pieces[i].piece;
		if (known->pieces[i].is_there && piece->from == at && piece->to <= file->length &&
			(best == NULL || piece->to > best->to))
			best = piece;
	}
	return best;
}
