#include "storage/fsck/finding.h"

static const struct {
	const char *name;
	enum finding_severity severity;
	bool is_repaired;
	const char *remedy;
} kinds[FINDING_KINDS] = {
	[FINDING_ACKNOWLEDGED] = {"acknowledged", FINDING_DAMAGE, false,
		"put the newest catalog back, or make it again with deltabucketd rebuild --replace"},
	[FINDING_UNACKNOWLEDGED] = {"unacknowledged", FINDING_NOTE, false, ""},
	[FINDING_LOG] = {"catalog_log", FINDING_DAMAGE, false,
		"put catalog.db and its log back, or make the catalog again with deltabucketd rebuild"
		" --replace"},
	[FINDING_LOG_END] = {"catalog_log_end", FINDING_FAULT, true,
		"the flipped bits are put right"},
	[FINDING_PAGES] = {"catalog_pages", FINDING_FAULT, true,
		"they are put right in the file, too"},
	[FINDING_TABLE] = {"catalog_table", FINDING_DAMAGE, false,
		"make the catalog again with deltabucketd rebuild --replace"},
	[FINDING_INDEX] = {"catalog_index", FINDING_FAULT, true,
		"the index is made again from its table"},
	[FINDING_STRUCTURE] = {"catalog_structure", FINDING_FAULT, true,
		"the catalog is written again from its tables"},
	[FINDING_ROW] = {"catalog_row", FINDING_DAMAGE, false,
		"make the catalog again with deltabucketd rebuild --replace, or upload the object"
		" again"},
	[FINDING_RIGHTS] = {"rights", FINDING_DAMAGE, false,
		"revoke the key and make another; of a bucket set its ACL or policy again"},
	[FINDING_LINK] = {"missing_row", FINDING_DAMAGE, false,
		"make the catalog again with deltabucketd rebuild --replace, or upload the object"
		" again"},
	[FINDING_COUNT] = {"count", FINDING_FAULT, true, "it is counted again"},
	[FINDING_LEFTOVER] = {"leftover", FINDING_NOTE, false, ""},
	[FINDING_REMOVAL] = {"removal", FINDING_FAULT, true,
		"the file is taken off the list of files to remove"},
	[FINDING_PACK] = {"pack", FINDING_DAMAGE, false,
		"put the file back (--backup fetches it), or upload what it held again"},
	[FINDING_PACK_ASIDE] = {"pack_aside", FINDING_FAULT, true, "the file is brought back"},
	[FINDING_DEAD_PACK] = {"dead_pack", FINDING_NOTE, false, ""},
	[FINDING_PACK_COPY] = {"pack_copy", FINDING_FAULT, true, "the pack is written again"},
	[FINDING_PACK_INDEX] = {"pack_index", FINDING_NOTE, false, ""},
	[FINDING_CHUNK] = {"chunk", FINDING_DAMAGE, true,
		"it is mended from another copy if there is one, and remembered as damaged until the"
		" same bytes are uploaded"},
	[FINDING_DEAD_CHUNK] = {"dead_chunk", FINDING_NOTE, false, ""},
	[FINDING_XORB] = {"xorb", FINDING_DAMAGE, true,
		"the row is removed, and clients that name the xorb send it again"},
	[FINDING_STEP] = {"step", FINDING_DAMAGE, false,
		"publish a new anchor; the step cannot be used"},
	[FINDING_CHUNK_INDEX] = {"chunk_index", FINDING_FAULT, true,
		"it is set aside and made again"},
	[FINDING_JOURNAL] = {"journal", FINDING_FAULT, true, "a snapshot of the catalog is made"},
	[FINDING_NO_SNAPSHOT] = {"no_snapshot", FINDING_NOTE, false, ""},
	[FINDING_SNAPSHOT] = {"snapshot", FINDING_FAULT, true,
		"it is set aside, and another one is made"},
	[FINDING_STRAY] = {"stray", FINDING_NOTE, false, ""},
	[FINDING_SET_ASIDE] = {"set_aside", FINDING_NOTE, false, ""},
	[FINDING_MASTER_KEY] = {"master_key", FINDING_DAMAGE, false,
		"put its copy back, or name it with --master-key"},
};

const char *finding_kind_name(enum finding_kind kind)
{
	ASSERT(kind < FINDING_KINDS);
	return kinds[kind].name;
}

enum finding_severity finding_severity_of(enum finding_kind kind)
{
	ASSERT(kind < FINDING_KINDS);
	return kinds[kind].severity;
}

const char *finding_severity_name(enum finding_severity severity)
{
	static const char *const names[] = {
		[FINDING_NOTE] = "note", [FINDING_FAULT] = "fault", [FINDING_DAMAGE] = "damage"};
	return names[severity];
}

const char *finding_remedy(enum finding_kind kind)
{
	ASSERT(kind < FINDING_KINDS);
	return kinds[kind].remedy;
}

bool finding_is_repaired(enum finding_kind kind)
{
	ASSERT(kind < FINDING_KINDS);
	return kinds[kind].is_repaired;
}
