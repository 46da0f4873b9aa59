/* The JSON bodies of the steps face: the first byte chooses the parser. What a manifest's parser
 * takes must print and parse again as the same step. */
#include "api/steps/run_request.h"
#include "base/arena.h"
#include "wire/part_message.h"
#include "wire/pin_message.h"
#include "wire/replica_message.h"
#include "wire/step_message.h"

enum { ARENA_BYTES = 16 * 1024 * 1024, PRINT_BYTES = 64 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void parse_step(struct span json, struct arena *arena)
{
	struct step_message step;
	struct step_message again;
	struct error err = {0};
	struct buffer printed;
	if (step_message_parse(json, arena, &step, &err) != 0)
		return;
	buffer_init(&printed, PRINT_BYTES);
	step_message_print(&step, NULL, true, &printed);
	const struct digest128 content = step_message_content_digest(&step);
	/* Printing may grow a text past a cap of the parser or the arena, but never into another
	 * step. */
	if (!buffer_failed(&printed) &&
		step_message_parse(buffer_span(&printed), arena, &again, &err) == 0) {
		const struct digest128 content_again = step_message_content_digest(&again);
		ASSERT(digest128_equal(&content, &content_again));
	}
	buffer_release(&printed);
}

/* What the catalog keeps of a part must read back as the same. */
static void parse_part(struct span json, struct arena *arena)
{
	struct part_message part;
	struct part_message again;
	struct error err = {0};
	struct buffer printed;
	if (part_message_parse(json, 7, arena, &part, &err) != 0)
		return;
	buffer_init(&printed, PRINT_BYTES);
	part_message_print(&part, &printed);
	const struct digest128 content = part_message_content_digest(&part, 2);
	if (!buffer_failed(&printed) &&
		part_message_parse(buffer_span(&printed), 7, arena, &again, &err) == 0) {
		const struct digest128 content_again = part_message_content_digest(&again, 2);
		ASSERT(digest128_equal(&content, &content_again));
	}
	buffer_release(&printed);
}

static void parse_replica(struct span json, struct arena *arena)
{
	struct replica_message replica;
	struct error err = {0};
	struct buffer printed;
	if (replica_message_parse(json, arena, &replica, &err) != 0)
		return;
	buffer_init(&printed, PRINT_BYTES);
	replica_message_print_request(&replica, &printed);
	ASSERT(!buffer_failed(&printed) &&
		replica_message_parse(buffer_span(&printed), arena, &replica, &err) == 0);
	buffer_release(&printed);
}

static void parse(uint8_t choice, struct span json, struct arena *arena)
{
	struct run_settings settings = run_settings_default();
	struct error err = {0};
	switch (choice % 11) {
	case 0:
		parse_step(json, arena);
		break;
	case 1:
		run_message_parse(json, arena, &(struct run_message){0}, &err);
		break;
	case 2:
		path_message_parse(json, arena, &(struct path_message){0}, &err);
		break;
	case 3:
		error_message_parse(json, arena, &(struct error_message){0}, &err);
		break;
	case 5:
		parse_part(json, arena);
		break;
	case 6:
		parse_replica(json, arena);
		break;
	case 7:
		replica_list_message_parse(json, arena, &(struct replica_list_message){0}, &err);
		break;
	case 8:
		pin_message_parse(json, arena, &(struct pin_message){0}, &err);
		rollback_message_parse(json, &(struct rollback_message){0}, &err);
		break;
	case 9:
		run_settings_parse(&settings, json, true, &err);
		break;
	default:
		run_request_parse(json, arena, &(struct run_request){0}, &err);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len == 0)
		return 0;
	struct arena *const arena = arena_new(ARENA_BYTES);
	parse(data[0], span_of(data + 1, len - 1), arena);
	arena_free(arena);
	return 0;
}
