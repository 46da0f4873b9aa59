/* JSON for the tests. Most tests put one fault into a good message, by replacing a part of it. */
#ifndef TESTS_UNIT_WIRE_MESSAGE_TEXT_H
#define TESTS_UNIT_WIRE_MESSAGE_TEXT_H

#define DIGEST_A "xxh3-128:000102030405060708090a0b0c0d0e0f"
#define DIGEST_B "xxh3-128:f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"

#define OBJECT_TEXT(name)                                         \
	"{\"name\":\"" name "\",\"key\":\"llm/steps/000005/" name \
	"\",\"size\":7,\"digest\":\"" DIGEST_B "\"}"
#define FILES_TEXT "[{\"path\":\"model.safetensors\",\"size\":100,\"digest\":\"" DIGEST_A "\"}]"
#define ANCHOR_TEXT                                                           \
	"{\"kind\":\"anchor\",\"format\":\"full\",\"objects\":[" OBJECT_TEXT( \
		"model.safetensors") "]}"
#define DELTA_TEXT                                                              \
	"{\"kind\":\"delta\",\"format\":\"trl-gap\",\"objects\":[" OBJECT_TEXT( \
		"delta.safetensors") "]}"

/* Returns `text` with its first `old` replaced by `with`; "" removes it. The caller frees the
 * result. Fails the test when `text` does not hold `old`. */
char *message_text_replace(const char *text, const char *old, const char *with);

#endif
