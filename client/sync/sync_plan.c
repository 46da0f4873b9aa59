/* Both lists are sorted once, by strcmp, so that one merge makes the plan and hashes are added by
 * binary search. The listings come from the server: names, pages and entries are limited, and a
 * page that names no successor although more follow is an error, because `sync --delete` would take
 * the missing names for removed ones. */
#include "client/sync/sync_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/remote/remote_hub.h"

enum { PAGE_ARENA_BYTES = 32 * 1024 * 1024 };

struct hub_lister {
	struct sync_list *list;
	struct span folder; /* with a slash at its end, or empty */
};

static bool is_part(const char *name);
static int add_entry(struct sync_list *list, struct span name, uint64_t size, struct error *err);
static int add_page(
	struct sync_list *list, const struct listing *page, struct span prefix, struct error *err);
static int by_name(const void *left, const void *right);
static int sync_plan_add_hash(void *owner, const struct hub_file *file, struct error *err);
static const struct chunk_id *hash_of(const struct sync_entry *entry);

void sync_list_release(struct sync_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->entries[i].name);
	free(list->entries);
	*list = (struct sync_list){0};
}

int sync_list_folder(
	const char *folder, bool follows_links, struct sync_list *out, struct error *err)
{
	struct folder_files files;
	*out = (struct sync_list){0};
	const int listed =
		(follows_links ? folder_files_read_linked : folder_files_read_most)(
			folder, SYNC_ENTRIES_MAX, &files, err);
	if (listed != 0)
		return -1;
	int result = 0;
	for (size_t i = 0; i < files.count && result == 0; i++)
		if (!is_part(files.files[i].name))
			result = add_entry(
				out, span_text(files.files[i].name), files.files[i].size, err);
	folder_files_release(&files);
	return result;
}

int sync_list_prefix(struct remote *remote, struct span bucket, struct span prefix,
	struct sync_list *out, struct error *err)
{
	struct buffer token;
	int result = 0;
	bool more = true;
	int pages = 0;
	*out = (struct sync_list){0};
	buffer_init(&token, REMOTE_LIST_TOKEN_MAX_BYTES);
	while (result == 0 && more) {
		const struct remote_object_page page = {
			.bucket = bucket, .prefix = prefix, .token = buffer_span(&token)};
		struct arena *const arena = arena_new(PAGE_ARENA_BYTES);
		struct listing listing = {0};
		result = remote_object_list(remote, &page, arena, &listing, err);
		if (result == 0)
			result = add_page(out, &listing, prefix, err);
		more = listing.truncated;
		if (result == 0 && more &&
			(listing.next.len == 0 || span_equal(listing.next, buffer_span(&token))))
			result = error_set(err, ERROR_UPSTREAM,
				"the server's listing is incomplete: it does not say where it continues");
		if (result == 0 && ++pages == REMOTE_HUB_PAGES_MAX)
			result = error_set(err, ERROR_UPSTREAM,
				"the server's listing has over %d pages", REMOTE_HUB_PAGES_MAX);
		buffer_reset(&token);
		buffer_add_span(&token, listing.next);
		if (result == 0)
			result = buffer_check(&token, "the token of a listing's next page", err);
		arena_free(arena);
	}
	buffer_release(&token);
	if (out->count > 0)
		qsort(out->entries, out->count, sizeof(*out->entries), by_name);
	return result;
}

int sync_list_add_hashes(struct remote *remote, struct span bucket, struct span prefix,
	struct sync_list *list, struct error *err)
{
	struct hub_lister lister = {.list = list, .folder = prefix};
	return list->count == 0
		? 0
		: remote_hub_list(remote, bucket, prefix, sync_plan_add_hash, &lister, err);
}

void sync_plan_make(
	const struct sync_list *source, const struct sync_list *target, struct sync_plan *out)
{
	size_t s = 0;
	size_t t = 0;
	*out = (struct sync_plan){
		.items = memory_new_array(source->count + target->count + 1, sizeof(*out->items))};
	while (s < source->count || t < target->count) {
		const int order = s == source->count ? 1
			: t == target->count
			? -1
			: strcmp(source->entries[s].name, target->entries[t].name);
		ASSERT(out->count < source->count + target->count);
		struct sync_item *const item = &out->items[out->count++];
		const struct sync_entry *const entry =
			order <= 0 ? &source->entries[s] : &target->entries[t];
		*item = (struct sync_item){.name = entry->name,
			.size = entry->size,
			.state = order < 0 ? SYNC_NEW : SYNC_GONE};
		item->hash = hash_of(entry);
		if (order == 0 && item->hash == NULL)
			item->hash = hash_of(&target->entries[t]);
		if (order == 0)
			item->state =
				entry->size == target->entries[t].size ? SYNC_MAYBE : SYNC_DIFFERS;
		s += order <= 0 ? 1 : 0;
		t += order >= 0 ? 1 : 0;
	}
}

