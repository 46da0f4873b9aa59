/* Recipes of derived versions as a damaged catalog may hold them. What is accepted keeps every rule
 * and comes back the same. */
#include <stdlib.h>

#include "storage/versions/derived_recipe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_pieces(const struct derived_recipe *recipe)
{
	for (size_t i = 0; i < recipe->piece_count; i++) {
		const struct derived_piece *const piece = &recipe->pieces[i];
		const uint64_t length = derived_piece_length(recipe, i);
		ASSERT(length > 0 && derived_recipe_find(recipe, piece->end - 1) == i &&
			derived_recipe_find(recipe, piece->end) == i + 1);
		if (piece->kind == DERIVED_LITERAL) {
			ASSERT(piece->offset + length <= recipe->literals.len);
			continue;
		}
		ASSERT(piece->source < recipe->source_count &&
			piece->offset + length <= recipe->sources[piece->source].size);
		if (piece->kind == DERIVED_DELTA)
			ASSERT(piece->delta < recipe->source_count &&
				piece->delta_offset + piece->delta_length <=
					recipe->sources[piece->delta].size);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = {0};
	struct buffer once;
	struct buffer twice;
	struct derived_recipe *const recipe = derived_recipe_parse(span_of(data, size), &err);
	if (recipe == NULL) {
		ASSERT(err.kind == ERROR_CORRUPT);
		return 0;
	}
	check_pieces(recipe);
	buffer_init(&once, DERIVED_RECIPE_MAX_BYTES);
	buffer_init(&twice, DERIVED_RECIPE_MAX_BYTES);
	ASSERT(derived_recipe_encode(recipe, &once, &err) == 0);
	struct derived_recipe *const again = derived_recipe_parse(buffer_span(&once), &err);
	ASSERT(again != NULL && derived_recipe_encode(again, &twice, &err) == 0);
	ASSERT(span_equal(buffer_span(&once), buffer_span(&twice)));
	derived_recipe_free(again);
	derived_recipe_free(recipe);
	buffer_release(&once);
	buffer_release(&twice);
	return 0;
}
