#include "api/steps/hot_load_request.h"

#include "base/format/json_node.h"

/* The first service that had this request spells it "alder32". */
static const char *const compression_words[] = {"none", "zstd", "COMPRESSION_FORMAT_ZSTD", NULL};
static const char *const checksum_words[] = {
	"adler32", "alder32", "CHECKSUM_FORMAT_ADLER32", "xxh3-128", "blake3", NULL};

static int read_incremental(const struct json_node *metadata, struct arena *arena,
	struct hot_load_request *out, struct error *err);
static int check_word(const struct json_node *metadata, const char *name, const char *const *words,
	struct error *err);

int hot_load_request_parse(
	struct span json, struct arena *arena, struct hot_load_request *out, struct error *err)
{
	struct span identity = {0};
	int result;
	*out = (struct hot_load_request){0};
	struct json_node *const root = json_node_parse(json, "The request body", err);
	if (root == NULL)
		return -1;
	if (!json_node_is_object(root))
		result = error_set(err, ERROR_INVALID, "The request body must be a JSON object.");
	else if (!json_node_text(json_node_member(root, "identity"), &identity))
		result = error_set(
			err, ERROR_INVALID, "The request body must have the text member identity.");
	else
		result = read_incremental(
			json_node_member(root, "incremental_snapshot_metadata"), arena, out, err);
	out->identity = arena_copy(arena, identity);
	json_node_free(root);
	return result;
}

static int read_incremental(const struct json_node *metadata, struct arena *arena,
	struct hot_load_request *out, struct error *err)
{
	struct span previous = {0};
	if (metadata == NULL || json_node_is_null(metadata))
		return 0;
	if (!json_node_is_object(metadata))
		return error_set(err, ERROR_INVALID,
			"The member incremental_snapshot_metadata must be an object.");
	if (!json_node_text(json_node_member(metadata, "previous_snapshot_identity"), &previous) ||
		previous.len == 0)
		return error_set(err, ERROR_INVALID,
			"The member incremental_snapshot_metadata must have the text member previous_snapshot_identity.");
	out->is_incremental = true;
	out->previous = arena_copy(arena, previous);
	if (check_word(metadata, "compression_format", compression_words, err) != 0)
		return -1;
	return check_word(metadata, "checksum_format", checksum_words, err);
}

static int check_word(const struct json_node *metadata, const char *name, const char *const *words,
	struct error *err)
{
	struct span given = {0};
	const struct json_node *const node = json_node_member(metadata, name);
	if (node == NULL || json_node_is_null(node))
		return 0;
	if (!json_node_text(node, &given))
		return error_set(err, ERROR_INVALID, "The member %s must be a text.", name);
	for (size_t i = 0; words[i] != NULL; i++)
		if (span_equal_text(given, words[i]))
			return 0;
	return error_set(err, ERROR_SNAPSHOT_FORMAT,
		"This server cannot read snapshots with the %s '%.*s'. Send full snapshots, or zstd frames of the XOR.",
		name, (int)span_slice(given, 0, 40).len, (const char *)given.data);
}