void sync_plan_release(struct sync_plan *plan)
{
	free(plan->items);
	*plan = (struct sync_plan){0};
}

bool sync_plan_is_path(const char *name)
{
	struct span rest = span_text(name);
	struct span segment;
	if (rest.len == 0 || rest.data[rest.len - 1] == '/')
		return false;
	while (span_split(&rest, '/', &segment))
		if (segment.len == 0 || segment.len > 255 || span_equal_text(segment, ".") ||
			span_equal_text(segment, ".."))
			return false;
	return !is_part(name);
}

static bool is_part(const char *name)
{
	const char *const found = strstr(name, SYNC_PART_SUFFIX);
	return found != NULL &&
		(strcmp(found, SYNC_PART_SUFFIX) == 0 ||
			strcmp(found, SYNC_PART_SUFFIX ".journal") == 0 ||
			strcmp(found, SYNC_PART_SUFFIX ".chunks") == 0);
}

static int add_entry(struct sync_list *list, struct span name, uint64_t size, struct error *err)
{
	if (name.len > SYNC_NAME_MAX_BYTES)
		return error_set(
			err, ERROR_UPSTREAM, "a name has over %d bytes", SYNC_NAME_MAX_BYTES);
	if (list->count == SYNC_ENTRIES_MAX)
		return error_set(err, ERROR_TOO_LARGE, "there are over %d files", SYNC_ENTRIES_MAX);
	char *const copy = memory_new(name.len + 1);
	memcpy(copy, name.data, name.len);
	if ((list->count & (list->count - 1)) == 0) /* the room doubles at each power of two */
		list->entries = memory_grow(list->entries, list->count == 0 ? 1 : 2 * list->count,
			sizeof(*list->entries));
	list->entries[list->count++] = (struct sync_entry){.name = copy, .size = size};
	return 0;
}

static int add_page(
	struct sync_list *list, const struct listing *page, struct span prefix, struct error *err)
{
	for (size_t i = 0; i < page->count; i++) {
		const struct listing_entry *const entry = &page->entries[i];
		if (entry->is_prefix || entry->name.len <= prefix.len ||
			entry->name.data[entry->name.len - 1] == '/')
			continue;
		if (span_find(entry->name, 0) >= 0)
			return error_set(
				err, ERROR_UPSTREAM, "the server lists a key with a NUL in it");
		if (add_entry(list,
			    span_slice(entry->name, prefix.len, entry->name.len - prefix.len),
			    entry->size, err) != 0)
			return -1;
	}
	return 0;
}

static int by_name(const void *left, const void *right)
{
	const struct sync_entry *const a = left;
	const struct sync_entry *const b = right;
	return strcmp(a->name, b->name);
}

/* Ignores a file of another size: the object changed between the two listings. */
static int sync_plan_add_hash(void *owner, const struct hub_file *file, struct error *err)
{
	const struct hub_lister *const lister = owner;
	(void)err;
	if (!span_starts(file->key, lister->folder) || file->key.len == lister->folder.len ||
		span_find(file->key, 0) >= 0)
		return 0;
	const struct span name = span_slice(file->key, lister->folder.len, file->key.len);
	char *const text = memory_new(name.len + 1);
	memcpy(text, name.data, name.len);
	const struct sync_entry wanted = {.name = text};
	struct sync_entry *const entry = lister->list->count == 0
		? NULL
		: bsearch(&wanted, lister->list->entries, lister->list->count, sizeof(wanted),
			  by_name);
	free(text);
	if (entry != NULL && entry->size == file->size) {
		entry->has_hash = true;
		entry->hash = file->hash;
	}
	return 0;
}

static const struct chunk_id *hash_of(const struct sync_entry *entry)
{
	return entry->has_hash ? &entry->hash : NULL;
}
