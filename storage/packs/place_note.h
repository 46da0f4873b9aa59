/* DIR/packs.place: where the packs of a store lie that does not keep them in DIR/packs, so that
 * nobody takes the folder for all there is. One line of text; derived from the settings. One
 * thread. */
#ifndef STORAGE_PACKS_PLACE_NOTE_H
#define STORAGE_PACKS_PLACE_NOTE_H

#include "base/file.h"

/* For a store whose packs lie at `place`; durable when it returns. invalid when its packs lie in
 * the folder, or at another place: a store that was started with the wrong place would write there
 * what the right one then lacks. `files` NULL: the real ones. */
int place_note_set(
	const struct file_ops *files, const char *folder, const char *place, struct error *err);
/* Before DIR/packs is used: invalid, with the place, when the packs lie elsewhere. */
int place_note_check(const char *folder, struct error *err);

#endif
