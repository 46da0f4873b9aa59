/* `work` has a folder for each link. Its name has the link's step, kind, base step and digest, so
 * that two different links never share a folder:
 *
 *   <link>/files/...   the link's objects by name; each is moved here once it is proven
 *   <link>/parts/N     object N while it is downloaded, with its journal */
#include "client/transfer/path_fetch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "client/local/folder_files.h"

enum { LINK_NAME_BYTES = 96, URL_MAX_BYTES = 8192 };

struct downloads {
	struct transfer_download *files;
	size_t count;
	uint64_t bytes;
};

static const char *skip_digits(const char *text);
static char *link_path(const char *work, const struct path_link *link, const char *below);
static void link_name(const struct path_link *link, char out[LINK_NAME_BYTES]);
static int add_download(struct downloads *downloads, const struct path_fetch *fetch,
	const struct path_link *link, size_t index, struct error *err);
static void downloads_release(struct downloads *downloads);

bool path_fetch_owns(const char *name)
{
	static const enum step_form_kind KINDS[] = {STEP_ANCHOR, STEP_DELTA};
	const char *const kind = skip_digits(name);
	for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); i++) {
		char middle[32];
		const int length =
			snprintf(middle, sizeof(middle), "-%s-", step_form_kind_name(KINDS[i]));
		if (kind == name || strncmp(kind, middle, (size_t)length) != 0)
			continue;
		const char *const from = kind + length;
		const char *const digest = skip_digits(from);
		return digest > from && *digest == '-' &&
			strspn(digest + 1, "0123456789abcdef") == 12 && digest[13] == '\0';
	}
	return false;
}

char *path_fetch_files(const char *work, const struct path_link *link)
{
	return link_path(work, link, "files");
}

int path_fetch_clean(const struct file_ops *files, const char *work,
	const struct path_message *path, struct error *err)
{
	char **names;
	size_t count;
	if (file_make_folder(files, work, 0755, err) != 0 ||
		file_list(work, &names, &count, err) != 0)
		return -1;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++) {
		bool wanted = false;
		for (size_t k = 0; k < path->link_count && !wanted; k++) {
			char name[LINK_NAME_BYTES];
			link_name(&path->links[k], name);
			wanted = strcmp(name, names[i]) == 0;
		}
		char *const leftover = folder_files_join(work, names[i]);
		if (!wanted)
			result = file_remove_tree(files, leftover, err);
		free(leftover);
	}
	file_names_free(names, count);
	return result;
}

int path_fetch_drop(const struct file_ops *files, const char *work, const struct path_message *path,
	struct error *err)
{
	int result = 0;
	for (size_t i = 0; i < path->link_count && result == 0; i++) {
		char *const folder = link_path(work, &path->links[i], NULL);
		result = file_remove_tree(files, folder, err);
		free(folder);
	}
	return result;
}

int path_fetch_all(const struct path_fetch *fetch, uint64_t *out_bytes, struct error *err)
{
	struct downloads downloads = {0};
	struct transfer_options transfer = fetch->transfer;
	char what[64];
	int result = file_make_folder(transfer.files, fetch->work, 0755, err);
	for (size_t i = 0; i < fetch->path->link_count && result == 0; i++) {
		const struct path_link *const link = &fetch->path->links[i];
		for (size_t k = 0; k < link->form.object_count && result == 0; k++)
			result = add_download(&downloads, fetch, link, k, err);
	}
	if (result == 0) {
		snprintf(what, sizeof(what), "fetching step %" PRIu64, fetch->path->to_step);
		transfer.progress = progress_new(what, downloads.bytes, fetch->progress_sink);
		result = transfer_download(&transfer, downloads.files, downloads.count, err);
		progress_free(transfer.progress);
	}
	*out_bytes = downloads.bytes;
	downloads_release(&downloads);
	return result;
}

static const char *skip_digits(const char *text)
{
	return text + strspn(text, "0123456789");
}

static char *link_path(const char *work, const struct path_link *link, const char *below)
{
	char name[LINK_NAME_BYTES];
	link_name(link, name);
	char *const folder = folder_files_join(work, name);
	char *const path =
		below == NULL ? memory_copy_text(folder) : folder_files_join(folder, below);
	free(folder);
	return path;
}

static void link_name(const struct path_link *link, char out[LINK_NAME_BYTES])
{
	char digest[DIGEST128_TEXT_BYTES];
	digest128_format(&link->digest, digest);
	snprintf(out, LINK_NAME_BYTES, "%06" PRIu64 "-%s-%06" PRIu64 "-%.12s", link->step,
		step_form_kind_name(link->form.kind), link->from, digest + strlen("xxh3-128:"));
}

static int add_download(struct downloads *downloads, const struct path_fetch *fetch,
	const struct path_link *link, size_t index, struct error *err)
{
	ASSERT(index < link->form.object_count);
	const struct step_object *const object = &link->form.objects[index];
	if (object->url.len == 0 || object->url.len > URL_MAX_BYTES || object->url.data[0] == '/')
		return error_set(err, ERROR_UPSTREAM,
			"the server's path gives no usable URL for an object of step %" PRIu64,
			link->step);
	char *const files = path_fetch_files(fetch->work, link);
	char *const parts = link_path(fetch->work, link, "parts");
	char *const name = memory_new(object->name.len + 1);
	memcpy(name, object->name.data, object->name.len);
	char *const url = memory_new(object->url.len + 1);
	memcpy(url, object->url.data, object->url.len);
	char part[32];
	snprintf(part, sizeof(part), "%zu", index);
	downloads->files =
		memory_grow(downloads->files, downloads->count + 1, sizeof(*downloads->files));
	struct transfer_download *const download = &downloads->files[downloads->count++];
	*download = (struct transfer_download){
		.target = folder_files_join(fetch->run->target, url),
		.size = object->size,
		.has_digest = true,
		.digest = object->digest,
		.path = folder_files_join(files, name),
		.part_path = folder_files_join(parts, part),
	};
	downloads->bytes += object->size;
	free(url);
	free(name);
	int result = file_make_folder(fetch->transfer.files, parts, 0755, err);
	if (result == 0)
		result = file_make_parent(fetch->transfer.files, download->path, 0755, err);
	free(parts);
	free(files);
	return result;
}

static void downloads_release(struct downloads *downloads)
{
	for (size_t i = 0; i < downloads->count; i++) {
		free((char *)downloads->files[i].target);
		free((char *)downloads->files[i].path);
		free((char *)downloads->files[i].part_path);
	}
	free(downloads->files);
}
