#include "base/thread/work_notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread/lock.h"

struct work_notes {
	struct lock lock;
	struct work_note notes[WORK_KINDS]; /* guarded by lock */
};

struct work_notes *work_notes_new(void)
{
	struct work_notes *const notes = memory_new(sizeof(*notes));
	lock_init(&notes->lock, LOCK_WORK_NOTES);
	return notes;
}

void work_notes_free(struct work_notes *notes)
{
	if (notes == NULL)
		return;
	lock_release(&notes->lock);
	free(notes);
}

const char *work_kind_name(enum work_kind kind)
{
	static const char *const names[WORK_KINDS] = {[WORK_GC] = "gc",
		[WORK_SCRUB] = "scrub",
		[WORK_PROOF] = "proof",
		[WORK_DERIVE] = "derive",
		[WORK_LIFECYCLE] = "lifecycle",
		[WORK_FILE_HASH] = "file_hash",
		[WORK_JOURNAL] = "journal",
		[WORK_CATALOG_CHECK] = "catalog_check"};
	ASSERT((unsigned)kind < WORK_KINDS);
	return names[kind];
}

const char *work_state_name(enum work_state state)
{
	static const char *const names[] = {
		[WORK_OFF] = "off", [WORK_RESTING] = "resting", [WORK_WORKING] = "working"};
	ASSERT((unsigned)state < sizeof(names) / sizeof(names[0]));
	return names[state];
}

void work_notes_set(struct work_notes *notes, enum work_kind kind, enum work_state state,
	const char *format, ...)
{
	struct work_note note = {.state = state};
	va_list arguments;
	ASSERT((unsigned)kind < WORK_KINDS);
	if (notes == NULL)
		return;
	va_start(arguments, format);
	vsnprintf(note.detail, sizeof(note.detail), format, arguments);
	va_end(arguments);
	lock_enter(&notes->lock);
	notes->notes[kind] = note;
	lock_leave(&notes->lock);
}

void work_notes_look(struct work_notes *notes, struct work_note out[WORK_KINDS])
{
	lock_enter(&notes->lock);
	memcpy(out, notes->notes, sizeof(notes->notes));
	lock_leave(&notes->lock);
}
