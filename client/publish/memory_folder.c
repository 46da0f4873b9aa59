#include "client/publish/memory_folder.h"

#include <unistd.h>

#include "base/quantity.h"

static bool has_room(const char *place, uint64_t bytes, struct file_space *out_space);
static int refuse_space(const struct memory_places *places, uint64_t bytes, struct error *err);
static void say_disk(const struct memory_places *places, uint64_t bytes,
	const struct file_space *space, const struct output *output);

int memory_folder_make(struct private_folder *folder, const struct memory_places *places,
	uint64_t bytes, const struct output *output, struct error *err)
{
	const struct file_ops *const files = file_system();
	struct file_space in_memory = {0};
	struct file_space on_disk = {0};
	*folder = (struct private_folder){.lock_fd = -1};
	private_folder_clean(files, places->memory);
	private_folder_clean(files, places->disk);
	if (has_room(places->memory, bytes, &in_memory))
		return private_folder_make(folder, files, places->memory, err);
	if (!has_room(places->disk, bytes, &on_disk))
		return refuse_space(places, bytes, err);
	say_disk(places, bytes, &in_memory, output);
	return private_folder_make(folder, files, places->disk, err);
}

/* *out_space stays zero where there is no such place. */
static bool has_room(const char *place, uint64_t bytes, struct file_space *out_space)
{
	const struct file_ops *const files = file_system();
	return access(place, W_OK | X_OK) == 0 && files->space(files, place, out_space) == 0 &&
		out_space->free >= bytes;
}

static int refuse_space(const struct memory_places *places, uint64_t bytes, struct error *err)
{
	char size[QUANTITY_TEXT_BYTES];
	quantity_format(bytes, size);
	return error_set(err, ERROR_NO_SPACE,
		"the publisher needs %s for the step that it published last, and neither %s nor %s "
		"has so much room; make room, or give it a state folder",
		size, places->memory, places->disk);
}

static void say_disk(const struct memory_places *places, uint64_t bytes,
	const struct file_space *space, const struct output *output)
{
	char needed[QUANTITY_TEXT_BYTES];
	char free_bytes[QUANTITY_TEXT_BYTES];
	quantity_format(bytes, needed);
	quantity_format(space->free, free_bytes);
	output_note(output,
		"%s has %s free and the publisher needs %s: it keeps the step that it published "
		"last in %s, on a disk",
		places->memory, free_bytes, needed, places->disk);
}
